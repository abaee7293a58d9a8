//! Broker and worker: prepare, run, finish; calls down, up-calls up. Values and sources pass as JSON bytes.

use bincode::{Decode, Encode};

use crate::bounded::{Bytes, List, Text};
use crate::hello::Hello;
use crate::launcher_worker::{RunId, Rung};
use crate::message::edge;

/// A source text fits into one client frame.
pub const MAX_SRC: usize = 16 * 1024 * 1024;
/// Any JSON on this edge: one client frame.
pub const MAX_JSON: usize = 16 * 1024 * 1024;
/// Executions of one session at a time.
pub const MAX_RUNS: usize = 16;
/// Source of a statement in its row; the execution's row has all of it.
pub const MAX_STATEMENT: usize = 64 * 1024;
/// Up-calls a worker may have open.
pub const MAX_UP_CALLS: usize = 64;

/// JSON text, checked for size here and for depth and nodes by the reader that looks inside.
pub type Json = Bytes<MAX_JSON>;

/// What a new or adopted worker is told first. `state` is JSON:
/// `{session, owner, tty, elide, policy?, limits, history}`, the shape is documented in `docs/ipc.md`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Setup {
    /// The broker's hello.
    pub hello: Hello,
    /// Next `out:N` the worker assigns.
    pub next_out: u64,
    /// Working directory of the last commit, absolute.
    pub cwd: Bytes<4096>,
    /// Environment of the last commit, `NAME=value` each.
    pub env: List<Bytes<131_072>, 65_536>,
    /// Further facts as JSON.
    pub state: Json,
    /// A worker of this session died before: bindings are gone.
    pub restarted: bool,
    /// An adopted worker keeps its own cwd, environment and numbers.
    pub adopted: bool,
}

/// Where the last statement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Position {
    /// A failed command raises.
    Stmt,
    /// A failed command is a value.
    Value,
}

/// Bounds of what comes back, protocol's ElideSpec with defaults filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Elide {
    /// Bytes of an encoded value.
    pub max_bytes: u32,
    /// Rows of a table.
    pub max_rows: u32,
    /// Bytes of raw text.
    pub max_bytes_raw: u32,
    /// Items of a list.
    pub max_items: u32,
}

/// Parse a source and derive its effects; nothing runs.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Prepare {
    /// The broker's number of the execution.
    pub run: RunId,
    /// The source.
    pub src: Text<MAX_SRC>,
    /// Position of the last statement.
    pub position: Position,
    /// Kill the run this long after its start.
    pub deadline_ms: Option<u64>,
    /// Bounds of the answer.
    pub elide: Elide,
    /// The client shows text on a terminal: keep colours in renders.
    pub tty: bool,
    /// The kind of principal, for the language's own checks: `true` for the human.
    pub human: bool,
    /// A plan's stored bindings for a lane, empty otherwise.
    pub bindings: Json,
    /// What the claim is for.
    pub purpose: Purpose,
}

/// What a claim is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Purpose {
    /// A run: its effects are claimed, and the source is kept.
    Run,
    /// A plan: all that it is bound to is claimed, and the source is forgotten.
    Plan,
    /// A plan that is applied: all that it is bound to is claimed, and what was claimed is kept, to run as it is.
    Apply,
}

/// The claim of a prepared source.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Prepared {
    /// The execution.
    pub run: RunId,
    /// `{effects:[Effect], reversibility, head, names, programs?, scripts?, bindings?, ast?}`; for a parse error
    /// `{parse_error:{message, span, hint, incomplete}}`.
    pub claim: Json,
    /// The source parses.
    pub parsed: bool,
}

/// An execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Run {
    /// The broker's number.
    pub run: RunId,
}

/// End an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Cancel {
    /// The execution.
    pub run: RunId,
    /// How hard.
    pub rung: Rung,
    /// It ran into its deadline.
    pub deadline: bool,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Ending {
    /// With a value.
    Value,
    /// With an error.
    Raised,
    /// It was cancelled.
    Cancelled,
    /// It ran into its deadline.
    Deadline,
}

