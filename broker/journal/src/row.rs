//! Rows as the broker makes and reads them.

use serde_json::{Value, json};

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An execution.
    Exec,
    /// A top-level statement of one.
    Statement,
    /// A stored plan.
    Plan,
    /// A request or decision about a plan.
    Approval,
    /// A refusal.
    Denial,
    /// A terminal opened, closed, taken or released.
    Pty,
    /// A session's life.
    Session,
    /// An act of administration.
    Admin,
    /// The kernel's own life.
    Kernel,
}

const KINDS: [(Kind, &str); 9] = [
    (Kind::Exec, "exec"),
    (Kind::Statement, "statement"),
    (Kind::Plan, "plan"),
    (Kind::Approval, "approval"),
    (Kind::Denial, "denial"),
    (Kind::Pty, "pty"),
    (Kind::Session, "session"),
    (Kind::Admin, "admin"),
    (Kind::Kernel, "kernel"),
];

impl Kind {
    /// Wire spelling.
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("kernel", |(_, name)| name)
    }

    /// The kind of a spelling.
    pub fn parse(text: &str) -> Option<Self> {
        KINDS.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind)
    }

    /// Rows of this kind are synced before their answer, whatever the durability.
    pub fn is_synced(self) -> bool {
        matches!(self, Self::Approval | Self::Admin)
    }
}

/// How a row ended, when not by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The kernel was restarted.
    Interrupted,
    /// The worker died.
    WorkerLost,
    /// The session was killed.
    Killed,
    /// The run was cancelled.
    Cancelled,
    /// The deadline passed.
    Deadline,
}

impl Ended {
    /// Wire spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::WorkerLost => "worker_lost",
            Self::Killed => "killed",
            Self::Cancelled => "cancelled",
            Self::Deadline => "deadline",
        }
    }
}

/// A row as it is written first: the intent.
#[derive(Clone, Debug)]
pub struct NewRow {
    /// Kind.
    pub kind: Kind,
    /// The `exec` row a `statement` belongs to.
    pub parent: Option<i64>,
    /// Session name.
    pub session: String,
    /// Owner of the session.
    pub owner: String,
    /// Who asked.
    pub principal: String,
    /// When, nanoseconds since the epoch.
    pub ts: i64,
    /// Working directory.
    pub cwd: Vec<u8>,
    /// Hash of the environment.
    pub env_hash: Option<[u8; 32]>,
    /// Source text.
    pub src: String,
    /// Syntax tree, of plans only.
    pub ast: Option<Value>,
    /// Effects, a JSON array.
    pub effects: Value,
    /// Idempotency key, with the hash of its body.
    pub key: Option<(String, [u8; 32])>,
    /// The broker's number of the execution, to match open rows with live work after a restart. Not chained.
    pub run: Option<i64>,
    /// Detail by kind.
    pub detail: Option<Value>,
}

impl NewRow {
    /// A row of a kind that carries nothing but who, where and detail.
    pub fn plain(kind: Kind, session: &str, owner: &str, principal: &str, ts: i64, detail: Option<Value>) -> Self {
        Self {
            kind,
            parent: None,
            session: session.to_owned(),
            owner: owner.to_owned(),
            principal: principal.to_owned(),
            ts,
            cwd: Vec::new(),
            env_hash: None,
            src: String::new(),
            ast: None,
            effects: Value::Array(Vec::new()),
            key: None,
            run: None,
            detail,
        }
    }

    /// An effect is opaque.
    pub fn is_opaque(&self) -> bool {
        self.effects.as_array().is_some_and(|list| list.iter().any(|e| e.get("kind").is_some_and(|k| k == "opaque")))
    }
}

/// Bytes of one output, or the hash of a blob stored before.
#[derive(Clone, Debug)]
pub enum OutputData {
    /// Stored with the row.
    Bytes(Vec<u8>),
    /// Stored already.
    Stored {
        /// BLAKE3 of the plain bytes.
        hash: [u8; 32],
        /// Plain length.
        len: u64,
    },
}

