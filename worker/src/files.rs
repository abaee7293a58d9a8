//! The file port: every call relative to an open working directory, so that nothing depends on the process's own.
//!
//! A working directory is a descriptor and the path under which it was opened. Relative paths go through the
//! descriptor: they keep meaning the same directory when it is renamed, and fail as `cwd_gone` when it is removed.

mod dir;
mod read;
mod remove;
mod transfer;
mod trash;
mod undo;
mod write;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, Dir, Entry, FileError, FileErrorKind, FileKind, Files, Meta, WriteMode};
use shoal_value::PathValue;

pub(crate) use dir::{OpenDir, text_of};
use dir::{fail, place};
pub(crate) use read::open_input;
use undo::Before;
pub(crate) use undo::{Inverse, Recorder};

/// Opens a redirect's target, creating it if needed.
pub(crate) fn open_output(at: At<'_>, mode: WriteMode) -> Result<std::os::fd::OwnedFd, FileError> {
    write::open(at, mode).map(Into::into)
}

/// The files of the jail, as the worker sees them.
pub(crate) struct LocalFiles {
    /// Where `rm` moves to.
    trash: PathBuf,
    /// Where inverses go; nowhere without a journal.
    recorder: Option<Arc<dyn Recorder>>,
}

impl LocalFiles {
    /// Files with a trash directory of this path; it is made when it is first needed.
    pub(crate) fn new(trash: PathBuf) -> Self {
        Self { trash, recorder: None }
    }

    /// Keeps the inverses of all changes.
    pub(crate) fn recorded(self, recorder: Arc<dyn Recorder>) -> Self {
        Self { recorder: Some(recorder), ..self }
    }

    /// Changes what is at a place, and records how to take it back.
    fn changing<T>(&self, op: &str, at: At<'_>, change: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
        let recorder = self.recorder.as_ref().filter(|recorder| recorder.is_open());
        let before = recorder.and_then(|_| Before::of(at));
        let result = change();
        if let (Some(recorder), Some(before), Ok(_)) = (recorder, before, &result) {
            recorder.record(op, &before.changed());
        }
        result
    }
}

/// The trash of a user: below the data directory, which the jail lets its session write.
pub(crate) fn trash_of(var: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let absolute = |path: &PathBuf| path.is_absolute();
    let data = var("XDG_DATA_HOME").filter(absolute);
    let home = || var("HOME").filter(absolute).map(|home| home.join(".local/share"));
    data.or_else(home).unwrap_or_else(std::env::temp_dir).join("shoal/trash")
}

impl Files for LocalFiles {
    fn open_dir(&self, at: At<'_>) -> Result<Arc<dyn Dir>, FileError> {
        let path = dir::resolve(at)?;
        OpenDir::open(&path).map(|dir| Arc::new(dir) as Arc<dyn Dir>).map_err(|e| fail(e, at))
    }

    fn meta(&self, at: At<'_>, follow: bool) -> Result<Meta, FileError> {
        let (dir, path) = place(at)?;
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let stat = rustix::fs::statat(dir, path, flags).map_err(|e| fail(e, at))?;
        Ok(meta_of(&stat))
    }

    fn list(&self, at: At<'_>, cancel: &CancelToken) -> Result<Vec<Entry>, FileError> {
        read::list(at, cancel)
    }

    fn read_link(&self, at: At<'_>) -> Result<PathValue, FileError> {
        let (dir, path) = place(at)?;
        let target = rustix::fs::readlinkat(dir, path, Vec::new()).map_err(|e| fail(e, at))?;
        Ok(PathValue::from(target.into_bytes()))
    }

    fn open(&self, at: At<'_>, cancel: &CancelToken) -> Result<Box<dyn io::Read + Send>, FileError> {
        Ok(Box::new(read::Reader::open(at, cancel)?))
    }

    fn read(&self, at: At<'_>, limit: u64, cancel: &CancelToken) -> Result<Vec<u8>, FileError> {
        read::whole(at, limit, cancel)
    }

    fn create(&self, at: At<'_>, mode: WriteMode) -> Result<Box<dyn io::Write + Send>, FileError> {
        // The contents are not known yet: what was there is kept, what comes is compared as it is then.
        Ok(Box::new(write::open(at, mode)?))
    }

