//! Errors of the command, with their exit codes: 1 failed, 2 usage.

use std::process::ExitCode;

use shoal_client::{CallError, ConnectError};

/// Why the command failed.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The words do not fit.
    Usage(String),
    /// No connection.
    Connect(ConnectError),
    /// The kernel refused, or the call was lost.
    Call(CallError),
    /// A failure that may come of two versions talking past each other.
    Skewed {
        /// What failed.
        fail: Box<Fail>,
        /// Both versions.
        skew: String,
    },
    /// Anything else, said in one line.
    Said(String),
    /// Nobody reads our output any more.
    ClosedOutput,
}

impl Fail {
    /// Exit code.
    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Connect(_) | Self::Call(_) | Self::Skewed { .. } | Self::Said(_) | Self::ClosedOutput => {
                ExitCode::FAILURE
            }
        }
    }
}

impl std::fmt::Display for Fail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(text) | Self::Said(text) => f.write_str(text),
            Self::Connect(e) => write!(f, "{e}"),
            Self::Call(e) => match e.kernel().and_then(|k| k.data.as_ref()) {
                Some(data) => write!(f, "{e} {data}"),
                None => write!(f, "{e}"),
            },
            Self::Skewed { fail, skew } => {
                write!(f, "{fail}; {skew}: end it with `shoal kernel stop`, the next call starts the new one")
            }
            Self::ClosedOutput => f.write_str("stdout is closed"),
        }
    }
}

impl From<ConnectError> for Fail {
    fn from(e: ConnectError) -> Self {
        Self::Connect(e)
    }
}

impl From<CallError> for Fail {
    fn from(e: CallError) -> Self {
        Self::Call(e)
    }
}
