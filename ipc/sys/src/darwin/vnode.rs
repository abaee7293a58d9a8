//! Changes of directories.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::kqueue;

/// A watch on directories; readable when something was made, renamed or removed in one of them.
#[derive(Debug)]
pub struct Directories {
    queue: OwnedFd,
    open: Vec<OwnedFd>,
}

impl Directories {
    /// A watch on nothing yet.
    pub fn new() -> io::Result<Self> {
        Ok(Self { queue: kqueue::new()?, open: Vec::new() })
    }

    /// Watches one more directory.
    pub fn add(&mut self, dir: &Path) -> io::Result<()> {
        let fd = rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let number = usize::try_from(fd.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let changes = libc::NOTE_WRITE | libc::NOTE_DELETE | libc::NOTE_RENAME;
        kqueue::add(&self.queue, number, libc::EVFILT_VNODE, libc::EV_CLEAR, changes)?;
        self.open.push(fd);
        Ok(())
    }

    /// Takes what happened; whether anything did.
    pub fn take(&self) -> io::Result<bool> {
        let mut any = false;
        while kqueue::next(&self.queue)?.is_some() {
            any = true;
        }
        Ok(any)
    }
}

impl AsFd for Directories {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
