//! Reading: whole files, streams, directories, all of them ended by the run's token.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags};
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, Entry, FileError, FileErrorKind, FileKind};
use shoal_sys::poll::{self, Ready};

use super::{BASE, cancelled, check, fail, kind_of, place};

/// How soon a wait for a pipe or device notices the token.
const PATIENCE: Duration = Duration::from_millis(20);
/// One read; the token is looked at between two.
const CHUNK: usize = 64 * 1024;

/// An open file that ends when its run does.
pub(super) struct Reader {
    file: File,
    cancel: CancelToken,
    waits: bool,
}

impl Reader {
    /// Opens for reading. A directory is refused here, not at the first read.
    pub(super) fn open(at: At<'_>, cancel: &CancelToken) -> Result<Self, FileError> {
        let (dir, path) = place(at)?;
        // Non-blocking: opening a FIFO without a writer would wait where the token cannot reach.
        let flags = BASE | OFlags::RDONLY | OFlags::NONBLOCK;
        let fd = rustix::fs::openat(dir, path, flags, Mode::empty()).map_err(|e| fail(e, at))?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| fail(e, at))?;
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        if kind == rustix::fs::FileType::Directory {
            return Err(FileError::new(FileErrorKind::IsDir, ""));
        }
        let waits = kind != rustix::fs::FileType::RegularFile;
        Ok(Self { file: File::from(fd), cancel: cancel.clone(), waits })
    }
}

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.cancel.is_set() {
                return Err(io::Error::other("cancelled"));
            }
            if self.waits && !poll::wait(self.file.as_fd(), Ready::READ, Some(PATIENCE))? {
                continue;
            }
            match self.file.read(buf) {
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                other => return other,
            }
        }
    }
}

/// Opens a file as a program's standard input.
pub(crate) fn open_input(at: At<'_>) -> Result<OwnedFd, FileError> {
    let reader = Reader::open(at, &CancelToken::new())?;
    let fd = OwnedFd::from(reader.file);
    shoal_sys::fd::set_nonblocking(&fd, false).map_err(|e| io_error(&e, at))?;
    Ok(fd)
}

/// The whole contents, at most `limit` bytes.
pub(super) fn whole(at: At<'_>, limit: u64, cancel: &CancelToken) -> Result<Vec<u8>, FileError> {
    let mut reader = Reader::open(at, cancel)?;
    let too_large = || FileError::new(FileErrorKind::TooLarge, format!("the limit is {limit} bytes"));
    let size = reader.file.metadata().map_or(0, |meta| meta.len());
    if size > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            Err(_) if cancel.is_set() => return Err(cancelled()),
            Err(e) => return Err(io_error(&e, at)),
        }
        if bytes.len() as u64 > limit {
            return Err(too_large());
        }
    }
}

/// Names in a directory, the two that name itself and its parent left out.
pub(super) fn list(at: At<'_>, cancel: &CancelToken) -> Result<Vec<Entry>, FileError> {
    let (dir, path) = place(at)?;
    let flags = BASE | OFlags::RDONLY | OFlags::DIRECTORY;
    let fd = rustix::fs::openat(dir, path, flags, Mode::empty()).map_err(|e| fail(e, at))?;
    let mut entries = Vec::new();
    for entry in rustix::fs::Dir::read_from(&fd).map_err(|e| fail(e, at))? {
        check(cancel)?;
        let entry = entry.map_err(|e| fail(e, at))?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems leave the kind out of the directory.
            rustix::fs::FileType::Unknown => rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileKind::Other, |stat| kind_of(rustix::fs::FileType::from_raw_mode(stat.st_mode))),
            kind => kind_of(kind),
        };
        entries.push(Entry { name: name.to_vec(), kind });
    }
    Ok(entries)
}

/// A failed read or write in the evaluator's terms.
pub(super) fn io_error(error: &io::Error, at: At<'_>) -> FileError {
    match rustix::io::Errno::from_io_error(error) {
        Some(errno) => fail(errno, at),
        None => FileError::new(FileErrorKind::Io, error.to_string()),
    }
}
