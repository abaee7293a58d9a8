//! `shoal-policy --check`: a person's own run over files by path, behind `shoal policy check`.
//!
//! This is the one place that opens paths, and never in the role the supervisor starts.
#![allow(clippy::disallowed_types)]

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::args::Args;

/// Compiles the files and says nothing when they are well.
pub(crate) fn check(paths: &[PathBuf], args: &Args) -> Result<(), String> {
    let read = |path: &Path| {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| format!("{name}: cannot be opened: {e}"))?;
        crate::read_bounded(file, &name)
    };
    let leash = paths.first().map(|p| read(p)).transpose()?.unwrap_or_default();
    let shoal = paths.get(1).map(|p| read(p)).transpose()?.unwrap_or_default();
    crate::compile::compile(args, &leash, &shoal).map(|_| ())
}
