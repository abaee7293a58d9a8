//! Deleting for good.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, FileError, FileErrorKind};

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
