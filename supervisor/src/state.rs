//! The state directory: opened once, held for life, one kernel at a time.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat};

use crate::fault::{StartError, because, errno};

/// The lock file holds one path and a line feed.
const MAX_LOCK: usize = 4096;

/// The state directory of this kernel.
#[derive(Debug)]
pub(crate) struct StateDir {
    /// Where it is; for an ephemeral kernel a private directory that goes with it.
    pub(crate) path: PathBuf,
    /// The directory itself; the broker works from a copy of this and never from the path.
    pub(crate) dir: OwnedFd,
    ephemeral: bool,
    /// Holds the lock as long as it is open.
    lock: OwnedFd,
}

impl StateDir {
    /// Makes the directory if need be, checks that it is ours alone, and takes its lock.
    pub(crate) fn open(path: &Path) -> Result<Self, StartError> {
        let at = path.display();
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(because(format!("cannot make the state directory {at}")))?;
        Self::take(path.to_owned(), false)
    }

    /// Makes a directory for a kernel that leaves nothing behind.
    pub(crate) fn ephemeral(temporary: &Path) -> Result<Self, StartError> {
        for n in 0_u32..1000 {
            let path = temporary.join(format!("shoal-ephemeral-{}-{n}", shoal_sys::process::pid()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Self::take(path, true),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(because(format!("cannot make {}", path.display()))(e)),
            }
        }
        Err(StartError::Failed(format!("no free name for a directory in {}", temporary.display())))
    }

    fn take(path: PathBuf, ephemeral: bool) -> Result<Self, StartError> {
        let at = path.display();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(errno(format!("cannot open the state directory {at} (a symbolic link is not followed)")))?;
        let stat = fstat(&dir).map_err(errno(format!("cannot look at {at}")))?;
        let mode = stat.st_mode & 0o7777;
        let ours = stat.st_uid == shoal_sys::process::uid();
        if ours && mode & 0o077 != 0 && is_empty(&dir).map_err(errno(format!("cannot list {at}")))? {
            // Made for us with an ordinary mask: nothing lies in it yet that somebody could have read or planted.
            rustix::fs::fchmod(&dir, Mode::RWXU).map_err(errno(format!("cannot make {at} private")))?;
        } else if !ours || mode & 0o077 != 0 {
            let uid = stat.st_uid;
            return Err(StartError::Failed(format!(
                "the state directory {at} has owner {uid} and mode {mode:04o}; it must be yours with mode 0700: chmod 700 {at}"
            )));
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock =
            openat(&dir, "lock", flags, Mode::RUSR | Mode::WUSR).map_err(errno(format!("cannot open {at}/lock")))?;
        if !shoal_sys::lock::try_exclusive(&lock).map_err(because(format!("cannot lock {at}/lock")))? {
            let socket = holder(&lock).map_err(because(format!("cannot read {at}/lock")))?;
            return Err(StartError::Held { state: path, socket });
        }
        Ok(Self { path, dir, ephemeral, lock })
    }

    /// Writes where this kernel listens, for those who find the lock held.
    pub(crate) fn announce(&self, socket: &Path) -> Result<(), StartError> {
        let what = || format!("cannot write {}/lock", self.path.display());
        let line = [socket.as_os_str().as_bytes(), b"\n"].concat();
        rustix::fs::ftruncate(&self.lock, 0).map_err(errno(what()))?;
        shoal_sys::memfd::write_all(&self.lock, &line).map_err(because(what()))
    }

    /// Removes what an ephemeral kernel wrote; the last act. A lasting directory keeps its (then free) lock file.
    pub(crate) fn close(self) -> io::Result<()> {
        if self.ephemeral { std::fs::remove_dir_all(&self.path) } else { Ok(rustix::fs::ftruncate(&self.lock, 0)?) }
    }

    /// Whether the path still leads to the directory that is open.
    pub(crate) fn is_in_place(&self) -> bool {
        let open = fstat(&self.dir);
        let named = rustix::fs::statat(rustix::fs::CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW);
        matches!((open, named), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
    }
}

/// Whether a directory holds nothing but itself, and the lock of a client that is starting this kernel.
fn is_empty(dir: &OwnedFd) -> rustix::io::Result<bool> {
    for entry in rustix::fs::Dir::read_from(dir)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b".." | b"autostart.lock") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn holder(lock: &OwnedFd) -> io::Result<PathBuf> {
    let mut bytes = vec![0; MAX_LOCK];
    let len = rustix::io::pread(lock, &mut bytes, 0)?;
    bytes.truncate(len);
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(std::ffi::OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("shoal-kernel-{name}-{}", std::process::id()))
    }

    #[test]
    fn one_holder_who_is_named_to_the_second() {
        let path = temporary("state").join("deep");
        let first = StateDir::open(&path).unwrap();
        first.announce(Path::new("/run/a.sock")).unwrap();
        let second = StateDir::open(&path).unwrap_err();
        assert!(matches!(&second, StartError::Held { socket, .. } if socket == Path::new("/run/a.sock")), "{second}");
        first.close().unwrap();
        let third = StateDir::open(&path).unwrap();
        third.announce(Path::new("/b")).unwrap();
        assert_eq!(std::fs::read_to_string(path.join("lock")).unwrap(), "/b\n");
        assert!(third.is_in_place());
        std::fs::rename(&path, path.with_extension("away")).unwrap();
        assert!(!third.is_in_place());
        std::fs::remove_dir_all(temporary("state")).unwrap();
    }

    #[test]
    fn an_empty_directory_of_ours_is_made_private() {
        let path = temporary("empty-state");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(path.join("autostart.lock"), "").unwrap();
        StateDir::open(&path).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&path).unwrap()) & 0o7777;
        assert_eq!(mode, 0o700);
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_enter_is_refused() {
        let path = temporary("open-state");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("theirs"), "x").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let error = StateDir::open(&path).unwrap_err().to_string();
        assert!(error.contains("mode 0755") && error.contains("chmod 700"), "{error}");
        let link = temporary("state-link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(StateDir::open(&link).unwrap_err().to_string().contains("symbolic link"));
        std::fs::remove_file(&link).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn an_ephemeral_directory_goes() {
        let state = StateDir::ephemeral(&std::env::temp_dir()).unwrap();
        let path = state.path.clone();
        assert!(path.join("lock").exists());
        state.close().unwrap();
        assert!(!path.exists());
    }
}
