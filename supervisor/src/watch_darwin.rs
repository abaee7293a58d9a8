//! Changes of the policy files on macOS.
//!
//! Directories are watched: editors replace a file by another one. A file that is written in place is not noticed; for
//! that there is SIGHUP.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use shoal_sys::vnode::Directories;

use crate::policy::Files;

/// An editor writes, renames and removes within this.
const QUIET: Duration = Duration::from_millis(100);

/// A watch on the directories of the policy files.
#[derive(Debug)]
pub(crate) struct Watch {
    directories: Directories,
    /// When the change is acted on.
    pub(crate) due: Option<Instant>,
}

impl Watch {
    /// Watches the directories that exist.
    pub(crate) fn new(files: &Files) -> io::Result<Self> {
        let mut directories = Directories::new()?;
        for file in [&files.leash, &files.shoal].into_iter().flatten() {
            let Some(dir) = file.parent() else { continue };
            match directories.add(dir) {
                Ok(()) => {}
                // A configuration directory that is made later is found by SIGHUP.
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Self { directories, due: None })
    }

    /// Takes what happened; a change is due a moment later, once for a burst of them.
    pub(crate) fn on_ready(&mut self, now: Instant) -> io::Result<()> {
        if self.directories.take()? {
            self.due = Some(now + QUIET);
        }
        Ok(())
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directories.as_fd()
    }
}
