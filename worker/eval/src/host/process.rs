//! The process port: what a program gets, and what comes back.
//!
//! A [`Chain`] is one or more programs that run at the same time, stdout to stdin by pipes. The host starts all stages,
//! feeds the first, captures the last, drains the pipes for at most 250 ms after the last direct child was reaped, and
//! climbs the cancel ladder (INT, 2 s, TERM, 2 s, KILL, for the whole tree) when the token is set.

use std::sync::Arc;

use shoal_value::outcome::{Capture, Usage};
use shoal_value::{Bytes, PathValue, Str};

use super::files::Dir;
use crate::Unwind;
use crate::cancel::CancelToken;

/// Programs.
pub trait Processes: Send + Sync {
    /// Runs a chain to its end. `Err(StartError)` means that a stage could not be started; those started before it have
    /// been ended. A set token ends the tree and gives [`Finished::cancelled`].
    fn run(&self, chain: Chain<'_>, cancel: &CancelToken) -> Result<Finished, RunError>;

    /// Stops the running children of a task.
    fn suspend(&self, task: u64);

    /// Continues them.
    fn resume(&self, task: u64);
}

/// A program and what it is started with.
#[derive(Clone, Debug)]
pub struct Program {
    /// Absolute path of the executable.
    pub path: PathValue,
    /// Exact argument bytes; the first is the head as written.
    pub argv: Vec<Vec<u8>>,
    /// Exactly these variables.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A launch request.
pub struct Chain<'a> {
    /// The request it belongs to, by the host's number ([`super::Run::id`]).
    pub run: u64,
    /// Task on whose behalf it runs; 0 for the request itself.
    pub task: u64,
    /// Working directory of every stage.
    pub cwd: Arc<dyn Dir>,
    /// The stages; at least one.
    pub stages: Vec<Program>,
    /// Standard input of the first.
    pub stdin: Input<'a>,
    /// Standard output of the last.
    pub stdout: Output,
}

/// Standard input of a chain.
pub enum Input<'a> {
    /// `/dev/null`.
    Null,
    /// These bytes, then end of file. Stored bytes are read from the store by the host.
    Bytes(Bytes),
    /// A file, as the program gave its path.
    File(PathValue),
    /// Pulled on the calling thread until it gives `None`, the child closes its input, or it fails; a failure ends the
    /// tree and is returned as [`RunError::Source`].
    Pull(&'a mut dyn FnMut() -> Result<Option<Vec<u8>>, Unwind>),
}

/// Standard output of a chain.
#[derive(Clone, Debug)]
pub enum Output {
    /// Captured.
    Capture,
    /// To a file, as the program gave its path.
    File {
        /// Path as given.
        path: PathValue,
        /// Add at its end instead of replacing it.
        append: bool,
    },
}

/// One program of a finished chain (alias kept for readability of signatures).
pub type Stage = StageEnd;

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With an exit code, 0 to 255.
    Status(i64),
    /// By a signal: `SIGSEGV` etc.
    Signal(Str),
}

/// The end of one stage.
#[derive(Clone, Debug)]
pub struct StageEnd {
    /// Process id.
    pub pid: i64,
    /// How it ended.
    pub exit: Exit,
    /// Run time in nanoseconds.
    pub dur_ns: i64,
    /// Session limit that ended it: `memory`, `pids` or `cpu_seconds`.
    pub limit: Option<Str>,
    /// What it used.
    pub usage: Usage,
    /// Its standard error.
    pub stderr: Bytes,
}

/// A finished chain.
#[derive(Clone, Debug)]
pub struct Finished {
    /// One per stage, in order.
    pub stages: Vec<StageEnd>,
    /// Standard output of the last stage; empty if redirected.
    pub stdout: Bytes,
    /// How much was printed and kept.
    pub capture: Capture,
    /// Whether the token ended it.
    pub cancelled: bool,
}

/// Why a chain did not run to its end.
#[derive(Debug)]
pub enum RunError {
    /// A stage could not be started.
    Start(StartError),
    /// The source of [`Input::Pull`] failed.
    Source(Unwind),
}

/// A stage that could not be started.
#[derive(Clone, Debug)]
pub struct StartError {
    /// Index of the stage.
    pub stage: usize,
    /// Why.
    pub kind: StartErrorKind,
    /// Text of the operating system or of the refusal.
    pub text: String,
}

/// Why a stage could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartErrorKind {
    /// The executable or its interpreter does not exist.
    NotFound,
    /// Not executable, or refused by the operating system.
    Permission,
    /// Refused by the launcher or by policy.
    Denied,
    /// The working directory has disappeared.
    CwdGone,
    /// A redirect's file could not be opened.
    Redirect(super::FileErrorKind),
    /// Anything else.
    Io,
}