/// One output of a row.
#[derive(Clone, Debug)]
pub struct Output {
    /// `value`, `render`, `stdout`, `stderr`.
    pub kind: String,
    /// Its bytes.
    pub data: OutputData,
    /// `{truncated, original_len, stored_len}` when it was cut.
    pub meta: Option<Value>,
}

/// How a row ends.
#[derive(Clone, Debug, Default)]
pub struct Closing {
    /// Duration.
    pub dur_ns: i64,
    /// Exit status of the result, `None` when a raise has none.
    pub status: Option<i64>,
    /// The result is no failure.
    pub ok: bool,
    /// Ended by something else than itself.
    pub ended: Option<Ended>,
    /// Number of the transcript value.
    pub out: Option<i64>,
    /// What durable events say of it.
    pub summary: Option<Value>,
    /// Outputs.
    pub outputs: Vec<Output>,
}

/// An output as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredOutput {
    /// Kind.
    pub kind: String,
    /// Hash in hex.
    pub hash: String,
    /// Plain length.
    pub len: i64,
    /// Meta.
    pub meta: Option<Value>,
    /// Whether its bytes are still there.
    pub bytes: Kept,
}

/// What is known of the bytes of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Nobody asked.
    #[default]
    Unknown,
    /// Collected.
    Gone,
    /// They take so many bytes in the store.
    Stored(i64),
}

impl StoredOutput {
    /// The text a row keeps of its outputs: `[[kind, hash, len, meta], ...]`; nothing without any.
    pub(crate) fn text(outputs: &[Self]) -> Option<String> {
        let list = || outputs.iter().map(|o| json!([o.kind, o.hash, o.len, o.meta])).collect();
        (!outputs.is_empty()).then(|| Value::Array(list()).to_string())
    }

    /// The outputs of such a text. Of one that somebody spoiled, an output that no link of the chain tells of.
    pub(crate) fn list(text: Option<String>) -> Vec<Self> {
        let Some(text) = text else { return Vec::new() };
        let read = serde_json::from_str::<Vec<(String, String, i64, Option<Value>)>>(&text);
        let bytes = Kept::Unknown;
        let list =
            read.map(|list| list.into_iter().map(|(kind, hash, len, meta)| Self { kind, hash, len, meta, bytes }));
        match list {
            Ok(list) if list.len() > 0 => list.collect(),
            Ok(_) | Err(_) => vec![Self { kind: text, hash: String::new(), len: -1, meta: None, bytes }],
        }
    }
}

/// A row as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Id.
    pub id: i64,
    /// Kind, as stored.
    pub kind: String,
    /// Parent row.
    pub parent: Option<i64>,
    /// Session name.
    pub session: String,
    /// Owner.
    pub owner: String,
    /// Who asked.
    pub principal: String,
    /// When.
    pub ts: i64,
    /// Duration, when closed.
    pub dur_ns: Option<i64>,
    /// Working directory.
    pub cwd: Vec<u8>,
    /// Hash of the environment in hex.
    pub env_hash: Option<String>,
    /// Source.
    pub src: String,
    /// Tree, of plans.
    pub ast: Option<Value>,
    /// Effects.
    pub effects: Value,
    /// An effect is opaque.
    pub opaque: bool,
    /// Status.
    pub status: Option<i64>,
    /// No failure.
    pub ok: Option<bool>,
    /// How it ended.
    pub ended: Option<String>,
    /// Key.
    pub key: Option<String>,
    /// Hash of the key's body.
    pub key_body: Option<Vec<u8>>,
    /// The broker's number of the execution.
    pub run: Option<i64>,
    /// Transcript number.
    pub out: Option<i64>,
    /// Summary for events.
    pub summary: Option<Value>,
    /// Detail.
    pub detail: Option<Value>,
    /// Outputs.
    pub outputs: Vec<StoredOutput>,
    /// Previous digest of the newest link, hex.
    pub prev: Option<String>,
    /// Digest of the newest link, hex.
    pub digest: Option<String>,
}
