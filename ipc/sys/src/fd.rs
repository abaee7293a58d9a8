//! Descriptors: what they are, where they come from.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::net::sockopt;

/// Fixed numbers at exec lie below this.
const MAX_INHERITED: RawFd = 32;

/// The numbers [`inherited`] has given out, one bit each.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Takes the descriptor that the parent left at the fixed number `number` (0..32) and makes it close-on-exec.
///
/// `EBADF` when there is none, `EBUSY` when the number was taken before: a number is given out once, so that it has
/// one owner. Meant for the first lines of a role's `main`, before anything else could own the number.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if !(0..MAX_INHERITED).contains(&number) {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: F_GETFD only reads a flag of a number; a number that is not open answers EBADF.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    if flags < 0 {
        return Err(io::Error::last_os_error());
    }
    let bit = 1_u32 << number;
    if TAKEN.fetch_or(bit, Ordering::SeqCst) & bit != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: the number is open (just checked) and TAKEN gives each inherited number to one owner only.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    set_cloexec(&fd, true)?;
    Ok(fd)
}

/// Sets or clears close-on-exec.
pub fn set_cloexec(fd: impl AsFd, on: bool) -> io::Result<()> {
    let flags = if on { rustix::io::FdFlags::CLOEXEC } else { rustix::io::FdFlags::empty() };
    Ok(rustix::io::fcntl_setfd(fd, flags)?)
}

/// Sets or clears `O_NONBLOCK` on the open file description, for everyone who shares it.
pub fn set_nonblocking(fd: impl AsFd, on: bool) -> io::Result<()> {
    let fd = fd.as_fd();
    let mut flags = fcntl_getfl(fd)?;
    flags.set(OFlags::NONBLOCK, on);
    Ok(rustix::fs::fcntl_setfl(fd, flags)?)
}

/// Opens `/dev/null` for reading and writing.
pub fn null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, rustix::fs::Mode::empty())?)
}

/// Opens a file for execution by descriptor: `O_PATH` on Linux, read-only elsewhere. Symlinks are followed.
pub fn open_program(path: &std::path::Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, rustix::fs::Mode::empty())?;
    let stat = fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_mode & 0o111 == 0 {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(fd)
}

/// Makes a pipe, both ends close-on-exec: read end, write end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(target_os = "linux")]
    let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(not(target_os = "linux"))]
    let ends = {
        let ends = rustix::pipe::pipe()?;
        set_cloexec(&ends.0, true)?;
        set_cloexec(&ends.1, true)?;
        ends
    };
    Ok(ends)
}

/// Lets a pipe hold up to 1 MiB, the most an ordinary user gets, so that its ends take turns less often. A pipe that stays
/// as it is works the same.
pub fn widen_pipe(fd: impl AsFd) {
    #[cfg(target_os = "linux")]
    rustix::pipe::fcntl_setpipe_size(fd, 1 << 20).ok();
    #[cfg(not(target_os = "linux"))]
    let _ = fd;
}

/// Whether `fd` is the read end of a pipe.
pub fn is_pipe_read(fd: BorrowedFd<'_>) -> bool {
    file_type(fd) == Some(FileType::Fifo) && access_mode(fd) == Some(OFlags::RDONLY)
}

/// Whether `fd` is a directory opened for reading (not `O_PATH`).
pub fn is_dir(fd: BorrowedFd<'_>) -> bool {
    file_type(fd) == Some(FileType::Directory) && !is_path_only(fd)
}

/// Whether `fd` is a connected UNIX stream or sequenced-packet socket.
pub fn is_connected_unix(fd: BorrowedFd<'_>) -> bool {
    is_unix(fd)
        && matches!(sockopt::socket_type(fd), Ok(rustix::net::SocketType::STREAM | rustix::net::SocketType::SEQPACKET))
        && rustix::net::getpeername(fd).is_ok()
}

/// Whether `fd` is a listening UNIX stream socket.
pub fn is_listening_unix(fd: BorrowedFd<'_>) -> bool {
    is_unix(fd) && matches!(sockopt::socket_type(fd), Ok(rustix::net::SocketType::STREAM)) && accepts(fd)
}

/// Whether a socket was put to listen. `SO_ACCEPTCONN` cannot be asked on macOS; there a listener is what has no peer.
fn accepts(fd: BorrowedFd<'_>) -> bool {
    #[cfg(target_os = "linux")]
    let accepts = matches!(sockopt::socket_acceptconn(fd), Ok(true));
    #[cfg(target_os = "macos")]
    let accepts = rustix::net::getpeername(fd).is_err();
    accepts
}

/// Whether `fd` may be a command's standard input or output: a pipe, a regular file or a character device.
pub fn is_stdio(fd: BorrowedFd<'_>) -> bool {
    matches!(file_type(fd), Some(FileType::Fifo | FileType::RegularFile | FileType::CharacterDevice))
        && !is_path_only(fd)
}

