//! Copying and renaming, across devices too.

use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, Dir, FileError, FileErrorKind, WriteMode};

use super::dir::OpenDir;
use super::read::{Reader, io_error};
use super::{BASE, cancelled, check, fail, place, remove, write};

/// Directories below the copied one that may be open at a time; deeper trees are refused.
const MAX_DEPTH: usize = 256;
/// Bytes moved between two looks at the token.
const CHUNK: usize = 256 * 1024;

/// Copies contents and mode of one file.
pub(super) fn copy_file(from: At<'_>, to: At<'_>, cancel: &CancelToken) -> Result<(), FileError> {
    let source = stat(from)?;
    if FileType::from_raw_mode(source.st_mode) == FileType::Directory {
        return Err(FileError::new(FileErrorKind::IsDir, ""));
    }
    if stat(to).is_ok_and(|target| (target.st_dev, target.st_ino) == (source.st_dev, source.st_ino)) {
        return Err(FileError::new(FileErrorKind::Io, "source and destination are the same file"));
    }
    let mut reader = Reader::open(from, cancel)?;
    let mode = Mode::from_raw_mode(source.st_mode) & Mode::from_raw_mode(0o777);
    let mut file = write::open_with(to, WriteMode::Truncate, mode)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        let n = match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(_) if cancel.is_set() => return Err(cancelled()),
            Err(e) => return Err(io_error(&e, from)),
        };
        write::all(&mut file, &chunk[..n], cancel, to)?;
    }
    // The umask applies to the creation; a copy has the mode of its source. Not every file system keeps modes.
    match rustix::fs::fchmod(&file, mode) {
        Ok(()) | Err(Errno::PERM | Errno::NOTSUP) => Ok(()),
        Err(e) => Err(fail(e, to)),
    }
}

fn stat(at: At<'_>) -> Result<Stat, FileError> {
    let (dir, path) = place(at)?;
    rustix::fs::statat(dir, path, AtFlags::empty()).map_err(|e| fail(e, at))
}

/// Renames; across devices it copies the tree and deletes the source.
pub(super) fn rename(from: At<'_>, to: At<'_>, cancel: &CancelToken) -> Result<(), FileError> {
    let (from_dir, from_path) = place(from)?;
    let (to_dir, to_path) = place(to)?;
    match rustix::fs::renameat(from_dir, from_path, to_dir, to_path) {
        Ok(()) => Ok(()),
        Err(Errno::XDEV) => {
            copy_tree((from_dir, from_path), (to_dir, to_path), cancel, 0).map_err(|e| e.at(to))?;
            remove::remove(from, true, cancel)
        }
        // Which of the two is missing decides whose name the message carries.
        Err(e) => Err(fail(e, if stat_nofollow(from_dir, from_path).is_err() { from } else { to })),
    }
}

fn stat_nofollow(dir: BorrowedFd<'_>, path: &[u8]) -> Result<Stat, Errno> {
    rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW)
}

/// Why a tree was not copied.
pub(super) enum CopyError {
    Errno(Errno),
    File(FileError),
}

impl CopyError {
    /// The evaluator's error.
    pub(super) fn at(self, at: At<'_>) -> FileError {
        match self {
            Self::Errno(errno) => fail(errno, at),
            Self::File(error) => error,
        }
    }
}

impl From<Errno> for CopyError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

type Spot<'a> = (BorrowedFd<'a>, &'a [u8]);

/// Copies files, directories and symbolic links; anything else has no copy.
pub(super) fn copy_tree(from: Spot<'_>, to: Spot<'_>, cancel: &CancelToken, depth: usize) -> Result<(), CopyError> {
    check(cancel).map_err(CopyError::File)?;
    if depth > MAX_DEPTH {
        let text = format!("directories are nested deeper than {MAX_DEPTH}");
        return Err(CopyError::File(FileError::new(FileErrorKind::Io, text)));
    }
    let stat = stat_nofollow(from.0, from.1)?;
    let mode = Mode::from_raw_mode(stat.st_mode) & Mode::from_raw_mode(0o777);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from.0, from.1, Vec::new())?;
            Ok(rustix::fs::symlinkat(&*target, to.0, to.1)?)
        }
        FileType::Directory => {
            let flags = BASE | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            let source = rustix::fs::openat(from.0, from.1, flags, Mode::empty())?;
            rustix::fs::mkdirat(to.0, to.1, mode | Mode::RWXU)?;
            let target = rustix::fs::openat(to.0, to.1, flags, Mode::empty())?;
            for entry in rustix::fs::Dir::read_from(&source)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if !matches!(name, b"." | b"..") {
                    copy_tree((source.as_fd(), name), (target.as_fd(), name), cancel, depth + 1)?;
                }
            }
            Ok(rustix::fs::fchmod(&target, mode)?)
        }
        FileType::RegularFile => copy_bytes(from, to, mode, cancel),
        _ => {
            let text = "only files, directories and symbolic links can be moved to another file system";
            Err(CopyError::File(FileError::new(FileErrorKind::Io, text)))
        }
    }
}

fn copy_bytes(from: Spot<'_>, to: Spot<'_>, mode: Mode, cancel: &CancelToken) -> Result<(), CopyError> {
    let source = rustix::fs::openat(from.0, from.1, BASE | OFlags::RDONLY | OFlags::NOFOLLOW, Mode::empty())?;
    let flags = BASE | OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let target = rustix::fs::openat(to.0, to.1, flags, mode)?;
    let mut chunk = vec![0; CHUNK];
    loop {
        check(cancel).map_err(CopyError::File)?;
        let n = rustix::io::read(&source, &mut chunk)?;
        if n == 0 {
            return Ok(rustix::fs::fchmod(&target, mode)?);
        }
        let mut rest = &chunk[..n];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&target, rest)?..];
        }
    }
}

/// The same for a destination given as an absolute path.
pub(super) fn copy_to(from: Spot<'_>, to: &[u8], cancel: &CancelToken) -> Result<(), CopyError> {
    copy_tree(from, (CWD, to), cancel, 0)
}

/// Moves what is at an absolute path to another one, across devices too.
pub(super) fn move_back(from: &[u8], to: &[u8]) -> Result<(), FileError> {
    let here: Arc<dyn Dir> = Arc::new(OpenDir::lost(b"/"));
    let at = |path| At { dir: &here, path };
    rename(at(from), at(to), &CancelToken::new())
}
