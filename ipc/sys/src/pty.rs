//! Pseudo terminals.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pty::OpenptFlags;
use rustix::termios::{InputModes, LocalModes, SpecialCodeIndex, Winsize, tcgetattr, tcgetwinsize, tcsetwinsize};

/// The longest line the system's canonical mode keeps, without its end; what is typed beyond it is lost.
pub const MAX_LINE: usize = if cfg!(target_os = "linux") { 4095 } else { 1023 };

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
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    #[cfg(target_os = "linux")]
    let flags = flags | OpenptFlags::CLOEXEC;
    let leader = rustix::pty::openpt(flags)?;
    #[cfg(target_os = "macos")]
    crate::fd::set_cloexec(&leader, true)?;
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

/// How the line discipline takes what is typed. A character that is switched off is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineMode {
    /// Input is kept until its line ends.
    pub canonical: bool,
    /// A carriage return ends a line as a line feed does.
    pub cr_ends: bool,
    /// Characters besides the line feed that end a line.
    pub ends: Vec<u8>,
    /// Characters that throw the line away: kill, interrupt, quit, suspend.
    pub drops: Vec<u8>,
    /// Characters that take one back.
    pub erases: Vec<u8>,
}

/// The line mode in force on the follower, asked through its leader.
pub fn line_mode(leader: impl AsFd) -> io::Result<LineMode> {
    let termios = tcgetattr(leader)?;
    let code = |index: SpecialCodeIndex| Some(termios.special_codes[index]).filter(|&byte| byte != DISABLED);
    let mut drops = vec![code(SpecialCodeIndex::VKILL)];
    if termios.local_modes.contains(LocalModes::ISIG) {
        drops.extend([SpecialCodeIndex::VINTR, SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP].map(code));
    }
    let ends = [SpecialCodeIndex::VEOF, SpecialCodeIndex::VEOL, SpecialCodeIndex::VEOL2].map(code);
    Ok(LineMode {
        canonical: termios.local_modes.contains(LocalModes::ICANON),
        cr_ends: termios.input_modes.contains(InputModes::ICRNL) && !termios.input_modes.contains(InputModes::IGNCR),
        ends: ends.into_iter().flatten().collect(),
        drops: drops.into_iter().flatten().collect(),
        erases: code(SpecialCodeIndex::VERASE).into_iter().collect(),
    })
}

/// `_POSIX_VDISABLE`: a special character that is switched off.
const DISABLED: u8 = if cfg!(target_os = "linux") { 0 } else { 0xff };

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
    fn the_line_mode_of_the_follower_is_seen_through_the_leader() {
        let pty = open(80, 24).unwrap();
        let mode = line_mode(&pty.leader).unwrap();
        assert!(mode.canonical && mode.cr_ends);
        assert_eq!((mode.ends, mode.erases), (vec![0x04], vec![0x7f]));
        assert!(mode.drops.contains(&0x15) && mode.drops.contains(&0x03));
        let mut raw = rustix::termios::tcgetattr(&pty.follower).unwrap();
        raw.make_raw();
        rustix::termios::tcsetattr(&pty.follower, rustix::termios::OptionalActions::Now, &raw).unwrap();
        assert!(!line_mode(&pty.leader).unwrap().canonical);
    }

    #[test]
    fn the_size_is_seen_on_both_sides() {
        let pty = open(80, 24).unwrap();
        resize(&pty.leader, 100, 30).unwrap();
        assert_eq!(size(&pty.follower).unwrap(), (100, 30));
    }
}
