//! A step of a jail's set-up that failed.

use std::io;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step}: {error}")]
pub struct Failed {
    /// The step in words.
    pub step: String,
    /// Why.
    pub error: io::Error,
    /// The session's directory is not in the jail's view.
    pub no_such_dir: bool,
}
