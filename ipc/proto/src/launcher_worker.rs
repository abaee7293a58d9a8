//! Launcher and worker: commands on pipes passed by descriptor.

use bincode::{Decode, Encode};

use crate::bounded::{Bytes, List, Text};
use crate::hello::{ExitStatus, Hello};
use crate::message::edge;
use crate::supervisor_launcher::Generation;

/// Linux execve refuses a longer single argument (`MAX_ARG_STRLEN`), so a longer one is refused before it is sent.
pub const MAX_ARG: usize = 128 * 1024;
/// Arguments or variables of one command.
pub const MAX_ARGS: usize = 65_536;
/// Paths are at most this long (`PATH_MAX`).
pub const MAX_PATH: usize = 4096;

/// Number the worker gives a command; never used twice by one worker.
pub type CommandId = u64;
/// Number the broker gave the execution that starts the command; 0 for work outside an execution.
pub type RunId = u64;

/// Start one program. Descriptors: its standard input, output and error.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Spawn {
    /// The worker's number for it.
    pub id: CommandId,
    /// The execution it belongs to.
    pub run: RunId,
    /// Program file, absolute, as the worker resolved it.
    pub path: Bytes<MAX_PATH>,
    /// Arguments, the name first.
    pub argv: List<Bytes<MAX_ARG>, MAX_ARGS>,
    /// Environment, `NAME=value` each.
    pub env: List<Bytes<MAX_ARG>, MAX_ARGS>,
    /// Working directory, absolute.
    pub cwd: Bytes<MAX_PATH>,
    /// `true`: the command outlives the execution that started it (`&`).
    pub background: bool,
}

/// Where a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum SpawnStage {
    /// The program file could not be opened.
    Open,
    /// The spawn gate refused the program.
    Gate,
    /// The working directory could not be entered.
    Cwd,
    /// Descriptors, session or limits could not be set up.
    Setup,
    /// The process could not be made.
    Clone,
    /// The program could not be executed.
    Exec,
}

/// A program that did not start.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SpawnFailed {
    /// The worker's number.
    pub id: CommandId,
    /// Where.
    pub stage: SpawnStage,
    /// Error number, 0 when the gate refused.
    pub errno: i32,
    /// The gate's reason, empty otherwise.
    pub reason: Text<1024>,
}

/// A program that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Started {
    /// The worker's number.
    pub id: CommandId,
    /// Pid inside the jail; also its process group and session.
    pub pid: i32,
}

/// A program that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Exited {
    /// The worker's number.
    pub id: CommandId,
    /// How it ended.
    pub status: ExitStatus,
    /// CPU time of it and of the children it waited for, in microseconds.
    pub cpu_us: u64,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
    /// Processes of its session that are still there.
    pub left: u32,
    /// The limit that ended it, where that is known.
    pub limit: Option<Limit>,
}

/// A limit of a session, or one that a program set for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Limit {
    /// CPU time of one program.
    CpuSeconds,
    /// Bytes of one file.
    FileSize,
    /// Memory.
    Memory,
    /// Processes.
    Pids,
}

impl Limit {
    /// Its name in an outcome.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuSeconds => "cpu_seconds",
            Self::FileSize => "file_size",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// What to signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Target {
    /// One command's process group.
    Command(CommandId),
    /// Every command of an execution.
    Run(RunId),
}

/// Send a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Signal {
    /// To whom.
    pub target: Target,
    /// Signal number, 1..=64.
    pub signal: u8,
}

/// Run the cancel ladder on a target from a rung on; answered by `Ended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct End {
    /// Number of the request, echoed.
    pub call: u64,
    /// To whom.
    pub target: Target,
    /// First rung.
    pub rung: Rung,
    /// Time per rung in milliseconds; 0 means the default of 2,000.
    pub rung_ms: u32,
}

/// Rungs of the cancel ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum Rung {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
    /// SIGKILL of the group.
    Kill,
    /// SIGKILL of every process of the run, wherever it went.
    Sweep,
}

/// Proof of what a ladder ended.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Receipt {
    /// Number of the request.
    pub call: u64,
    /// Pids that are gone.
    pub ended: List<i32, 4096>,
    /// Pids that are still there.
    pub survived: List<i32, 4096>,
    /// The last rung that was used: the first one when no process was there, since it stops the evaluator too.
    pub escalated: Option<Rung>,
}

/// How many processes hold the output pipes of a command after its direct child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Held {
    /// The worker's number.
    pub id: CommandId,
    /// Processes of the command's session that are still there.
    pub holders: u32,
}

edge! {
    /// Launcher to worker.
    ToWorker = "launcher to worker" {
        /// First message.
        1 Hello(Hello) Control [0;],
        /// A fresh end of broker-worker.
        2 Adopt(Generation) Control [1; Socket],
        /// A program runs.
        3 Started(Started) Control [0;],
        /// A program did not start.
        4 SpawnFailed(SpawnFailed) Control [0;],
        /// A program ended.
        5 Exited(Exited) Control [0;],
        /// A ladder is done.
        6 Receipt(Receipt) Control [0;],
        /// Answer to `CountHolders`.
        7 Held(Held) Control [0;],
    }
}

edge! {
    /// Worker to launcher.
    ToLauncher = "worker to launcher" {
        /// First message, after the worker confined itself.
        1 Hello(Hello) Control [0;],
        /// Start a program.
        2 Spawn(Spawn) Control [3; Stdio, Stdio, Stdio],
        /// Send a signal.
        3 Signal(Signal) Control [0;],
        /// Run the ladder.
        4 End(End) Control [0;],
        /// Count the processes left of a command.
        5 CountHolders(Started) Control [0;],
    }
}
