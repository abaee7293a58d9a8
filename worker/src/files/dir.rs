//! Working directories and the translation of failures.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use shoal_eval::host::{At, Dir, FileError, FileErrorKind};
use shoal_value::PathValue;

/// A directory held open as a working directory.
#[derive(Debug)]
pub(crate) struct OpenDir {
    /// `None` when it could not be opened any more: a session keeps its directory's name over a restart.
    fd: Option<OwnedFd>,
    path: PathValue,
}

impl OpenDir {
    /// Opens an absolute, normalised path. Needs the right to search it, not to list it.
    pub(crate) fn open(path: &[u8]) -> Result<Self, Errno> {
        #[cfg(target_os = "linux")]
        let access = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        let access = OFlags::RDONLY;
        let fd = rustix::fs::openat(CWD, path, access | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::empty())?;
        Ok(Self { fd: Some(fd), path: PathValue::from(path) })
    }

    /// A directory that is gone: everything relative to it fails so.
    pub(crate) fn lost(path: &[u8]) -> Self {
        Self { fd: None, path: PathValue::from(path) }
    }

    /// The directory was removed.
    pub(crate) fn is_gone(&self) -> bool {
        self.fd.as_ref().is_none_or(|fd| rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_nlink == 0))
    }
}

impl Dir for OpenDir {
    fn path(&self) -> &PathValue {
        &self.path
    }
}

/// The worker's own type behind the evaluator's handle.
pub(crate) fn open_dir<'a>(at: &At<'a>) -> Option<&'a OpenDir> {
    (&**at.dir as &dyn Any).downcast_ref()
}

/// Directory and path for a call of the `*at` family.
pub(super) fn place<'a>(at: At<'a>) -> Result<(BorrowedFd<'a>, &'a [u8]), FileError> {
    if at.path.contains(&0) {
        return Err(FileError::new(FileErrorKind::Io, "a path cannot hold a NUL byte"));
    }
    if at.path.is_empty() {
        return Err(FileError::new(FileErrorKind::NotFound, "the path is empty"));
    }
    if at.path.starts_with(b"/") {
        return Ok((CWD, at.path));
    }
    let dir = open_dir(&at).ok_or_else(|| FileError::new(FileErrorKind::Io, "a working directory of another host"))?;
    match &dir.fd {
        // A removed directory still lists as an empty one, which nobody means.
        Some(fd) if !dir.is_gone() => Ok((fd.as_fd(), at.path)),
        Some(_) | None => Err(FileError::new(FileErrorKind::CwdGone, "")),
    }
}

/// The absolute path of a place, `.` and `..` taken out by their names as a shell's `cd` does.
pub(super) fn resolve(at: At<'_>) -> Result<Vec<u8>, FileError> {
    place(at)?;
    if at.path.starts_with(b"/") {
        return Ok(normal(at.path));
    }
    if open_dir(&at).is_some_and(OpenDir::is_gone) {
        return Err(FileError::new(FileErrorKind::CwdGone, ""));
    }
    let joined = [at.dir.path().as_bytes(), b"/", at.path].concat();
    Ok(normal(&joined))
}

/// An absolute path without `.`, `..` and empty parts.
pub(crate) fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() { b"/".to_vec() } else { out }
}

/// The evaluator's error for a failed call on `at`.
pub(super) fn fail(errno: Errno, at: At<'_>) -> FileError {
    let relative = !at.path.starts_with(b"/");
    let kind = match errno {
        Errno::NOENT if relative && open_dir(&at).is_some_and(OpenDir::is_gone) => FileErrorKind::CwdGone,
        Errno::NOENT => FileErrorKind::NotFound,
        Errno::EXIST => FileErrorKind::Exists,
        Errno::ISDIR => FileErrorKind::IsDir,
        Errno::NOTDIR => FileErrorKind::NotDir,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => FileErrorKind::Permission,
        _ => FileErrorKind::Io,
    };
    FileError::new(kind, text_of(errno))
}

/// The system's words for an error number.
pub(crate) fn text_of(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