/// The end of an execution. Descriptors, in this order, for those set in `attached`: stdout, stderr, value.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Finished {
    /// The execution.
    pub run: RunId,
    /// Its `out:N`.
    pub n: u64,
    /// How it ended.
    pub ending: Ending,
    /// Elided wire value; for a raised one the error value.
    pub value: Json,
    /// Rendered text, bounded to 64 KiB.
    pub render: Text<{ 64 * 1024 }>,
    /// Members of the answer besides: `{error:{code,message,span,hint,status,stderr}?, held_by?, receipt?, head?, effects?}`.
    pub detail: Json,
    /// Evaluation time.
    pub elapsed_ms: u64,
    /// The execution's working directory at its end.
    pub cwd: Bytes<4096>,
    /// The session's environment changed: the new one is in `env`.
    pub env_changed: bool,
    /// `NAME=value` each, empty unless it changed.
    pub env: List<Bytes<131_072>, 65_536>,
    /// The session's working directory after the commit.
    pub session_cwd: Bytes<4096>,
    /// The full stdout is attached.
    pub stdout: bool,
    /// The full stderr is attached.
    pub stderr: bool,
    /// The full wire value is attached.
    pub full: bool,
}

/// Methods that the worker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Method {
    /// `value.get`
    ValueGet,
    /// `session.snapshot`
    Snapshot,
    /// `session.env`
    Env,
    /// `session.reef`
    Reef,
    /// `parse`
    Parse,
    /// `complete`
    Complete,
    /// `explain`
    Explain,
    /// `task.output`
    TaskOutput,
    /// `stream.pull`
    StreamPull,
    /// `stream.close`
    StreamClose,
    /// `watch.start`
    WatchStart,
    /// `watch.stop`
    WatchStop,
    /// `watch.list`
    WatchList,
    /// `watch.get`
    WatchGet,
    /// No method of a client: an event of a user channel for the language's bus, `{channel, seq, ts, payload}`; or that
    /// a channel of [`UpMethod::Listen`] had events, `{changed: channel}`. The answer is `{}`; the next `changed` of a
    /// channel comes after the answer to the one before.
    Event,
}

/// A method for the worker. `params` are the client's, checked for unknown members by the broker.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Call {
    /// Number of the request.
    pub call: u64,
    /// Which method.
    pub method: Method,
    /// Its params as JSON.
    pub params: Json,
}

/// The answer: a result, or an error of protocol 1.4.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Answer {
    /// Number of the request.
    pub call: u64,
    /// 0 for a result, else the error code.
    pub code: i32,
    /// Message of an error.
    pub message: Text<8192>,
    /// The result, or the error's data (empty for none).
    pub body: Json,
}

/// What a worker asks its broker for. `Emit`, `Resource`, `Listen` and `Watch` may come from outside a run, as run 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum UpMethod {
    /// Query the journal.
    Journal,
    /// Undo.
    Undo,
    /// Store bytes.
    BlobPut,
    /// Fetch bytes.
    BlobGet,
    /// Publish an event.
    Emit,
    /// Read a resource.
    Resource,
    /// Plans.
    Plan,
    /// Judge an effect, for a good error.
    Judge,
    /// Name all channels whose events the worker wants to be told of, `{channels: [str]}`.
    Listen,
    /// Watches of the session: `{action: "started", spec}`, `{action: "stopped" | "failed", name}`, or, to a fresh
    /// broker, `{action: "have", specs}`.
    Watch,
}

/// An up-call; answered by `Told` with the same number.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct UpCall {
    /// The worker's number.
    pub call: u64,
    /// The execution it belongs to.
    pub run: RunId,
    /// Which.
    pub method: UpMethod,
    /// Its params as JSON.
    pub params: Json,
}

/// Output of an execution, for its task channel.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Progress {
    /// The execution.
    pub run: RunId,
    /// Bytes of output seen so far.
    pub seen: u64,
    /// What happened, as JSON.
    pub note: Json,
}

