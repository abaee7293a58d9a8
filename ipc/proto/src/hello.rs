//! The first message on every edge, and what the versions added.

use bincode::{Decode, Encode};

use crate::bounded::Text;

/// Version of every edge; both ends come from one build, so another one is refused.
///
/// 1: first.
pub const EDGE_VERSION: u8 = 2;

/// Build id of this executable, `VERSION+COMMIT`; without a commit at build time `VERSION+dev`.
pub const BUILD: &str = match option_env!("SHOAL_BUILD") {
    Some(build) => build,
    None => concat!(env!("CARGO_PKG_VERSION"), "+dev"),
};

/// First message of both sides.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Hello {
    /// [`EDGE_VERSION`] of the sender.
    pub version: u8,
    /// Build id of the sender, `VERSION+COMMIT`.
    pub build: Text<128>,
    /// Generation of the edge: counts up each time fresh ends are handed out.
    pub generation: u32,
}

/// A process that ended, as its parent saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ExitStatus {
    /// Exit code, when it exited.
    pub code: Option<u8>,
    /// Signal number, when a signal ended it.
    pub signal: Option<u8>,
}

/// Roles inside a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum SessionRole {
    /// Pid 1 of the jail.
    Launcher,
    /// The evaluator.
    Worker,
    /// The terminal host.
    Ptyd,
}

/// A process as the operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct HostProcess {
    /// Host pid.
    pub pid: i32,
    /// Parent's host pid.
    pub ppid: i32,
    /// Name of the program.
    pub comm: Text<64>,
    /// Resident memory in bytes.
    pub rss: u64,
}
