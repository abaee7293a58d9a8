//! Handles of processes on macOS, which has none of its own: a queue that watches for the end, and the number.
//!
//! The number of a child names that child until it is reaped. For other processes it may name another one by the time a
//! signal is sent; nothing on macOS closes that gap.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::kqueue;
use crate::process::Exit;

/// A handle of a process; readable (in `poll`) when the process has ended.
#[derive(Debug)]
pub struct Pidfd {
    queue: OwnedFd,
    pid: i32,
    reaped: AtomicBool,
}

impl Pidfd {
    /// Opens the handle of a process by number; `ESRCH` when there is none.
    pub fn open(pid: i32) -> io::Result<Self> {
        let number = usize::try_from(pid).ok().filter(|&pid| pid > 0);
        let number = number.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let queue = kqueue::new()?;
        let watched = kqueue::add(&queue, number, libc::EVFILT_PROC, 0, libc::NOTE_EXIT);
        // A child that ended before it was watched is not told about: the queue gets an event that is due at once.
        let has_ended = crate::procfs::process(pid)?.is_some_and(|process| process.state == 'Z');
        match watched {
            Err(error) if !has_ended => return Err(error),
            _ if has_ended => kqueue::add(&queue, number, libc::EVFILT_TIMER, libc::EV_ONESHOT, 0)?,
            _ => {}
        }
        Ok(Self { queue, pid, reaped: AtomicBool::new(false) })
    }

    /// Signals the process; `Ok(false)` when it has ended.
    pub fn signal(&self, number: i32) -> io::Result<bool> {
        if self.reaped.load(Ordering::SeqCst) {
            return Ok(false);
        }
        crate::process::kill(self.pid, number)
    }

    /// Reaps the process, a child of ours, if it has ended.
    pub fn try_reap(&self) -> io::Result<Option<Exit>> {
        let exit = crate::process::try_reap_pid(self.pid)?;
        if exit.is_some() {
            self.reaped.store(true, Ordering::SeqCst);
        }
        Ok(exit)
    }

    /// Whether the process has ended (it may still have to be reaped).
    pub fn has_ended(&self) -> io::Result<bool> {
        crate::poll::wait(self.queue.as_fd(), crate::poll::Ready::READ, Some(std::time::Duration::ZERO))
    }

    /// The pid; `None` when the process was reaped.
    pub fn pid(&self) -> io::Result<Option<i32>> {
        Ok(Some(self.pid).filter(|_| !self.reaped.load(Ordering::SeqCst)))
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
