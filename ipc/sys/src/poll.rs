//! Waiting for descriptors.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

/// What to wait for on one descriptor, and what came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Something to read, or the end of the peer.
    pub read: bool,
    /// Room to write, or the end of the peer.
    pub write: bool,
    /// The peer closed, or an error is pending; reported without being asked for.
    pub hang_up: bool,
}

impl Ready {
    /// Wait for input.
    pub const READ: Self = Self { read: true, write: false, hang_up: false };
    /// Wait for room to write.
    pub const WRITE: Self = Self { read: false, write: true, hang_up: false };

    /// Anything at all.
    pub const fn any(self) -> bool {
        self.read || self.write || self.hang_up
    }
}

/// Waits until one of `interests` is ready or `timeout` has passed (`None`: no end), and returns what is ready, in the
/// same order. All entries are empty after a timeout. A signal handler's interruption starts the wait again.
pub fn poll(interests: &[(BorrowedFd<'_>, Ready)], timeout: Option<Duration>) -> io::Result<Vec<Ready>> {
    let mut fds: Vec<PollFd<'_>> = interests
        .iter()
        .map(|(fd, want)| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, want.read);
            flags.set(PollFlags::OUT, want.write);
            PollFd::from_borrowed_fd(*fd, flags)
        })
        .collect();
    let timeout = timeout
        .map(|t| Timespec { tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX), tv_nsec: t.subsec_nanos().into() });
    loop {
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            other => {
                other?;
                break;
            }
        }
    }
    Ok(fds
        .iter()
        .map(|fd| {
            let got = fd.revents();
            Ready {
                read: got.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR),
                write: got.intersects(PollFlags::OUT),
                hang_up: got.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
            }
        })
        .collect())
}

/// Waits for one descriptor; `false` after the timeout.
pub fn wait(fd: BorrowedFd<'_>, want: Ready, timeout: Option<Duration>) -> io::Result<bool> {
    Ok(poll(&[(fd, want)], timeout)?.iter().any(|ready| ready.any()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fd::pipe;
    use std::os::fd::AsFd;

    #[test]
    fn tells_what_is_ready_in_order() {
        let (read, write) = pipe().unwrap();
        let interests = [(read.as_fd(), Ready::READ), (write.as_fd(), Ready::WRITE)];
        let ready = poll(&interests, None).unwrap();
        assert!(!ready[0].any() && ready[1].write);
        rustix::io::write(&write, b"x").unwrap();
        assert!(poll(&interests, None).unwrap()[0].read);
    }

    #[test]
    fn a_timeout_is_empty_and_an_end_is_a_hang_up() {
        let (read, write) = pipe().unwrap();
        assert!(!wait(read.as_fd(), Ready::READ, Some(Duration::ZERO)).unwrap());
        drop(write);
        assert!(poll(&[(read.as_fd(), Ready::READ)], None).unwrap()[0].hang_up);
    }
}
