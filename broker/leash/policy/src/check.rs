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
    crate::compile::compile(args, &leash, &shoal).map(|_| ()).map_err(|error| named(&error, paths))
}

/// The error with the path that was given instead of the name the file has for the kernel.
fn named(error: &str, paths: &[PathBuf]) -> String {
    for (name, path) in ["leash.toml:", "shoal.toml:"].into_iter().zip(paths) {
        if let Some(rest) = error.strip_prefix(name) {
            return format!("{}:{rest}", path.display());
        }
    }
    error.to_owned()
}
