//! Compiled policy: what `shoal-policy` makes of the human's files, for verdicts in the broker and jails in the
//! launchers. It travels in a sealed memfd; a session is under the section that serves its owner.

use bincode::{Decode, Encode};

use crate::bounded::{List, Text};
use crate::codec;
use crate::fault::Violation;

/// Entries of one list of a section.
pub const MAX_ENTRIES: usize = 4096;

/// Quotas an operator may change: in `shoal.toml`, by `--limit` and by `SHOAL_MAX_NAME`.
pub const QUOTAS: [&str; 14] = [
    "connections",
    "unattached",
    "sessions",
    "execs_per_session",
    "tasks",
    "plans_per_owner",
    "plan_source_bytes",
    "ptys_per_session",
    "ptys_per_principal",
    "ptys",
    "subscriptions",
    "user_channels",
    "blob_reads",
    "watches_per_session",
];

/// One entry of a list: a glob, name, path or hash.
pub type Entry = Text<4096>;

/// What an opaque effect gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum Opaque {
    /// Refused.
    #[default]
    Deny,
    /// Needs an approval.
    Ask,
    /// Allowed.
    Allow,
}

/// Whether a fully granted plan runs unattended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum AutoApply {
    /// Every program needs an approval.
    #[default]
    Never,
    /// Granted effects run.
    InGrant,
    /// Granted effects run unless one is opaque or deletes.
    Reversible,
}

/// Who decides this principal's plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum Approve {
    /// The human and approvers.
    #[default]
    Human,
    /// Also itself.
    Itself,
    /// Also the person at its MCP client.
    Client,
    /// As `Human`, and it decides for others.
    Others,
}

/// Network of every process of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub enum Network {
    /// A loopback of its own.
    #[default]
    None,
    /// TCP on and to granted ports.
    Ports,
    /// The host's.
    Open,
}

/// Most a session may use; `None` leaves it to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SectionLimits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes.
    pub pids: Option<u32>,
    /// Seconds of CPU per process.
    pub cpu_seconds: Option<u64>,
    /// Open files per process.
    pub open_files: Option<u32>,
    /// Bytes of output per execution.
    pub output: Option<u64>,
}

/// The compiled rules of one principal.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Section {
    /// Principal, or `default` for the section that serves all without one of their own.
    pub principal: Text<128>,
    /// Globs that may be read.
    pub fs_read: List<Entry, MAX_ENTRIES>,
    /// Globs that may be written.
    pub fs_write: List<Entry, MAX_ENTRIES>,
    /// Globs that may be deleted.
    pub fs_delete: List<Entry, MAX_ENTRIES>,
    /// `host-glob:port` or `host-glob:*`.
    pub net_connect: List<Entry, MAX_ENTRIES>,
    /// Ports.
    pub net_listen: List<u16, MAX_ENTRIES>,
    /// Hash, argv0 or basename each; empty pins nothing.
    pub proc_spawn: List<Entry, MAX_ENTRIES>,
    /// Names or `*`.
    pub env_read: List<Entry, MAX_ENTRIES>,
    /// Names or `*`.
    pub env_write: List<Entry, MAX_ENTRIES>,
    /// Names or `*`.
    pub secret_use: List<Entry, MAX_ENTRIES>,
    /// May change its session.
    pub session_write: bool,
    /// May read every row.
    pub journal_read: bool,
    /// May read the clock.
    pub time: bool,
    /// Opaque effects.
    pub opaque: Opaque,
    /// Unattended runs.
    pub auto_apply: AutoApply,
    /// Decisions.
    pub approve: Approve,
    /// Claims without which no session exists, bit `n - 1` for `Cn`.
    pub require: u16,
    /// Refuse to spawn when a requested dimension cannot be enforced.
    pub hermetic: bool,
    /// Network.
    pub network: Network,
    /// Socket paths that may be connected to.
    pub unix_sockets: List<Entry, MAX_ENTRIES>,
    /// Keep hooks, config and pointers of granted repositories read-only.
    pub git_safe: bool,
    /// Limits.
    pub limits: SectionLimits,
    /// Seconds an unused session lives.
    pub idle_ttl: Option<u64>,
}

/// What `shoal.toml` settles for the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Settings {
    /// Sync every group of rows before its answer.
    pub durability_full: bool,
    /// Changed quotas, `(name, value)`.
    pub quotas: List<(Text<64>, u64), 64>,
    /// The text of the file's `[config]` table as JSON, for the language's `config`.
    pub config: Text<{ 256 * 1024 }>,
}

/// Everything `shoal-policy` compiled.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Sections {
    /// The sections; a session is created under one of them.
    pub sections: List<Section, 256>,
    /// Kernel settings.
    pub settings: Settings,
    /// No policy file exists: the built-in policy is in force.
    pub built_in: bool,
}

impl Section {
    /// The bytes for a launcher's sealed memfd.
    pub fn encode(&self) -> Result<Vec<u8>, Violation> {
        codec::encode(self)
    }

    /// Reads what [`Section::encode`] wrote, all of it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Violation> {
        codec::decode(bytes)
    }

    /// All three file lists hold everything: the jail is the whole filesystem minus the holes.
    pub fn is_whole_filesystem(&self) -> bool {
        [&self.fs_read, &self.fs_write, &self.fs_delete]
            .iter()
            .all(|list| list.as_slice().iter().any(|glob| glob.as_str() == "/**"))
    }
}

impl Sections {
    /// The bytes for the sealed memfd.
    pub fn encode(&self) -> Result<Vec<u8>, Violation> {
        codec::encode(self)
    }

    /// Reads what [`Sections::encode`] wrote, all of it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Violation> {
        codec::decode(bytes)
    }

    /// The section that serves `principal`: its own, else the default one.
    pub fn serving(&self, principal: &str) -> Option<&Section> {
        let find = |name: &str| self.sections.as_slice().iter().find(|section| section.principal.as_str() == name);
        find(principal).or_else(|| find("default"))
    }
}
