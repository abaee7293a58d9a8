//! What leaves an evaluation that does not give a value.

use std::fmt;

use shoal_value::{ErrorValue, code};

use crate::cancel::CancelReason;

/// Result of everything that may run code of the program.
pub type Eval<T> = Result<T, Unwind>;

/// Why an evaluation gave no value. Native code passes it on with `?`; only a raised error may be caught.
#[derive(Clone, Debug)]
pub enum Unwind {
    /// An error, which `catch` sees.
    Raise(ErrorValue),
    /// The end of the program, which no handler sees.
    Stop(Stop),
}

/// The end of a program from inside.
#[derive(Clone, Debug)]
pub enum Stop {
    /// `exit` and `quit`, with the status.
    Exit(i64),
    /// The run's token was set.
    Cancelled(CancelReason),
    /// The meter refused; the text names the limit.
    Budget(String),
}

impl Stop {
    /// The error the run ends with; `None` for an exit.
    pub fn error(&self) -> Option<ErrorValue> {
        match self {
            Self::Exit(_) => None,
            Self::Cancelled(CancelReason::Cancelled) => Some(ErrorValue::new(code::CANCELLED, "the run was cancelled")),
            Self::Cancelled(CancelReason::Deadline) => {
                let error = ErrorValue::new(code::DEADLINE_EXCEEDED, "the run's deadline has passed");
                Some(error.with_hint("raise deadline_ms or run it in the background"))
            }
            Self::Budget(text) => Some(ErrorValue::new(code::BUDGET_EXCEEDED, text.as_str())),
        }
    }
}

impl From<ErrorValue> for Unwind {
    fn from(error: ErrorValue) -> Self {
        Self::Raise(error)
    }
}

impl From<Stop> for Unwind {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl fmt::Display for Unwind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raise(error) => error.fmt(f),
            Self::Stop(Stop::Exit(status)) => write!(f, "exit {status}"),
            Self::Stop(stop) => stop.error().map_or(Ok(()), |error| error.fmt(f)),
        }
    }
}
