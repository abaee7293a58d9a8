//! Supervisor and broker. The broker orders sessions; the supervisor makes, ends and counts them.

use bincode::{Decode, Encode};

use crate::bounded::{List, Text};
use crate::hello::{ExitStatus, Hello, HostProcess, SessionRole};
use crate::message::edge;

/// Sessions of one kernel; the supervisor refuses more.
pub const MAX_SESSIONS: usize = 256;
/// Processes listed for one session or receipt; more are counted, not named.
pub const MAX_PIDS: usize = 4096;

/// Number the supervisor gives a session at its creation; never used twice by one kernel.
pub type SessionId = u64;

/// Order for a session.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CreateSession {
    /// The broker's number for this order, echoed in the answer.
    pub order: u64,
    /// Owner principal. The section that serves it in the policy of the supervisor, which is never older than that of the
    /// broker, is the one whose jail applies.
    pub owner: Text<128>,
    /// Session name, for listings only.
    pub name: Text<64>,
    /// Working directory to start in, absolute.
    pub cwd: Text<4096>,
    /// Limits that lower the section's.
    pub limits: Limits,
    /// Extra grants of a plan lane as absolute paths; empty for every other session.
    pub lane: Option<Lane>,
}

/// Limits of a session; `None` leaves the section's value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes.
    pub pids: Option<u32>,
    /// Seconds of CPU per process.
    pub cpu_seconds: Option<u64>,
    /// Open files per process.
    pub open_files: Option<u32>,
}

/// What one approved plan may do beyond its session's standing grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Lane {
    /// Paths that may be read.
    pub read: List<Text<4096>, 256>,
    /// Paths that may be written.
    pub write: List<Text<4096>, 256>,
    /// Network as if the section said `network = "open"`.
    pub network: bool,
    /// Any program may be started.
    pub opaque: bool,
}

/// A session that lived when the broker was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Adopted {
    /// The session.
    pub session: SessionId,
    /// Owner, as ordered.
    pub owner: Text<128>,
    /// Name, as ordered.
    pub name: Text<64>,
    /// Generation of the fresh ends.
    pub generation: u32,
    /// Whether a ptyd lives.
    pub ptyd: bool,
    /// Its processes are stopped.
    pub frozen: bool,
}

/// How the kernel was started; sent once, before everything else.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Start {
    /// The supervisor's hello.
    pub hello: Hello,
    /// When the kernel started, nanoseconds since the epoch.
    pub started_ns: i64,
    /// How often a broker was started before.
    pub restarts: u32,
    /// Default session name.
    pub session: Text<64>,
    /// Path of the public socket.
    pub socket: Text<4096>,
    /// State directory; empty for an ephemeral kernel.
    pub state_dir: Text<4096>,
    /// Policy file, for listings, whether it exists or not.
    pub policy: Text<4096>,
    /// Directory sessions start in.
    pub start_dir: Text<4096>,
    /// Environment sessions start from: allow-listed variables of the kernel's own.
    pub env: List<(Text<256>, Text<32768>), 256>,
    /// Refuse tokenless connections.
    pub require_token: bool,
    /// Uid of the kernel.
    pub uid: u32,
    /// Claims that hold on this host, bit `n - 1` for `Cn`.
    pub claims: u16,
    /// Level of the host, `L0`..`L4` or `M2`.
    pub level: Text<4>,
    /// Facts about isolation for listings, as JSON text made by the supervisor's probe.
    pub isolation: Isolation,
    /// Sessions to adopt; their ends follow as [`ToBroker::Adopt`], one message each.
    pub adopt: u32,
}

/// What isolation the host offers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Isolation {
    /// User, pid and mount namespaces can be made.
    pub namespaces: bool,
    /// Landlock ABI, 0 when absent.
    pub landlock_abi: u32,
    /// Seccomp filters can be installed.
    pub seccomp: bool,
    /// A delegated cgroup v2 exists.
    pub cgroup: bool,
    /// Why sessions have no full jail, empty when they have: the failing step and the remedy.
    pub missing: Text<1024>,
}

/// A session that is up.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SessionUp {
    /// The order it answers.
    pub order: u64,
    /// The session.
    pub session: SessionId,
    /// Generation of its ends.
    pub generation: u32,
    /// Host pid of the launcher.
    pub launcher: i32,
}

/// A session that could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SessionFailed {
    /// The order it answers.
    pub order: u64,
    /// Step that failed, in words.
    pub step: Text<128>,
    /// Error number of the step, 0 when there is none.
    pub errno: i32,
    /// What to do about it.
    pub remedy: Text<1024>,
    /// The directory asked for does not exist inside the jail's view.
    pub no_such_dir: bool,
}

/// A role of a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RoleExit {
    /// The session.
    pub session: SessionId,
    /// Which role; a launcher takes the session with it.
    pub role: SessionRole,
    /// How it ended.
    pub status: ExitStatus,
    /// When it is started again; `None`: not by itself, because it is the launcher, or because it died too often.
    pub restart_in_ms: Option<u32>,
    /// What it did that no role does, if it was ended for that; empty otherwise.
    pub fault: Text<512>,
}

