//! The public socket: bound under a lock, or taken from the service manager.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dev, FileType, Mode, OFlags, statat};
use rustix::net::SocketAddrUnix;

use crate::fault::{StartError, because, errno};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Kernels that may end one after the other while this one takes their lock.
const LOCK_TRIES: usize = 16;
/// First descriptor of a service manager, and the name it gives ours.
#[cfg(target_os = "linux")]
const ACTIVATED_FD: i32 = 3;
const ACTIVATED_NAME: &str = "shoal";

/// The listening socket of this kernel.
#[derive(Debug)]
pub(crate) struct Listener {
    /// The socket; the broker accepts on a copy.
    pub(crate) fd: OwnedFd,
    /// Where it listens.
    pub(crate) path: PathBuf,
    /// Device and inode of the socket file, when a kernel made it.
    made: Option<(Dev, u64)>,
    /// The service manager keeps it for the next kernel.
    pub(crate) kept: bool,
}

/// What a service manager hands over.
#[derive(Debug, Default)]
pub(crate) struct Handed {
    /// The socket this process was started for.
    pub(crate) activated: Option<Listener>,
    /// What the last kernel of the unit stored.
    pub(crate) stored: Vec<OwnedFd>,
}

impl Listener {
    /// Takes the socket of launchd, if this process was started for one.
    #[cfg(target_os = "macos")]
    pub(crate) fn handed_over() -> Result<Handed, StartError> {
        let mut sockets =
            shoal_sys::launchd::sockets(c"shoal").map_err(because("cannot take the sockets of launchd"))?;
        match (sockets.pop(), sockets.len()) {
            (None, _) => Ok(Handed::default()),
            (Some(fd), 0) => Ok(Handed { activated: Some(Self::adopt(fd)?), stored: Vec::new() }),
            (Some(_), more) => Err(StartError::Failed(format!(
                "launchd handed over {} sockets named {ACTIVATED_NAME:?}, expected one",
                more + 1
            ))),
        }
    }

    /// Takes what a service manager has for this process: the socket it was started for, what was stored. Stored
    /// descriptors follow the sockets, so they are told apart by name.
    #[cfg(target_os = "linux")]
    pub(crate) fn handed_over() -> Result<Handed, StartError> {
        let names = sd_notify::listen_fds_with_names().map_err(because("cannot read LISTEN_FDS"))?;
        let (mut sockets, mut stored) = (Vec::new(), Vec::new());
        for (number, name) in names {
            let fd = shoal_sys::fd::inherited(number)
                .map_err(because(format!("cannot take descriptor {number} of the service manager")))?;
            if name == crate::store::NAME { stored.push(fd) } else { sockets.push((number, name, fd)) }
        }
        let count = sockets.len();
        let activated = match (sockets.pop(), count) {
            (None, _) => None,
            (Some((ACTIVATED_FD, name, fd)), 1) if name == ACTIVATED_NAME || name == "unknown" => {
                Some(Self::adopt(fd)?)
            }
            (Some(_), count) => {
                return Err(StartError::Failed(format!(
                    "the service manager handed over {count} sockets, expected one named {ACTIVATED_NAME:?}"
                )));
            }
        };
        Ok(Handed { activated, stored })
    }

