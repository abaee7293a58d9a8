//! Supervisor and launcher: birth, adoption, replacement of roles, kill, freeze.

use bincode::{Decode, Encode};

use crate::bounded::{List, Text};
use crate::hello::{ExitStatus, Hello, SessionRole};
use crate::message::edge;
use crate::supervisor_broker::{Limits, Ping};

/// Paths of a domain.
pub const MAX_RULES: usize = 1024;
/// Ports of a domain.
pub const MAX_PORTS: usize = 1024;

/// What may be done with everything below a path, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Encode, Decode)]
pub struct Access(u8);

impl Access {
    /// Read files and list directories.
    pub const READ: Self = Self(1);
    /// Execute files.
    pub const EXECUTE: Self = Self(2);
    /// Change, create and move files.
    pub const WRITE: Self = Self(4);
    /// Remove files and move them away.
    pub const DELETE: Self = Self(8);
    /// Control devices.
    pub const DEVICE: Self = Self(16);
    /// List directories.
    pub const LIST: Self = Self(32);

    /// Both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One rule of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Rule {
    /// Path inside the jail, without symbolic links.
    pub path: Text<4096>,
    /// What may be done below it.
    pub access: Access,
}

/// TCP ports of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Ports {
    /// May be connected to; `None`: all.
    pub connect: Option<List<u16, MAX_PORTS>>,
    /// May be listened on.
    pub listen: List<u16, MAX_PORTS>,
}

/// What the launcher confines itself to before it starts anything; all its processes inherit it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Domain {
    /// Files, by Landlock; `None` where the host has none.
    pub files: Option<List<Rule, MAX_RULES>>,
    /// TCP ports, by Landlock; `None` leaves the network alone.
    pub ports: Option<Ports>,
    /// Install the filter of system calls.
    pub filter: bool,
    /// No mount view and no pid namespace protects others: refuse UNIX sockets and other processes' limits.
    pub exposed: bool,
}

/// What the launcher must know of its session.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Birth {
    /// The supervisor's hello; its generation is that of the ends in the message.
    pub hello: Hello,
    /// Limits that lower the section's.
    pub limits: Limits,
    /// Paths under which programs may be started without a rule; empty means the section decides alone.
    pub roots: List<Text<4096>, 256>,
    /// What it confines itself to.
    pub domain: Domain,
    /// Descriptor 6 has the counters of the session's memory bound.
    pub memory_events: bool,
}

/// A role ended or could not be started.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RoleDied {
    /// Which role.
    pub role: SessionRole,
    /// How it ended.
    pub status: ExitStatus,
    /// What it did that no role does, if it was ended for that; empty otherwise.
    pub fault: Text<512>,
}

/// A role runs and has confined itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RoleStarted {
    /// Which role.
    pub role: SessionRole,
    /// Its pid inside the jail.
    pub pid: i32,
    /// Its generation.
    pub generation: u32,
}

/// Birth failed inside the jail.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BirthFailed {
    /// Step that failed, in words.
    pub step: Text<128>,
    /// Error number of the step.
    pub errno: i32,
}

/// Generation of the ends in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Generation {
    /// Counts up per session.
    pub generation: u32,
}

/// End everything in the jail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Kill {
    /// Time between TERM and KILL for commands.
    pub grace_ms: u32,
}

edge! {
    /// Supervisor to launcher.
    ToLauncher = "supervisor to launcher" {
        /// First message: compiled section, ends of broker-launcher and broker-worker.
        1 Birth(Birth) Control [3; Memfd, Socket, Socket],
        /// A fresh broker came: ends of broker-launcher, broker-worker and, if ptyd lives, broker-ptyd.
        2 Adopt(Generation) Control [2; Socket, Socket, Socket],
        /// Start the worker again, with a fresh end of broker-worker.
        3 StartWorker(Generation) Control [1; Socket],
        /// Start (again) the ptyd, with a fresh end of broker-ptyd.
        4 StartPtyd(Generation) Control [1; Socket],
        /// End everything.
        5 Kill(Kill) Control [0;],
        /// Stop every command and the worker.
        6 Freeze(Ping) Control [0;],
        /// Go on.
        7 Thaw(Ping) Control [0;],
        /// Liveness probe.
        8 Ping(Ping) Control [0;],
    }
}

edge! {
    /// Launcher to supervisor.
    ToSupervisor = "launcher to supervisor" {
        /// The launcher is confined and its worker reported its own confinement.
        1 Ready(Hello) Control [0;],
        /// Birth failed.
        2 BirthFailed(BirthFailed) Control [0;],
        /// A role ended.
        3 RoleDied(RoleDied) Control [0;],
        /// A role runs.
        4 RoleStarted(RoleStarted) Control [0;],
        /// Every command and role is gone; the launcher exits.
        5 Ended(Ping) Control [0;],
        /// Frozen or thawed, echoing the number.
        6 Frozen(Ping) Control [0;],
        /// Answer to a probe.
        7 Pong(Ping) Control [0;],
    }
}
