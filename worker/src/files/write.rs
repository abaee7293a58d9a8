//! Writing and making.

use std::fs::File;
use std::io::Write as _;

use rustix::fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, FileError, FileErrorKind, WriteMode};

use super::read::io_error;
use super::{BASE, check, fail, place};

/// Mode of new files and directories before the umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIR_MODE: Mode = Mode::from_raw_mode(0o777);
/// One write; the token is looked at between two.
const CHUNK: usize = 1024 * 1024;

/// Opens for writing, creating if needed.
pub(super) fn open(at: At<'_>, mode: WriteMode) -> Result<File, FileError> {
    open_with(at, mode, FILE_MODE)
}

/// Opens for writing; a new file gets `create`.
pub(super) fn open_with(at: At<'_>, mode: WriteMode, create: Mode) -> Result<File, FileError> {
    let (dir, path) = place(at)?;
    let how = match mode {
        WriteMode::Truncate => OFlags::TRUNC,
        WriteMode::Append => OFlags::APPEND,
    };
    // Non-blocking only for the open: a FIFO that nobody reads is an error, not a wait.
    let flags = BASE | OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | how;
    let fd = rustix::fs::openat(dir, path, flags, create).map_err(|e| fail(e, at))?;
    shoal_sys::fd::set_nonblocking(&fd, false).map_err(|e| io_error(&e, at))?;
    Ok(File::from(fd))
}

/// Writes everything, looking at the token in between.
pub(super) fn all(file: &mut File, bytes: &[u8], cancel: &CancelToken, at: At<'_>) -> Result<(), FileError> {
    for chunk in bytes.chunks(CHUNK) {
        check(cancel)?;
        file.write_all(chunk).map_err(|e| io_error(&e, at))?;
    }
    Ok(())
}

/// Makes one directory.
pub(super) fn make_dir(at: At<'_>) -> Result<(), FileError> {
    let (dir, path) = place(at)?;
    rustix::fs::mkdirat(dir, path, DIR_MODE).map_err(|e| fail(e, at))
}

/// Makes a directory and those above it; existing ones are fine.
pub(super) fn make_dirs(at: At<'_>) -> Result<(), FileError> {
    let (dir, path) = place(at)?;
    let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(i, _)| i).filter(|i| *i > 0);
    for end in ends.chain([path.len()]) {
        let part = &path[..end];
        match rustix::fs::mkdirat(dir, part, DIR_MODE) {
            Ok(()) => {}
            Err(e) => {
                let is_dir = rustix::fs::statat(dir, part, AtFlags::empty())
                    .is_ok_and(|s| rustix::fs::FileType::from_raw_mode(s.st_mode) == rustix::fs::FileType::Directory);
                if !is_dir {
                    let e = if e == Errno::EXIST && end < path.len() { Errno::NOTDIR } else { e };
                    return Err(fail(e, at));
                }
            }
        }
    }
    Ok(())
}

/// Creates an empty file, or sets the time of the last change to now.
pub(super) fn touch(at: At<'_>) -> Result<(), FileError> {
    let (dir, path) = place(at)?;
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    match rustix::fs::utimensat(dir, path, &times, AtFlags::empty()) {
        Ok(()) => return Ok(()),
        Err(Errno::NOENT) => {}
        Err(e) => return Err(fail(e, at)),
    }
    let flags = BASE | OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK;
    match rustix::fs::openat(dir, path, flags, FILE_MODE) {
        Ok(_) => Ok(()),
        Err(Errno::ISDIR) => Err(FileError::new(FileErrorKind::NotFound, "")),
        Err(e) => Err(fail(e, at)),
    }
}