    fn adopt(fd: OwnedFd) -> Result<Self, StartError> {
        if !shoal_sys::fd::is_listening_unix(fd.as_fd()) {
            return Err(StartError::Failed("the activation socket is not a listening UNIX stream socket".to_owned()));
        }
        let address = rustix::net::getsockname(&fd).map_err(errno("cannot name the activation socket"))?;
        let address = SocketAddrUnix::try_from(address).map_err(errno("cannot name the activation socket"))?;
        let path = address.path_bytes().ok_or_else(|| {
            StartError::Failed("the activation socket has no path; give it one with ListenStream=".to_owned())
        })?;
        let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path));
        Self::finish(fd, path, None)
    }

    /// Binds `path`: the directory is made 0700, a lock beside the socket keeps others out meanwhile, a dead socket of
    /// ours is replaced, and anything else that is there is left alone.
    pub(crate) fn bind(path: PathBuf) -> Result<Self, StartError> {
        let at = path.display();
        if let Some(dir) = path.parent() {
            let mut builder = std::fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(because(format!("cannot make {}", dir.display())))?;
        }
        let _lock = lock_beside(&path)?;
        remove_dead(&path)?;
        let address = SocketAddrUnix::new(&path).map_err(errno(format!("{at} is no socket path")))?;
        let fd = shoal_sys::socket::stream().map_err(because("cannot make a socket"))?;
        let mask = shoal_sys::process::umask(0o177);
        let bound = rustix::net::bind(&fd, &address);
        shoal_sys::process::umask(mask);
        bound.map_err(errno(format!("cannot bind {at}")))?;
        rustix::net::listen(&fd, BACKLOG).map_err(errno(format!("cannot listen on {at}")))?;
        let stat = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).map_err(errno(format!("cannot look at {at}")))?;
        let mode = stat.st_mode & 0o7777;
        if mode != 0o600 {
            return Err(StartError::Failed(format!(
                "{at} got mode {mode:04o} instead of 0600; use another file system"
            )));
        }
        Self::finish(fd, path, Some((stat.st_dev, stat.st_ino)))
    }

    /// Takes a stored listener back, if it is the one that clients of `path` reach.
    pub(crate) fn reclaim(fd: OwnedFd, path: &Path) -> Result<Self, StartError> {
        let listener = Self::adopt(fd)?;
        let (at, theirs) = (path.display(), listener.path.display());
        if listener.path != path {
            return Err(StartError::Failed(format!("it listens on {theirs} and not on {at}")));
        }
        // From now on clients see this process as their peer; without it, whoever listened first.
        rustix::net::listen(&listener.fd, BACKLOG).map_err(errno(format!("cannot listen on {at}")))?;
        let stream = connect(path).map_err(because(format!("nobody reaches {at}")))?;
        let peer = shoal_sys::peer::credentials(&stream).map_err(because(format!("cannot look at {at}")))?;
        if peer.pid != shoal_sys::process::pid() {
            return Err(StartError::Failed(format!("another socket is at {at}")));
        }
        Ok(Self { made: identity(path), ..listener })
    }

    /// A kernel made the socket, and not a service manager.
    pub(crate) fn is_made_here(&self) -> bool {
        self.made.is_some()
    }

    fn finish(fd: OwnedFd, path: PathBuf, made: Option<(Dev, u64)>) -> Result<Self, StartError> {
        shoal_sys::fd::set_nonblocking(&fd, true).map_err(because("cannot set up the listener"))?;
        shoal_sys::socket::refuse_descriptors(&fd);
        Ok(Self { fd, path, made, kept: false })
    }

    /// Removes the socket file if it is still the one this kernel made, and the lock file beside it unless another
    /// kernel is starting there.
    pub(crate) fn unlink(&self) -> io::Result<()> {
        if self.made.is_none() {
            return Ok(());
        }
        let lock = lock_beside(&self.path);
        if identity(&self.path) == self.made {
            rustix::fs::unlink(&self.path)?;
        }
        if lock.is_ok() {
            rustix::fs::unlink(lock_path(&self.path))?;
        }
        Ok(())
    }
}

/// Device and inode of what is at a path.
fn identity(path: &Path) -> Option<(Dev, u64)> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

fn lock_path(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Takes the lock file beside the socket; it is held until the socket listens. A file that its last holder removed
/// meanwhile locks nothing, so another one is made.
fn lock_beside(path: &Path) -> Result<OwnedFd, StartError> {
    let name = lock_path(path);
    let at = name.display();
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let busy = || StartError::Failed(format!("another kernel is starting on {}; connect to it", path.display()));
    for _ in 0..LOCK_TRIES {
        let file =
            rustix::fs::open(&name, flags, Mode::RUSR | Mode::WUSR).map_err(errno(format!("cannot open {at}")))?;
        if !shoal_sys::lock::try_exclusive(&file).map_err(because(format!("cannot lock {at}")))? {
            return Err(busy());
        }
        let stat = rustix::fs::fstat(&file).map_err(errno(format!("cannot look at {at}")))?;
        if identity(&name) == Some((stat.st_dev, stat.st_ino)) {
            return Ok(file);
        }
    }
    Err(busy())
}

/// Removes a socket file of ours that nobody listens on; refuses everything else that is in the way.
fn remove_dead(path: &Path) -> Result<(), StartError> {
    let at = path.display();
    let stat = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(e) => return Err(errno(format!("cannot look at {at}"))(e)),
    };
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket => None,
        FileType::Symlink => Some("a symbolic link"),
        FileType::Directory => Some("a directory"),
        FileType::RegularFile
        | FileType::Fifo
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Some("a file"),
    };
    if let Some(what) = what {
        return Err(StartError::Failed(format!(
            "{at} is {what}, not a socket; remove it or name another with --socket"
        )));
    }
    if stat.st_uid != shoal_sys::process::uid() {
        let uid = stat.st_uid;
        return Err(StartError::Failed(format!("{at} belongs to user {uid}; name another socket with --socket")));
    }
    match connect(path) {
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            rustix::fs::unlink(path).map_err(errno(format!("cannot remove the dead socket {at}")))
        }
        Ok(_) => {
            Err(StartError::Failed(format!("a kernel listens on {at}; stop it or name another socket with --socket")))
        }
        Err(e) => Err(StartError::Failed(format!("something is at {at} ({e}); name another socket with --socket"))),
    }
}

