//! Deleting for good, and the trash.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, FileError, FileErrorKind};
use shoal_value::PathValue;

use super::transfer::copy_to;
use super::{BASE, check, fail, place};

/// Directories below the deleted one that may be open at a time; deeper trees are refused.
const MAX_DEPTH: usize = 512;

/// Deletes a file, an empty directory, or with `recursive` a tree. Symbolic links are deleted, never followed.
pub(super) fn remove(at: At<'_>, recursive: bool, cancel: &CancelToken) -> Result<(), FileError> {
    let (dir, path) = place(at)?;
    let stat = rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| fail(e, at))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return rustix::fs::unlinkat(dir, path, AtFlags::empty()).map_err(|e| fail(e, at));
    }
    if recursive {
        clear(dir, path, cancel, 0).map_err(|e| e.unwrap_or_else(|errno| fail(errno, at)))?;
    }
    rustix::fs::unlinkat(dir, path, AtFlags::REMOVEDIR).map_err(|e| fail(e, at))
}

/// An error of the walk: a call that failed, or a verdict of ours.
enum ClearError {
    Errno(Errno),
    File(FileError),
}

impl ClearError {
    fn unwrap_or_else(self, make: impl FnOnce(Errno) -> FileError) -> FileError {
        match self {
            Self::Errno(errno) => make(errno),
            Self::File(error) => error,
        }
    }
}

impl From<Errno> for ClearError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// Empties a directory. Each level goes through a descriptor opened without following, so a tree that is changed
/// meanwhile cannot lead outside.
fn clear(dir: BorrowedFd<'_>, path: &[u8], cancel: &CancelToken, depth: usize) -> Result<(), ClearError> {
    if depth > MAX_DEPTH {
        let text = format!("directories are nested deeper than {MAX_DEPTH}");
        return Err(ClearError::File(FileError::new(FileErrorKind::Io, text)));
    }
    let flags = BASE | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let open = rustix::fs::openat(dir, path, flags, Mode::empty())?;
    for entry in rustix::fs::Dir::read_from(&open)? {
        check(cancel).map_err(ClearError::File)?;
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        match rustix::fs::unlinkat(&open, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) => {
                clear(open.as_fd(), name, cancel, depth + 1)?;
                rustix::fs::unlinkat(&open, name, AtFlags::REMOVEDIR)?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Moves into the trash under a name that is unique there.
pub(super) fn trash(at: At<'_>, root: &Path, cancel: &CancelToken) -> Result<PathValue, FileError> {
    let (dir, path) = place(at)?;
    rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| fail(e, at))?;
    make_private(root).map_err(|e| no_trash(root, &e))?;
    let name = path.rsplit(|b| *b == b'/').find(|part| !part.is_empty()).unwrap_or(b"root");
    let kept = unique(root, name);
    match rustix::fs::renameat(dir, path, CWD, &*kept) {
        Ok(()) => {}
        Err(Errno::XDEV) => {
            copy_to((dir, path), &kept, cancel).map_err(|e| e.at(at))?;
            remove(at, true, cancel)?;
        }
        Err(e) => return Err(fail(e, at)),
    }
    Ok(PathValue::from(kept))
}

fn no_trash(root: &Path, why: &std::io::Error) -> FileError {
    let root = root.display();
    let text =
        format!("the trash {root} cannot be made: {why}; grant fs.write there, or delete for good with --permanent");
    FileError::new(FileErrorKind::Io, text)
}

/// A directory for this user alone.
fn make_private(root: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root)
}

/// `ROOT/NAME`, with a number in front when that is taken.
fn unique(root: &Path, name: &[u8]) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut wanted = [root.as_os_str().as_bytes(), b"/", name].concat();
    while rustix::fs::statat(CWD, &*wanted, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("/{}-{n}-", std::process::id());
        wanted = [root.as_os_str().as_bytes(), prefix.as_bytes(), name].concat();
    }
    wanted
}
