//! Ports that only a session has: store, journal, plans, resources.

use shoal_value::{ErrorValue, Record, Str, Table, Value, error::Span};

use crate::cancel::CancelToken;
use crate::effects::Effect;

/// Stored values by hash.
pub trait Store: Send + Sync {
    /// The bytes under a BLAKE3 hash (64 hexadecimal digits); `None` if unknown or not owned by the principal.
    fn load(&self, hash: &str, cancel: &CancelToken) -> Result<Option<Vec<u8>>, ErrorValue>;
}

/// The journal of the broker.
pub trait Journal: Send + Sync {
    /// Begins an entry for a top-level statement; its number. `Err` refuses it and nothing runs.
    fn statement_begin(&self, source: &str, span: Span) -> Result<u64, ErrorValue>;

    /// Finishes it.
    fn statement_end(&self, entry: u64, end: StatementEnd);

    /// Entries, newest first.
    fn query(&self, query: &JournalQuery, cancel: &CancelToken) -> Result<Vec<JournalRow>, ErrorValue>;

    /// Undoes an entry, the newest one with inverses if none is named. With `root` only if everything it changed lies below
    /// that absolute directory, else nothing is undone.
    fn undo(&self, entry: Option<&str>, root: Option<&[u8]>, cancel: &CancelToken) -> Result<UndoReport, ErrorValue>;
}

/// How a statement ended.
#[derive(Clone, Debug)]
pub struct StatementEnd {
    /// The outcome's own, or whether it raised nothing.
    pub ok: bool,
    /// Exit status of an outcome.
    pub status: Option<i64>,
    /// Error code, if it raised.
    pub code: Option<Str>,
}

/// Which entries.
#[derive(Clone, Debug, Default)]
pub struct JournalQuery {
    /// Only of this session.
    pub this_session: bool,
    /// Only with this head word.
    pub head: Option<Str>,
    /// Only of this principal.
    pub principal: Option<Str>,
    /// At most so many.
    pub limit: Option<u64>,
}

/// An entry.
#[derive(Clone, Debug)]
pub struct JournalRow {
    /// Its id.
    pub id: Str,
    /// When it began.
    pub ts: jiff::Timestamp,
    /// For whom.
    pub principal: Str,
    /// Source text.
    pub src: Str,
    /// Whether it ended well; `None` while open.
    pub ok: Option<bool>,
    /// Exit status.
    pub status: Option<i64>,
    /// Effects in text form.
    pub effects: Vec<Str>,
}

/// What an undo did.
#[derive(Clone, Debug)]
pub struct UndoReport {
    /// The entry.
    pub entry: Str,
    /// Whether anything was undone.
    pub undone: bool,
    /// What was done, one text each.
    pub actions: Vec<Str>,
}

/// The host's event bus.
pub trait Bus: Send + Sync {
    /// Publishes an event that the program emitted; `payload` is a tagged wire value of at most 64 KiB. Events of others
    /// come by [`crate::request::Evaluators::deliver`].
    fn publish(&self, channel: &str, payload: &str) -> Result<(), ErrorValue>;
}

/// Stored plans.
pub trait Plans: Send + Sync {
    /// Stores a plan; its id.
    fn put(&self, plan: StoredPlan) -> Result<Str, ErrorValue>;

    /// A plan that is neither used nor expired.
    fn peek(&self, id: &str) -> Option<StoredPlan>;

    /// Takes a plan for its single use.
    fn take(&self, id: &str) -> Option<StoredPlan>;
}

/// A plan with everything it depends on.
#[derive(Clone)]
pub struct StoredPlan {
    /// Source text.
    pub source: Str,
    /// Working directory.
    pub cwd: shoal_value::PathValue,
    /// Fingerprint of the environment.
    pub env: u64,
    /// Effects in order.
    pub effects: Vec<Effect>,
    /// Session names its source reaches, with their values.
    pub bindings: Vec<(Str, crate::scope::Binding)>,
}

/// Resources and watches.
pub trait Resources: Send + Sync {
    /// `list_resources()`.
    fn list(&self, cancel: &CancelToken) -> Result<Table, ErrorValue>;

    /// `read_resource(uri)`.
    fn read(&self, uri: &str, cancel: &CancelToken) -> Result<Value, ErrorValue>;

    /// `watch_start(...)`, after the arguments were checked.
    fn watch_start(&self, watch: WatchStart, cancel: &CancelToken) -> Result<Record, ErrorValue>;

    /// `watch_stop(name)`: whether it existed.
    fn watch_stop(&self, name: &str) -> Result<bool, ErrorValue>;

    /// `watch_list()`.
    fn watch_list(&self) -> Result<Table, ErrorValue>;

    /// `call_tool(...)`: `not_permitted` outside filters.
    fn call_tool(&self, server: &str, tool: &str, args: &Record, cancel: &CancelToken) -> Result<Value, ErrorValue>;

    /// Whether there are servers besides the session's own.
    fn has_servers(&self) -> bool;
}

/// A watch to start.
#[derive(Clone, Debug)]
pub struct WatchStart {
    /// Its name.
    pub name: Str,
    /// Resource.
    pub uri: Str,
    /// Filter source.
    pub on_event: Option<Str>,
    /// `shoal` or `python`.
    pub lang: Str,
    /// Whether it starts again with a new worker.
    pub persist: bool,
}
