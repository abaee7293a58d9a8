//! Event queues: what descriptors of processes and signals are on Linux. A queue is readable while an event waits in it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A new queue, close-on-exec.
pub(crate) fn new() -> io::Result<OwnedFd> {
    // SAFETY: takes nothing and makes a new descriptor.
    let number = unsafe { libc::kqueue() };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call made the descriptor, and nobody else owns it.
    let queue = unsafe { OwnedFd::from_raw_fd(number) };
    crate::fd::set_cloexec(&queue, true)?;
    Ok(queue)
}

fn event(ident: usize, filter: i16, flags: u16, fflags: u32) -> libc::kevent {
    libc::kevent { ident, filter, flags: libc::EV_ADD | flags, fflags, data: 0, udata: std::ptr::null_mut() }
}

/// Has the queue watch for something.
pub(crate) fn add(queue: &OwnedFd, ident: usize, filter: i16, flags: u16, fflags: u32) -> io::Result<()> {
    let change = event(ident, filter, flags, fflags);
    // SAFETY: one live change is read, no event is written, and there is no time limit to read.
    let result =
        unsafe { libc::kevent(queue.as_raw_fd(), &raw const change, 1, std::ptr::null_mut(), 0, std::ptr::null()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes the next event and returns what it is about; `None` when none waits.
pub(crate) fn next(queue: &OwnedFd) -> io::Result<Option<usize>> {
    let mut got = event(0, 0, 0, 0);
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: no change is read, at most one event is written to a live place, and the time limit is live.
    let count = unsafe { libc::kevent(queue.as_raw_fd(), std::ptr::null(), 0, &raw mut got, 1, &raw const now) };
    match count {
        1.. => Ok(Some(got.ident)),
        0 => Ok(None),
        _ => Err(io::Error::last_os_error()),
    }
}
