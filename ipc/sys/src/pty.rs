//! Pseudo terminals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::OpenptFlags;
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};

/// Both sides of a new terminal.
#[derive(Debug)]
pub struct Pty {
    /// The emulator's side.
    pub leader: OwnedFd,
    /// The program's side.
    pub follower: OwnedFd,
}

/// Makes a terminal of the given size in this mount namespace's devpts, neither side anyone's controlling terminal.
pub fn open(cols: u16, rows: u16) -> io::Result<Pty> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let leader = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&leader)?;
    #[cfg(target_os = "linux")]
    let follower = rustix::pty::ioctl_tiocgptpeer(&leader, flags)?;
    #[cfg(not(target_os = "linux"))]
    let follower = {
        rustix::pty::grantpt(&leader)?;
        let name = rustix::pty::ptsname(&leader, Vec::new())?;
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty())?
    };
    resize(&leader, cols, rows)?;
    Ok(Pty { leader, follower })
}

/// Sets the size; the foreground process group gets SIGWINCH when it changed.
pub fn resize(leader: impl AsFd, cols: u16, rows: u16) -> io::Result<()> {
    Ok(tcsetwinsize(leader, Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 })?)
}

/// The size: columns, rows.
pub fn size(leader: impl AsFd) -> io::Result<(u16, u16)> {
    let size = tcgetwinsize(leader)?;
    Ok((size.ws_col, size.ws_row))
}

/// Whether `fd` is the leader side of a terminal.
pub fn is_leader(fd: BorrowedFd<'_>) -> bool {
    #[cfg(target_os = "linux")]
    let leader = pty_number(fd).is_some();
    #[cfg(not(target_os = "linux"))]
    let leader = rustix::pty::ptsname(fd, Vec::new()).is_ok();
    leader
}

/// The number of a leader's terminal (`TIOCGPTN` answers on leaders only).
#[cfg(target_os = "linux")]
fn pty_number(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&fd);
    // SAFETY: TIOCGPTN writes one unsigned int through the pointer, which is live; other descriptors answer ENOTTY.
    let result = unsafe { libc::ioctl(fd, libc::TIOCGPTN, &raw mut number) };
    (result == 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_pass_and_sides_are_told_apart() {
        let pty = open(80, 24).unwrap();
        assert!(is_leader(pty.leader.as_fd()));
        assert!(!is_leader(pty.follower.as_fd()));
        assert!(!is_leader(crate::fd::null().unwrap().as_fd()));
        rustix::io::write(&pty.follower, b"hi").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(rustix::io::read(&pty.leader, &mut buffer).unwrap(), 2);
    }

    #[test]
    fn the_size_is_seen_on_both_sides() {
        let pty = open(80, 24).unwrap();
        resize(&pty.leader, 100, 30).unwrap();
        assert_eq!(size(&pty.follower).unwrap(), (100, 30));
    }
}
