//! Children of this process: how they ended and how to reach them.

use std::io;
use std::time::Duration;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It exited with this code.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
}

impl Exit {
    fn from_wait(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(u8::try_from(libc::WTERMSIG(status)).unwrap_or(0))
        } else {
            Self::Code(u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX))
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A child that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaped {
    /// Its pid; free for reuse now.
    pub pid: i32,
    /// How it ended.
    pub exit: Exit,
    /// CPU time of it and of the children it waited for.
    pub cpu: Duration,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
}

/// Reaps one child that has ended, whichever it is; `None` while all others run, or when there are none.
pub fn reap() -> io::Result<Option<Reaped>> {
    wait4(-1, libc::WNOHANG)
}

/// Waits for one child to end and reaps it.
pub fn reap_pid(pid: i32) -> io::Result<Exit> {
    match wait4(pid, 0)? {
        Some(reaped) => Ok(reaped.exit),
        None => Err(io::Error::from_raw_os_error(libc::ECHILD)),
    }
}

/// Reaps one child if it has ended; `None` while it has not.
#[cfg(target_os = "macos")]
pub(crate) fn try_reap_pid(pid: i32) -> io::Result<Option<Exit>> {
    Ok(wait4(pid, libc::WNOHANG)?.map(|reaped| reaped.exit))
}

fn wait4(pid: i32, options: libc::c_int) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are live and of the types the call writes.
        let got = unsafe { libc::wait4(pid, &raw mut status, options, usage.as_mut_ptr()) };
        if got > 0 {
            // SAFETY: zeroed memory is a valid rusage, whatever the call wrote of it.
            let usage = unsafe { usage.assume_init() };
            let exit = Exit::from_wait(status);
            let cpu = duration(usage.ru_utime) + duration(usage.ru_stime);
            return Ok(Some(Reaped { pid: got, exit, cpu, peak_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0) }));
        }
        if got == 0 {
            return Ok(None);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) if options & libc::WNOHANG != 0 => return Ok(None),
            _ => return Err(error),
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let micros = u32::try_from(time.tv_usec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), micros.saturating_mul(1000))
}

/// Signals a process by number. Only for processes that cannot have been reaped: own children, or everything inside a
/// jail by its pid 1. `Ok(false)` when there is none.
pub fn kill(pid: i32, signal: i32) -> io::Result<bool> {
    // SAFETY: takes numbers, no memory.
    sent(unsafe { libc::kill(pid, signal) })
}

/// Signals every process of a group. `Ok(false)` when there is none.
pub fn kill_group(group: i32, signal: i32) -> io::Result<bool> {
    // SAFETY: takes numbers, no memory.
    sent(unsafe { libc::killpg(group, signal) })
}

fn sent(result: libc::c_int) -> io::Result<bool> {
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ESRCH) { Ok(false) } else { Err(error) }
}

/// The pid of this process in its pid namespace.
pub fn pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The effective uid.
pub fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The effective gid.
pub fn gid() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Sets the file mode mask and returns the old one.
pub fn umask(mask: u32) -> u32 {
    // SAFETY: takes a number and cannot fail.
    let old = unsafe { libc::umask(mask as libc::mode_t) };
    #[allow(clippy::useless_conversion)] // u16 on macOS
    u32::from(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::{Command, Program};

    fn sh(script: &str) -> i32 {
        let argv = ["sh", "-c", script].map(|s| std::ffi::CString::new(s).unwrap()).to_vec();
        Command::new(Program::Path(c"/bin/sh".to_owned()), argv).setsid().spawn().unwrap().pid
    }

    #[test]
    fn an_end_is_told_with_its_usage() {
        assert_eq!(reap_pid(sh("exit 7")).unwrap(), Exit::Code(7));
        assert_eq!(reap_pid(sh("kill -9 $$")).unwrap(), Exit::Signal(9));
    }

    #[test]
    fn reap_takes_any_child_and_none_is_not_an_error() {
        let pid = sh("exit 1");
        // The pid cannot be reused before it is reaped; wait for the end without reaping.
        let id = rustix::process::WaitId::Pid(rustix::process::Pid::from_raw(pid).unwrap());
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(id, options).unwrap();
        let reaped = reap().unwrap().unwrap();
        assert_eq!((reaped.pid, reaped.exit), (pid, Exit::Code(1)));
        assert!(reaped.peak_kib > 0);
        assert_eq!(reap().unwrap(), None);
    }

    #[test]
    fn a_group_is_signalled_and_an_absent_one_is_told() {
        let pid = sh("sleep 100 & wait");
        assert!(kill_group(pid, libc::SIGKILL).unwrap());
        assert_eq!(reap_pid(pid).unwrap(), Exit::Signal(9));
        assert!(!kill(pid, 0).unwrap());
    }

    #[test]
    fn the_mask_is_swapped() {
        let old = umask(0o77);
        assert_eq!(umask(old), 0o77);
    }
}
