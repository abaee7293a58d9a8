//! Effects: what a program may do to the world, as far as its text tells.

mod bound;
mod calls;
mod commands;
mod derive;
mod known;
mod walk;

use std::fmt;

pub use bound::{Claimed, Reached, Started};
pub(crate) use derive::{Derived, derive};
use shoal_value::Str;

/// An effect. `*` as a path, name or host stands for "some, unknown".
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Reads a path: absolute, lexically normalised.
    Read(Str),
    /// Writes a path.
    Write(Str),
    /// Deletes a path.
    Delete(Str),
    /// Starts a program.
    Spawn {
        /// BLAKE3 hash of the executable, if known.
        hash: Str,
        /// Its name.
        argv0: Str,
    },
    /// Connects to a host and port.
    Connect(Str, Str),
    /// Listens on a port.
    Listen(Str),
    /// Reads an environment variable.
    EnvRead(Str),
    /// Sets or removes an environment variable.
    EnvWrite(Str),
    /// Uses a secret.
    Secret(Str),
    /// Changes the session.
    Session,
    /// Reads the journal.
    Journal,
    /// Reads the clock.
    Time,
    /// Anything may happen.
    Opaque,
}

impl Effect {
    /// Whether undo can never take it back.
    pub fn is_irreversible(&self) -> bool {
        matches!(self, Self::Opaque | Self::Connect(..) | Self::Listen(_))
    }
}

/// The text form of plans.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read {path}"),
            Self::Write(path) => write!(f, "write {path}"),
            Self::Delete(path) => write!(f, "delete {path}"),
            Self::Spawn { argv0, .. } => write!(f, "spawn {argv0}"),
            Self::Connect(host, port) => write!(f, "connect {host}:{port}"),
            Self::Listen(port) => write!(f, "listen {port}"),
            Self::EnvRead(name) => write!(f, "read env {name}"),
            Self::EnvWrite(name) => write!(f, "write env {name}"),
            Self::Secret(name) => write!(f, "use secret {name}"),
            Self::Session => f.write_str("change session"),
            Self::Journal => f.write_str("read journal"),
            Self::Time => f.write_str("clock"),
            Self::Opaque => f.write_str("opaque (effects unknown)"),
        }
    }
}