fn is_unix(fd: BorrowedFd<'_>) -> bool {
    #[cfg(target_os = "linux")]
    let unix = matches!(sockopt::socket_domain(fd), Ok(rustix::net::AddressFamily::UNIX));
    #[cfg(not(target_os = "linux"))]
    let unix = rustix::net::getsockname(fd).is_ok_and(|a| a.address_family() == rustix::net::AddressFamily::UNIX);
    unix
}

fn file_type(fd: BorrowedFd<'_>) -> Option<FileType> {
    fstat(fd).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

fn access_mode(fd: BorrowedFd<'_>) -> Option<OFlags> {
    fcntl_getfl(fd).ok().map(|flags| flags & OFlags::ACCMODE)
}

/// An `O_PATH` descriptor names a file without a right to its content; none ever crosses an edge.
fn is_path_only(fd: BorrowedFd<'_>) -> bool {
    #[cfg(target_os = "linux")]
    let path_only = fcntl_getfl(fd).map_or(true, |flags| flags.contains(OFlags::PATH));
    #[cfg(not(target_os = "linux"))]
    let path_only = fcntl_getfl(fd).is_err();
    path_only
}

/// The numbers that are open in this process, ascending, without the one this function needs itself.
pub fn open_numbers() -> io::Result<Vec<RawFd>> {
    let dir =
        rustix::fs::open("/dev/fd", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, rustix::fs::Mode::empty())?;
    let mut numbers = Vec::new();
    for entry in rustix::fs::Dir::read_from(&dir)? {
        let entry = entry?;
        if let Some(number) = entry.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok()) {
            numbers.push(number);
        }
    }
    let own = dir.as_raw_fd();
    // `read_from` opens the directory anew; its descriptor is closed by now, so what does not answer is dropped.
    drop(dir);
    numbers.retain(|&number| {
        // SAFETY: F_GETFD only reads a flag of a number; a number that is not open answers EBADF.
        number != own && unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0
    });
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Carrier, pair};

    #[test]
    fn pipe_ends_are_told_apart() {
        let (read, write) = pipe().unwrap();
        assert!(is_pipe_read(read.as_fd()));
        assert!(!is_pipe_read(write.as_fd()));
        assert!(is_stdio(read.as_fd()) && is_stdio(write.as_fd()));
        assert!(!is_dir(read.as_fd()));
    }

    #[test]
    fn sockets_are_told_apart() {
        let (a, _b) = pair(Carrier::Stream).unwrap();
        assert!(is_connected_unix(a.as_fd()));
        assert!(!is_listening_unix(a.as_fd()));
        assert!(!is_stdio(a.as_fd()));
        let dir = std::env::temp_dir().join(format!("shoal-sys-fd-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&dir).unwrap();
        assert!(is_listening_unix(listener.as_fd()));
        assert!(!is_connected_unix(listener.as_fd()));
        std::fs::remove_file(&dir).unwrap();
    }

    #[test]
    fn a_path_descriptor_is_no_directory_and_no_file() {
        let dir = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap();
        assert!(!is_dir(dir.as_fd()));
        let dir = rustix::fs::open("/", OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty()).unwrap();
        assert!(is_dir(dir.as_fd()));
    }

    #[test]
    fn a_program_must_be_an_executable_file() {
        assert!(open_program(std::path::Path::new("/bin/sh")).is_ok());
        assert_eq!(open_program(std::path::Path::new("/")).unwrap_err().raw_os_error(), Some(libc::EACCES));
        assert_eq!(open_program(std::path::Path::new("/etc/passwd")).unwrap_err().raw_os_error(), Some(libc::EACCES));
    }

    #[test]
    fn an_inherited_number_is_given_out_once() {
        let source = null().unwrap();
        // SAFETY: 31 is free in this process, and the duplicate is handed to `inherited` below.
        assert_eq!(unsafe { libc::dup2(source.as_raw_fd(), 31) }, 31);
        let fd = inherited(31).unwrap();
        assert_eq!(fd.as_raw_fd(), 31);
        assert_eq!(inherited(31).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        assert_eq!(inherited(30).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(inherited(99).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn open_numbers_sees_a_new_descriptor() {
        let fd = null().unwrap();
        assert!(open_numbers().unwrap().contains(&fd.as_raw_fd()));
    }

    #[test]
    fn flags_are_set_and_cleared() {
        let fd = null().unwrap();
        set_nonblocking(&fd, true).unwrap();
        assert!(fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
        set_nonblocking(&fd, false).unwrap();
        assert!(!fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
        set_cloexec(&fd, false).unwrap();
        assert!(rustix::io::fcntl_getfd(&fd).unwrap().is_empty());
    }
}
