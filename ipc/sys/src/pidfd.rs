//! Handles of processes: they never name another process, however often a pid is used again.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use crate::process::Exit;

/// A handle of a process; readable (in `poll`) when the process has ended.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl From<OwnedFd> for Pidfd {
    fn from(fd: OwnedFd) -> Self {
        Self(fd)
    }
}

impl Pidfd {
    /// Opens the handle of a process by number; `ESRCH` when there is none. Race-free for own children only.
    pub fn open(pid: i32) -> io::Result<Self> {
        let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        Ok(Self(rustix::process::pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Signals the process; `Ok(false)` when it has ended.
    pub fn signal(&self, number: i32) -> io::Result<bool> {
        let signal = Signal::from_named_raw(number).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        match rustix::process::pidfd_send_signal(&self.0, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Reaps the process, a child of ours, if it has ended.
    pub fn try_reap(&self) -> io::Result<Option<Exit>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let Some(status) = rustix::process::waitid(WaitId::PidFd(self.0.as_fd()), options)? else { return Ok(None) };
        let number = |n: i32| u8::try_from(n).unwrap_or(0);
        Ok(Some(match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Exit::Code(number(code)),
            (None, signal) => Exit::Signal(number(signal.unwrap_or(0))),
        }))
    }

    /// Whether the process has ended (it may still have to be reaped).
    pub fn has_ended(&self) -> io::Result<bool> {
        crate::poll::wait(self.0.as_fd(), crate::poll::Ready::READ, Some(std::time::Duration::ZERO))
    }

    /// The pid in this pid namespace; `None` when the process was reaped or has no number here.
    pub fn pid(&self) -> io::Result<Option<i32>> {
        let number = std::os::fd::AsRawFd::as_raw_fd(&self.0);
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")).and_then(|pid| pid.trim().parse().ok());
        Ok(pid.filter(|&pid: &i32| pid > 0))
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::{Command, Program};
    use std::ffi::CString;

    fn sleeper() -> crate::spawn::Child {
        let argv = ["sleep", "1000"].map(|s| CString::new(s).unwrap()).to_vec();
        Command::new(Program::Path(c"/bin/sleep".to_owned()), argv).spawn().unwrap()
    }

    #[test]
    fn a_child_is_signalled_and_reaped_through_its_handle() {
        let child = sleeper();
        let handle = child.pidfd;
        assert_eq!(handle.pid().unwrap(), Some(child.pid));
        assert!(!handle.has_ended().unwrap());
        assert_eq!(handle.try_reap().unwrap(), None);
        assert!(handle.signal(libc::SIGKILL).unwrap());
        crate::poll::wait(handle.as_fd(), crate::poll::Ready::READ, None).unwrap();
        assert_eq!(handle.try_reap().unwrap(), Some(Exit::Signal(9)));
        assert!(!handle.signal(libc::SIGKILL).unwrap());
        assert_eq!(handle.pid().unwrap(), None);
    }

    #[test]
    fn a_handle_by_number_names_the_same_process() {
        let own = Pidfd::open(crate::process::pid()).unwrap();
        assert_eq!(own.pid().unwrap(), Some(crate::process::pid()));
        assert!(Pidfd::open(0).is_err());
    }
}
