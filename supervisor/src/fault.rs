//! Why a kernel does not start.

use std::path::PathBuf;

/// A kernel that does not start: one line that says what, where and what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// Something is wrong on this machine.
    #[error("{0}")]
    Failed(String),
    /// Another kernel holds the state directory and listens on this socket.
    #[error("another kernel holds {}; it listens on {}", state.display(), socket.display())]
    Held {
        /// The state directory.
        state: PathBuf,
        /// What the lock file says.
        socket: PathBuf,
    },
}

/// Joins what failed with the system's reason.
pub(crate) fn because(what: impl std::fmt::Display) -> impl FnOnce(std::io::Error) -> StartError {
    move |error| StartError::Failed(format!("{what}: {error}"))
}

/// The same for rustix.
pub(crate) fn errno(what: impl std::fmt::Display) -> impl FnOnce(rustix::io::Errno) -> StartError {
    move |error| StartError::Failed(format!("{what}: {}", std::io::Error::from(error)))
}
