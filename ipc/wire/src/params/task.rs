//! Task methods.

use super::exec::Millis;
use super::{Int, Member, params, words};
use crate::error::RpcError;
use crate::limits;

params! {
    /// `task.get`, `task.suspend` and `task.resume`.
    #[derive(Eq)]
    TaskPick {
        /// `task:N`.
        req task: String,
    }
}

params! {
    /// `task.await`.
    #[derive(Eq)]
    TaskAwait {
        /// `task:N`.
        req task: String,
        /// Longest wait; none is without limit.
        opt timeout_ms: Millis,
    }
}

words! {
    /// The streams of a log that are wanted.
    LogStream {
        /// Standard output.
        Stdout = "stdout",
        /// Standard error.
        Stderr = "stderr",
        /// Both, in order of arrival.
        Both = "both",
    }
}

params! {
    /// `task.output`.
    #[derive(Eq)]
    TaskOutput {
        /// `task:N`.
        req task: String,
        /// Which stream.
        def stream: LogStream = LogStream::Both,
        /// Position in the log; negative counts from the end.
        def offset: i64 = 0,
        /// Content bytes at most.
        def max: Int<1, { limits::TASK_OUTPUT_BYTES }> = Int::clamped(16_384),
    }
}

/// The rung a cancel starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

impl Member for Signal {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let name = String::read(param, text)?.to_ascii_lowercase();
        match name.strip_prefix("sig").unwrap_or(&name) {
            "int" => Ok(Signal::Int),
            "term" => Ok(Signal::Term),
            "kill" => Ok(Signal::Kill),
            _ => Err(RpcError::out_of_range(param, "one of int, term, kill")),
        }
    }
}

params! {
    /// `task.cancel`.
    #[derive(Eq)]
    TaskCancel {
        /// `task:N`.
        req task: String,
        /// First rung.
        def signal: Signal = Signal::Int,
    }
}
