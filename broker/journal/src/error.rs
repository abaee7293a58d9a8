//! What can go wrong, and whether it passes.

use std::io;

/// An error of journal or content store.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be written or read now: disk full, read-only, I/O. New work is refused until a probe succeeds.
    #[error("{0}")]
    Unavailable(String),
    /// The database is not ours or is damaged; the kernel does not start on it.
    #[error("{0}")]
    Unusable(String),
    /// No such row, blob or plan.
    #[error("unknown {0}")]
    Unknown(&'static str),
    /// A stored blob's bytes do not have its hash any more.
    #[error("the stored bytes of {0} are damaged")]
    Damaged(String),
    /// The caller gave something that is not valid here.
    #[error("{0}")]
    Invalid(String),
}

impl From<rusqlite::Error> for JournalError {
    fn from(e: rusqlite::Error) -> Self {
        match e {
            rusqlite::Error::QueryReturnedNoRows => Self::Unknown("row"),
            rusqlite::Error::SqliteFailure(code, message) => {
                let text = message.unwrap_or_else(|| code.to_string());
                match code.code {
                    rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase => Self::Unusable(text),
                    rusqlite::ErrorCode::DiskFull => Self::Unavailable("no space left on device".to_owned()),
                    rusqlite::ErrorCode::ReadOnly => Self::Unavailable(format!("read-only: {text}")),
                    _ => Self::Unavailable(text),
                }
            }
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<io::Error> for JournalError {
    fn from(e: io::Error) -> Self {
        match e.raw_os_error() {
            Some(code) if code == nix::errno::Errno::ENOSPC as i32 => {
                Self::Unavailable("no space left on device".to_owned())
            }
            _ => Self::Unavailable(e.to_string()),
        }
    }
}

impl JournalError {
    /// Trying again later can succeed.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// What could not be written may be written later: the disk was at fault, or the database until somebody mends it. Of
    /// anything else the same words get the same answer for ever.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Unusable(_))
    }
}