fn connect(path: &Path) -> io::Result<OwnedFd> {
    let probe = shoal_sys::socket::stream()?;
    rustix::net::connect(&probe, &SocketAddrUnix::new(path)?)?;
    Ok(probe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Dir(PathBuf);

    impl Dir {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("shoal-listen-{name}-{}", std::process::id())))
        }

        fn socket(&self) -> PathBuf {
            self.0.join("shoal/s.sock")
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(path: PathBuf) -> String {
        let text = Listener::bind(path).unwrap_err().to_string();
        assert!(!text.contains('\n'));
        text
    }

    #[test]
    fn modes_and_removal() {
        let dir = Dir::new("modes");
        let listener = Listener::bind(dir.socket()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(&dir.socket()), 0o600);
        assert_eq!(mode(dir.socket().parent().unwrap()), 0o700);
        listener.unlink().unwrap();
        let left: Vec<_> = std::fs::read_dir(dir.socket().parent().unwrap()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn the_lock_of_a_starting_kernel_stays() {
        let dir = Dir::new("starting");
        let listener = Listener::bind(dir.socket()).unwrap();
        let starting = lock_beside(&dir.socket()).unwrap();
        listener.unlink().unwrap();
        assert!(lock_path(&dir.socket()).exists() && !dir.socket().exists());
        drop(starting);
    }

    #[test]
    fn a_live_listener_is_refused_and_a_dead_one_replaced() {
        let dir = Dir::new("live");
        let first = Listener::bind(dir.socket()).unwrap();
        assert!(refusal(dir.socket()).contains("a kernel listens on"));
        drop(first.fd.try_clone().unwrap());
        drop(first);
        let second = Listener::bind(dir.socket()).unwrap();
        std::os::unix::net::UnixStream::connect(dir.socket()).unwrap();
        drop(second);
    }

    #[test]
    fn what_is_not_ours_stays() {
        let dir = Dir::new("foreign");
        std::fs::create_dir_all(dir.socket().parent().unwrap()).unwrap();
        std::fs::write(dir.socket(), "x").unwrap();
        assert!(refusal(dir.socket()).contains("is a file, not a socket"));
        std::fs::remove_file(dir.socket()).unwrap();
        std::fs::create_dir(dir.socket()).unwrap();
        assert!(refusal(dir.socket()).contains("is a directory, not a socket"));
        std::fs::remove_dir(dir.socket()).unwrap();
        std::os::unix::fs::symlink("/nowhere", dir.socket()).unwrap();
        assert!(refusal(dir.socket()).contains("is a symbolic link"));
    }

    #[test]
    fn a_replaced_socket_is_not_removed() {
        let dir = Dir::new("replaced");
        let listener = Listener::bind(dir.socket()).unwrap();
        std::fs::remove_file(dir.socket()).unwrap();
        let _other = std::os::unix::net::UnixListener::bind(dir.socket()).unwrap();
        listener.unlink().unwrap();
        assert!(dir.socket().exists());
    }

    #[test]
    fn a_stored_listener_is_taken_back_while_its_path_leads_to_it() {
        let dir = Dir::new("stored");
        let stored = Listener::bind(dir.socket()).unwrap().fd;
        let waiting = std::os::unix::net::UnixStream::connect(dir.socket()).unwrap();
        let again = Listener::reclaim(stored.try_clone().unwrap(), &dir.socket()).unwrap();
        assert!(again.is_made_here());
        // Who came first is first in the backlog.
        let accepted = std::os::unix::net::UnixStream::from(shoal_sys::socket::accept(&again.fd).unwrap());
        drop(accepted);
        assert_eq!(std::io::Read::read(&mut &waiting, &mut [0]).unwrap(), 0);
        let elsewhere = dir.0.join("shoal/other.sock");
        let why = Listener::reclaim(stored.try_clone().unwrap(), &elsewhere).unwrap_err().to_string();
        assert!(why.contains("listens on"), "{why}");
        std::fs::remove_file(dir.socket()).unwrap();
        let why = Listener::reclaim(stored.try_clone().unwrap(), &dir.socket()).unwrap_err().to_string();
        assert!(why.contains("nobody reaches"), "{why}");
        again.unlink().unwrap();
        drop((again, stored));
    }

    #[test]
    fn an_adopted_listener_keeps_its_file() {
        let dir = Dir::new("adopted");
        std::fs::create_dir_all(dir.socket().parent().unwrap()).unwrap();
        let std = std::os::unix::net::UnixListener::bind(dir.socket()).unwrap();
        let adopted = Listener::adopt(std.into()).unwrap();
        assert_eq!(adopted.path, dir.socket());
        adopted.unlink().unwrap();
        assert!(dir.socket().exists());
        let (a, _b) = shoal_sys::socket::pair(shoal_sys::socket::Carrier::Stream).unwrap();
        assert!(Listener::adopt(a).unwrap_err().to_string().contains("not a listening"));
    }
}