/// A role was started again, with a fresh end in the message.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RoleUp {
    /// The session.
    pub session: SessionId,
    /// Which role.
    pub role: SessionRole,
    /// Generation of the end.
    pub generation: u32,
}

/// Order about one session.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Order {
    /// The broker's number for this order, echoed in the answer.
    pub order: u64,
    /// The session.
    pub session: SessionId,
}

/// What a kill ended.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Killed {
    /// The order it answers.
    pub order: u64,
    /// The session.
    pub session: SessionId,
    /// Processes that are gone.
    pub ended: List<HostProcess, MAX_PIDS>,
    /// Processes that are still there.
    pub survived: List<HostProcess, MAX_PIDS>,
    /// From the order to the verified end.
    pub duration_ms: u64,
}

/// Answer to a freeze or thaw.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Frozen {
    /// The order it answers.
    pub order: u64,
    /// Whether the session is frozen now.
    pub frozen: bool,
}

/// The processes of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Processes {
    /// The order it answers.
    pub order: u64,
    /// Supervisor's own process.
    pub supervisor: HostProcess,
    /// Broker's process.
    pub broker: HostProcess,
    /// Per session: its processes, launcher first.
    pub sessions: List<SessionProcesses, MAX_SESSIONS>,
}

/// The processes of one session.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SessionProcesses {
    /// The session.
    pub session: SessionId,
    /// Host pid of the launcher.
    pub launcher: i32,
    /// Host pid of the worker, 0 while there is none.
    pub worker: i32,
    /// Host pid of the ptyd, 0 while there is none.
    pub ptyd: i32,
    /// Worker starts beyond the first.
    pub restarts: u32,
    /// All processes of the session, the roles included.
    pub all: List<HostProcess, MAX_PIDS>,
}

/// Compiled policy, in the memfd of the message; or why a reload was refused.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sections {
    /// Counts up with each accepted policy.
    pub generation: u32,
    /// Empty when the memfd holds a new policy; else the error text, and the old policy stays in force.
    pub rejected: Text<4096>,
}

/// Stop the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Shutdown {
    /// How long sessions may take to end.
    pub grace_ms: u32,
}

/// Liveness probe; the answer echoes the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Ping {
    /// Number of the probe.
    pub n: u64,
}

edge! {
    /// Supervisor to broker.
    ToBroker = "supervisor to broker" {
        /// First message: the state directory (absent for an ephemeral kernel it is a fresh private directory) and the listener.
        1 Start(Start) Control [2; Listener, Dir],
        /// Compiled policy.
        2 Sections(Sections) Control [0; Memfd],
        /// A session to adopt: ends of broker-launcher, broker-worker and, if it lives, broker-ptyd.
        3 Adopt(Adopted) Control [2; Socket, Socket, Socket],
        /// A session is up: ends of broker-launcher and broker-worker.
        4 SessionUp(SessionUp) Control [2; Socket, Socket],
        /// A session could not be made.
        5 SessionFailed(SessionFailed) Control [0;],
        /// A role ended.
        6 RoleExit(RoleExit) Control [0;],
        /// A role is there (again): its fresh end.
        7 RoleUp(RoleUp) Control [1; Socket],
        /// A kill is done.
        8 Killed(Killed) Control [0;],
        /// A freeze or thaw is done.
        9 Frozen(Frozen) Control [0;],
        /// The processes asked for.
        10 Processes(Processes) Control [0;],
        /// Liveness probe.
        11 Ping(Ping) Control [0;],
        /// Drain: no new work, close the rows, exit.
        12 Drain(Shutdown) Control [0;],
    }
}

edge! {
    /// Broker to supervisor.
    ToSupervisor = "broker to supervisor" {
        /// First message.
        1 Hello(Hello) Control [0;],
        /// The broker serves: the journal is open and the listener is taken.
        2 Ready(Hello) Control [0;],
        /// Make a session.
        3 CreateSession(CreateSession) Control [0;],
        /// End a session.
        4 KillSession(Order) Control [0;],
        /// Stop everything in a session.
        5 Freeze(Order) Control [0;],
        /// Go on.
        6 Thaw(Order) Control [0;],
        /// The session needs its ptyd; answered by `RoleUp`.
        7 NeedPtyd(Order) Control [0;],
        /// List the processes of the kernel.
        8 ListProcesses(Ping) Control [0;],
        /// Stop the kernel.
        9 Shutdown(Shutdown) Control [0;],
        /// Answer to a probe.
        10 Pong(Ping) Control [0;],
        /// Read the policy again.
        11 Reload(Ping) Control [0;],
        /// Drained: rows are closed, the broker exits.
        12 Drained(Ping) Control [0;],
    }
}