/// A top-level statement of an execution that ended. Nobody answers it: its row is written with the execution's.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Statement {
    /// The execution.
    pub run: RunId,
    /// Its source, cut to [`MAX_STATEMENT`] bytes.
    pub src: Text<MAX_STATEMENT>,
    /// It did not fail.
    pub ok: bool,
    /// Exit status of its result, where it has one.
    pub status: Option<i64>,
    /// Nanoseconds it took.
    pub dur_ns: u64,
}

/// A result that no execution ended with got its number: an item that was fetched from a stream and is too large for its
/// answer. Numbers come one by one, these and those of [`Finished`] together.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Numbered {
    /// The number.
    pub n: u64,
}

/// A stream that outgrew memory. The worker writes all of it, from its first byte on, into the pipe whose read end is in the
/// message, and closes the pipe at the stream's end. The broker answers with `Told`: `{hash, kept, seen}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Capture {
    /// The worker's number, from the same sequence as up-calls.
    pub call: u64,
    /// The execution.
    pub run: RunId,
    /// `true` for stderr.
    pub stderr: bool,
}

/// The launcher said something to the worker that no launcher says. The worker ends after this; the session ends with it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Distrust {
    /// Which rule was broken.
    pub what: Text<512>,
}

/// What became of the end of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Ack {
    /// The execution.
    pub run: RunId,
    /// Its row is closed and its outputs lie in the content store, so that the worker need not hold them.
    pub stored: bool,
    /// Its task record stays, so that its log may be asked for.
    pub kept: bool,
}

/// An execution a worker still has when a broker adopts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct OpenRun {
    /// The execution.
    pub run: RunId,
    /// It is finished and not acknowledged: its `Finished` comes next.
    pub finished: bool,
    /// It was prepared and never told to run.
    pub prepared: bool,
    /// Its evaluation is held by `Freeze`.
    pub suspended: bool,
    /// Its deadline, as it was prepared.
    pub deadline_ms: Option<u64>,
}

/// What the worker has, after `Setup`.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WorkerHello {
    /// The worker's hello.
    pub hello: Hello,
    /// Executions it still has.
    pub open: List<OpenRun, 256>,
    /// Next `out:N`.
    pub next_out: u64,
    /// Working directory.
    pub cwd: Bytes<4096>,
    /// Environment, `NAME=value` each.
    pub env: List<Bytes<131_072>, 65_536>,
}

edge! {
    /// Broker to worker.
    ToWorker = "broker to worker" {
        /// First message.
        1 Setup(Setup) Control [0;],
        /// Parse and derive.
        2 Prepare(Prepare) Control [0;],
        /// Run what was prepared.
        3 Run(Run) Control [0;],
        /// Forget what was prepared.
        4 Discard(Run) Control [0;],
        /// End a run.
        5 Cancel(Cancel) Control [0;],
        /// The end of a run is recorded: the worker need not tell it again.
        6 Ack(Ack) Control [0;],
        /// A method.
        7 Call(Call) Control [0;],
        /// Answer to an up-call.
        8 Told(Answer) Control [0; Memfd],
        /// Pause evaluation.
        9 Freeze(Run) Control [0;],
        /// Go on.
        10 Thaw(Run) Control [0;],
    }
}

edge! {
    /// Worker to broker.
    ToBroker = "worker to broker" {
        /// First message, in answer to `Setup`.
        1 Hello(WorkerHello) Control [0;],
        /// The claim of a source.
        2 Prepared(Prepared) Control [0;],
        /// The end of a run.
        3 Finished(Finished) Control [0; Memfd, Memfd, Memfd],
        /// Answer to a method.
        4 Answer(Answer) Control [0;],
        /// An up-call; bytes to store are in the memfd.
        5 UpCall(UpCall) Control [0; Memfd],
        /// Output came.
        6 Progress(Progress) Event [0;],
        /// A stream outgrew memory: the pipe it is written into.
        7 Capture(Capture) Control [1; PipeRead],
        /// A top-level statement ended.
        8 Statement(Statement) Control [0;],
        /// The launcher broke the edge to the worker.
        9 Distrust(Distrust) Control [0;],
        /// A result of no execution got its number.
        10 Numbered(Numbered) Control [0;],
    }
}
