//! `journal.query`, `journal.verify` and the administration of stored blobs.

use super::session::Principal;
use super::{Hash, Member, SessionName, params};
use crate::effect;
use crate::error::RpcError;
use crate::limits;

/// Kinds of journal rows.
pub const ROW_KINDS: &[&str] =
    &["exec", "statement", "plan", "approval", "denial", "pty", "session", "admin", "kernel"];
/// Kinds `journal.query` lists when none are named.
pub const DEFAULT_ROW_KINDS: &[&str] = &["exec", "statement", "plan", "approval", "denial", "pty"];

/// An effect kind in either spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectKind(pub &'static str);

impl Member for EffectKind {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let name = String::read(param, text)?;
        effect::kind(&name)
            .map(EffectKind)
            .ok_or_else(|| RpcError::out_of_range(param, &format!("one of {}", effect::KINDS.join(", "))))
    }
}

/// A row kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowKind(pub &'static str);

impl Member for RowKind {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let name = String::read(param, text)?;
        let known = ROW_KINDS.iter().copied().find(|kind| *kind == name);
        known.map(RowKind).ok_or_else(|| RpcError::out_of_range(param, &format!("one of {}", ROW_KINDS.join(", "))))
    }
}

params! {
    /// `journal.query`.
    JournalQuery {
        /// Earliest time, in ns, inclusive.
        opt since: i64,
        /// Latest time, in ns, inclusive.
        opt until: i64,
        /// Who asked.
        opt principal: Principal,
        /// First word of the source.
        opt head: String,
        /// Outcome; open rows never match.
        opt ok: bool,
        /// Kinds a row must all have.
        def effects: Vec<EffectKind> = Vec::new(),
        /// Kinds of rows.
        opt kinds: Vec<RowKind>,
        /// Session name.
        opt session: SessionName,
        /// Rows with a smaller id.
        opt before: i64,
        /// Rows at most; see [`JournalQuery::rows`].
        opt limit: u64,
        /// Whether each output has what is known of its bytes: `stored_len` (null once they were collected) and `meta`.
        def stored: bool = false,
    }
}

impl JournalQuery {
    /// The number of rows asked for: 100 when absent or 0, at most 10,000.
    pub fn rows(&self) -> u64 {
        match self.limit {
            None | Some(0) => limits::JOURNAL_ROWS,
            Some(rows) => rows.min(limits::JOURNAL_ROWS_MAX),
        }
    }
}

params! {
    /// `journal.verify`.
    #[derive(Eq)]
    JournalVerify {
        /// A digest noted earlier.
        opt head: Hash,
    }
}

params! {
    /// `journal.pin` and `journal.unpin`.
    #[derive(Eq)]
    JournalPin {
        /// Digest of the blob.
        req hash: Hash,
    }
}

params! {
    /// `journal.gc`.
    #[derive(Eq)]
    JournalGc {
        /// Age in seconds above which unpinned blobs go.
        opt ttl_s: u64,
        /// Bytes to fit into.
        opt budget_bytes: u64,
        /// Whether anything is deleted.
        def apply: bool = false,
    }
}
