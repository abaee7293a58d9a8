//! Watches as the broker remembers them: to count them, and to start the persistent ones again with a new worker.

/// One watch of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchSpec {
    /// Its name.
    pub(crate) name: String,
    /// What it watches.
    pub(crate) uri: String,
    /// Its filter.
    pub(crate) on_event: Option<String>,
    /// Language of the filter.
    pub(crate) lang: String,
    /// It starts again with the session's next worker.
    pub(crate) persist: bool,
}
