//! Changes of the policy files.
//!
//! The directories are watched, not the files: editors replace a file by another one. A directory that is made later is
//! found. What a symbolic link leads to is not watched; for that there is SIGHUP.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use crate::policy::Files;

/// An editor writes, renames and removes within this.
const QUIET: Duration = Duration::from_millis(100);

/// Directories that are made one after the other while they are looked for.
const MAX_MADE: usize = 16;
/// What happens to a file in its directory.
const CHANGES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(ARMED);
/// A directory that is waited for is made, or moved to its place.
const APPEARS: WatchFlags = WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(ARMED);
/// One directory may be watched for a file of its own and for another's directory: the kernel has one watch for both. A
/// directory that is itself moved away is told of without a name.
const ARMED: WatchFlags = WatchFlags::ONLYDIR.union(WatchFlags::MASK_ADD).union(WatchFlags::MOVE_SELF);
/// What is told without a name and may hide a change: too many events, a directory that is gone or moved.
const UNNAMED: ReadFlags = ReadFlags::QUEUE_OVERFLOW.union(ReadFlags::IGNORED).union(ReadFlags::MOVE_SELF);

/// A watch on the directories of the policy files; of one that is not there, on the nearest above it that is.
#[derive(Debug)]
pub(crate) struct Watch {
    fd: OwnedFd,
    files: Vec<PathBuf>,
    /// Names that matter, of the files and of directories that are waited for.
    names: BTreeSet<OsString>,
    /// When the change is acted on.
    pub(crate) due: Option<Instant>,
}

impl Watch {
    /// Watches what exists.
    pub(crate) fn new(files: &Files) -> io::Result<Self> {
        let fd = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let files = [&files.leash, &files.shoal].into_iter().flatten().cloned().collect();
        let mut watch = Self { fd, files, names: BTreeSet::new(), due: None };
        watch.arm()?;
        Ok(watch)
    }

    /// Watches each file's directory, again where it is watched already.
    fn arm(&mut self) -> io::Result<()> {
        for file in self.files.clone() {
            for _ in 0..MAX_MADE {
                match self.arm_for(&file)? {
                    // It was made between the two looks.
                    Some(awaited) if awaited.exists() => {}
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Watches for a file; returns the directory that is waited for instead, if its own is not there.
    fn arm_for(&mut self, file: &Path) -> io::Result<Option<PathBuf>> {
        let mut awaited = file;
        loop {
            let (Some(dir), Some(name)) = (awaited.parent(), awaited.file_name()) else { return Ok(None) };
            match add_watch(&self.fd, dir, if awaited == file { CHANGES } else { APPEARS }) {
                Ok(_number) => {
                    self.names.insert(name.to_owned());
                    return Ok(Some(awaited.to_owned()).filter(|awaited| awaited != file));
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => awaited = dir,
                // For what this process may not read there is SIGHUP.
                Err(rustix::io::Errno::ACCESS) => return Ok(None),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Takes what happened; a change of one of the files is due a moment later, once for a burst of them.
    pub(crate) fn on_ready(&mut self, now: Instant) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.fd, &mut buffer);
        let mut matters = false;
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsString::from_vec(name.to_bytes().to_vec()));
                    matters |= name.is_some_and(|name| self.names.contains(&name));
                    matters |= event.events().intersects(UNNAMED);
                }
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        if matters {
            self.due = Some(now + QUIET);
            self.arm()?;
        }
        Ok(())
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
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
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
    }

    #[test]
    fn a_directory_that_is_made_later_is_watched_from_then_on() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let leash = dir.join("config/shoal/leash.toml");
        let files = Files { leash: Some(leash.clone()), named: false, shoal: None, home: None };
        let mut watch = Watch::new(&files).unwrap();
        let now = crate::kernel::clock();
        std::fs::create_dir(dir.join("other")).unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due, None);
        std::fs::create_dir(dir.join("config")).unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due.take(), Some(now + QUIET));
        std::fs::create_dir(leash.parent().unwrap()).unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due.take(), Some(now + QUIET));
        std::fs::write(&leash, "x").unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due, Some(now + QUIET));
    }

    #[test]
    fn one_directory_is_watched_for_a_file_and_for_a_directory_in_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let (leash, shoal) = (dir.join("leash.toml"), dir.join("later/shoal.toml"));
        let files = Files { leash: Some(leash.clone()), named: false, shoal: Some(shoal), home: None };
        let mut watch = Watch::new(&files).unwrap();
        let now = crate::kernel::clock();
        std::fs::write(&leash, "x").unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due.take(), Some(now + QUIET));
        std::fs::create_dir(dir.join("later")).unwrap();
        std::fs::remove_file(&leash).unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due, Some(now + QUIET));
    }

    #[test]
    fn a_directory_that_is_moved_away_or_removed_is_found_again() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let config = dir.join("config");
        std::fs::create_dir_all(&config).unwrap();
        let leash = config.join("leash.toml");
        let files = Files { leash: Some(leash.clone()), named: false, shoal: None, home: None };
        let mut watch = Watch::new(&files).unwrap();
        let now = crate::kernel::clock();
        std::fs::rename(&config, dir.join("old")).unwrap();
        watch.on_ready(now).unwrap();
        assert_eq!(watch.due.take(), Some(now + QUIET));
        for _ in 0..2 {
            std::fs::create_dir(&config).unwrap();
            watch.on_ready(now).unwrap();
            assert_eq!(watch.due.take(), Some(now + QUIET));
            std::fs::write(&leash, "x").unwrap();
            watch.on_ready(now).unwrap();
            assert_eq!(watch.due.take(), Some(now + QUIET));
            std::fs::remove_dir_all(&config).unwrap();
            watch.on_ready(now).unwrap();
            assert_eq!(watch.due.take(), Some(now + QUIET));
        }
    }
}
