//! Standard descriptors that are files.

use std::os::fd::{AsFd, OwnedFd};

use shoal_eval::host::{At, FileError, FileErrorKind, RunError, StartErrorKind, WriteMode};

use super::failure;
use crate::files;

/// Opens a redirect's file for a stage: for reading, or for writing in a mode.
pub(super) fn open(stage: usize, at: At<'_>, mode: Option<WriteMode>) -> Result<OwnedFd, RunError> {
    let refused = |error: FileError| failure::start(stage, StartErrorKind::Redirect(error.kind), error.text);
    let fd = match mode {
        None => files::open_input(at),
        Some(mode) => files::open_output(at, mode),
    };
    let fd = fd.map_err(refused)?;
    // The launcher takes nothing else, and a peer that sends something else is ended.
    if !shoal_sys::fd::is_stdio(fd.as_fd()) {
        return Err(refused(FileError::new(FileErrorKind::Io, "not a file, pipe or device")));
    }
    Ok(fd)
}