    fn write(&self, at: At<'_>, mode: WriteMode, bytes: &[u8], cancel: &CancelToken) -> Result<(), FileError> {
        self.changing("write", at, || {
            let mut file = write::open(at, mode)?;
            write::all(&mut file, bytes, cancel, at)
        })
    }

    fn make_dir(&self, at: At<'_>, parents: bool) -> Result<(), FileError> {
        self.changing("mkdir", at, || if parents { write::make_dirs(at) } else { write::make_dir(at) })
    }

    fn touch(&self, at: At<'_>) -> Result<(), FileError> {
        self.changing("touch", at, || write::touch(at))
    }

    fn copy(&self, from: At<'_>, to: At<'_>, cancel: &CancelToken) -> Result<(), FileError> {
        self.changing("cp", to, || transfer::copy_file(from, to, cancel))
    }

    fn rename(&self, from: At<'_>, to: At<'_>, cancel: &CancelToken) -> Result<(), FileError> {
        let recorder = self.recorder.as_ref().filter(|recorder| recorder.is_open());
        let before = recorder.and_then(|_| Some((Before::of(from)?, Before::of(to)?, dir::resolve(to).ok()?)));
        transfer::rename(from, to, cancel)?;
        if let (Some(recorder), Some((source, replaced, to))) = (recorder, before) {
            // Taken back newest first: the file returns, then what it replaced.
            recorder.record("mv", &replaced.replaced());
            recorder.record("mv", &source.moved(&to));
        }
        Ok(())
    }

    fn link(&self, target: At<'_>, at: At<'_>, symbolic: bool) -> Result<(), FileError> {
        self.changing("ln", at, || link(target, at, symbolic))
    }

    fn remove(&self, at: At<'_>, recursive: bool, cancel: &CancelToken) -> Result<(), FileError> {
        remove::remove(at, recursive, cancel)
    }

    fn trash(&self, at: At<'_>, cancel: &CancelToken) -> Result<PathValue, FileError> {
        let recorder = self.recorder.as_ref().filter(|recorder| recorder.is_open());
        let before = recorder.and_then(|_| Before::of(at));
        let kept = trash::trash(at, &self.trash, cancel)?;
        if let (Some(recorder), Some(before)) = (recorder, before) {
            recorder.record("rm", &before.moved(kept.as_bytes()));
        }
        Ok(kept)
    }
}

fn link(target: At<'_>, at: At<'_>, symbolic: bool) -> Result<(), FileError> {
    let (dir, path) = place(at)?;
    if symbolic {
        return rustix::fs::symlinkat(target.path, dir, path).map_err(|e| fail(e, at));
    }
    let (target_dir, target_path) = place(target)?;
    // The name that exists is the link's; what does not exist is the target, so each failure names its own path.
    rustix::fs::linkat(target_dir, target_path, dir, path, AtFlags::empty())
        .map_err(|e| fail(e, if e == rustix::io::Errno::EXIST { at } else { target }))
}

/// Metadata in the evaluator's terms.
fn meta_of(stat: &rustix::fs::Stat) -> Meta {
    let kind = kind_of(rustix::fs::FileType::from_raw_mode(stat.st_mode));
    let nanos = i32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    let mode = Mode::from_raw_mode(stat.st_mode);
    Meta {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        modified: jiff::Timestamp::new(stat.st_mtime, nanos).ok(),
        executable: mode.intersects(Mode::XUSR | Mode::XGRP | Mode::XOTH),
        #[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the widths differ between systems")]
        id: (stat.st_dev as u64, stat.st_ino.into()),
    }
}

fn kind_of(kind: rustix::fs::FileType) -> FileKind {
    match kind {
        rustix::fs::FileType::RegularFile => FileKind::File,
        rustix::fs::FileType::Directory => FileKind::Dir,
        rustix::fs::FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

/// A wait or loop that the run's token ended.
fn cancelled() -> FileError {
    FileError::new(FileErrorKind::Cancelled, "")
}

/// Refuses to go on with a run that was cancelled.
fn check(cancel: &CancelToken) -> Result<(), FileError> {
    if cancel.is_set() { Err(cancelled()) } else { Ok(()) }
}

/// Flags of every open: never a controlling terminal, never inherited.
const BASE: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY);

#[cfg(test)]
mod tests;
