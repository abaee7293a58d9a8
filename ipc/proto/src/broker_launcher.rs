//! Broker and launcher: what must work with a dead or hung worker: cancel, suspend, terminals, lists.

use bincode::{Decode, Encode};

use crate::bounded::{Bytes, List, Text};
use crate::hello::{ExitStatus, Hello};
use crate::launcher_worker::{MAX_ARG, MAX_ARGS, MAX_PATH, Receipt, RunId, Rung, SpawnStage};
use crate::message::edge;

/// Number the broker gives a terminal; unique in the kernel.
pub type PtyId = u64;

/// Start a program on a new terminal.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SpawnPty {
    /// The broker's number.
    pub id: PtyId,
    /// Program as given: a name to look up in `PATH` of `env`, or a path.
    pub program: Bytes<MAX_PATH>,
    /// Arguments, the name first.
    pub argv: List<Bytes<MAX_ARG>, MAX_ARGS>,
    /// Environment, `NAME=value` each.
    pub env: List<Bytes<MAX_ARG>, MAX_ARGS>,
    /// Working directory, absolute.
    pub cwd: Bytes<MAX_PATH>,
    /// Columns, 1..=1000.
    pub cols: u16,
    /// Rows, 1..=1000.
    pub rows: u16,
}

/// A terminal's program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PtyStarted {
    /// The broker's number.
    pub id: PtyId,
    /// Pid inside the jail.
    pub pid: i32,
}

/// A terminal's program did not start.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PtyFailed {
    /// The broker's number.
    pub id: PtyId,
    /// Where.
    pub stage: SpawnStage,
    /// Error number.
    pub errno: i32,
    /// The gate's reason, empty otherwise.
    pub reason: Text<1024>,
}

/// A terminal's program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PtyExited {
    /// The broker's number.
    pub id: PtyId,
    /// How it ended.
    pub status: ExitStatus,
}

/// Order about one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PtyOrder {
    /// Number of the request, echoed.
    pub call: u64,
    /// The broker's number of the terminal.
    pub id: PtyId,
}

/// Run the ladder on an execution; answered by a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Cancel {
    /// Number of the request, echoed in the receipt.
    pub call: u64,
    /// The execution.
    pub run: RunId,
    /// First rung.
    pub rung: Rung,
}

/// Stop or continue the commands of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RunOrder {
    /// Number of the request, echoed.
    pub call: u64,
    /// The execution.
    pub run: RunId,
}

/// A command that runs.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Running {
    /// The execution it belongs to; 0 for a terminal.
    pub run: RunId,
    /// The terminal it belongs to; 0 for a command.
    pub pty: PtyId,
    /// Pid inside the jail.
    pub pid: i32,
}

/// The commands that run.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Listing {
    /// Number of the request.
    pub call: u64,
    /// One entry per direct child.
    pub running: List<Running, 4096>,
    /// Processes in the jail, the roles included.
    pub processes: u32,
}

edge! {
    /// Broker to launcher.
    ToLauncher = "broker to launcher" {
        /// First message.
        1 Hello(Hello) Control [0;],
        /// Start a program on a terminal.
        2 SpawnPty(SpawnPty) Control [0;],
        /// Run the ladder on an execution.
        3 Cancel(Cancel) Control [0;],
        /// Stop the commands of an execution.
        4 Suspend(RunOrder) Control [0;],
        /// Continue them.
        5 Resume(RunOrder) Control [0;],
        /// Continue, then kill a terminal's processes; answered by a receipt.
        6 KillPty(PtyOrder) Control [0;],
        /// List what runs.
        7 List(RunOrder) Control [0;],
    }
}

edge! {
    /// Launcher to broker.
    ToBroker = "launcher to broker" {
        /// First message.
        1 Hello(Hello) Control [0;],
        /// A terminal's program runs.
        2 PtyStarted(PtyStarted) Control [0;],
        /// A terminal's program did not start.
        3 PtyFailed(PtyFailed) Control [0;],
        /// A terminal's program ended.
        4 PtyExited(PtyExited) Control [0;],
        /// A ladder is done.
        5 Receipt(Receipt) Control [0;],
        /// A suspend or resume is done.
        6 Done(RunOrder) Control [0;],
        /// What runs.
        7 Listing(Listing) Control [0;],
    }
}
