//! Changes of the policy files.
//!
//! The directories are watched, not the files: editors replace a file by another one. What a symbolic link leads to is
//! not watched; for that there is SIGHUP.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use crate::policy::Files;

/// An editor writes, renames and removes within this.
const QUIET: Duration = Duration::from_millis(100);

/// A watch on the directories of the policy files.
#[derive(Debug)]
pub(crate) struct Watch {
    fd: OwnedFd,
    names: BTreeSet<OsString>,
    /// When the change is acted on.
    pub(crate) due: Option<Instant>,
}

impl Watch {
    /// Watches the directories that exist.
    pub(crate) fn new(files: &Files) -> io::Result<Self> {
        let fd = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE
            | WatchFlags::ONLYDIR;
        let mut names = BTreeSet::new();
        for file in [&files.leash, &files.shoal].into_iter().flatten() {
            let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else { continue };
            match add_watch(&fd, dir, flags) {
                Ok(_number) => {
                    names.insert(name.to_owned());
                }
                // A configuration directory that is made later is found by SIGHUP.
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::ACCESS) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Self { fd, names, due: None })
    }

    /// Takes what happened; a change of one of the files is due a moment later, once for a burst of them.
    pub(crate) fn on_ready(&mut self, now: Instant) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.fd, &mut buffer);
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsString::from_vec(name.to_bytes().to_vec()));
                    if name.is_some_and(|name| self.names.contains(&name)) {
                        self.due = Some(now + QUIET);
                    }
                }
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_once_and_others_are_not() {
        let dir = std::env::temp_dir().join(format!("shoal-watch-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let files = Files { leash: Some(dir.join("leash.toml")), named: false, shoal: None, home: None };
        let mut watch = Watch::new(&files).unwrap();
        let now = crate::kernel::clock();
        std::fs::write(dir.join("other.toml"), "x").unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due, None);
        std::fs::write(dir.join("new"), "x").unwrap();
        std::fs::rename(dir.join("new"), dir.join("leash.toml")).unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due, Some(now + QUIET));
        let gone = Files { leash: Some("/nowhere/leash.toml".into()), ..files };
        assert!(Watch::new(&gone).is_ok());
        std::fs::remove_dir_all(dir).unwrap();
    }
}
