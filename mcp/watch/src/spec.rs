//! What a watch is asked to do, and how it stands.

use serde_json::{Value, json};
use shoal_wire::EVENTS_MIME;

/// What `watch_start` was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Name, unique in the session.
    pub name: String,
    /// The resource.
    pub uri: String,
    /// Source of the filter.
    pub on_event: Option<String>,
    /// `shoal` or `python`.
    pub lang: String,
    /// Whether it starts again with the session's worker.
    pub persist: bool,
}

/// How a resource is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The body is the present state; changes are found by comparing.
    State,
    /// The body is a ring of numbered events.
    EventLog,
}

impl Shape {
    /// The shape that a MIME type announces.
    pub fn of_mime(mime: &str) -> Shape {
        if mime == EVENTS_MIME { Shape::EventLog } else { Shape::State }
    }

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Shape::State => "state",
            Shape::EventLog => "event-log",
        }
    }
}

/// How a watch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Subscribing, or reading for the first time.
    Starting,
    /// Subscribed.
    Active,
    /// The subscription ended and is tried again.
    Resubscribing,
    /// Given up.
    Failed,
}

impl State {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Active => "active",
            State::Resubscribing => "resubscribing",
            State::Failed => "failed",
        }
    }
}

/// The counters and marks of a WatchRecord.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Events processed.
    pub events: u64,
    /// Notices published.
    pub notices: u64,
    /// The newest error.
    pub last_error: Option<String>,
}

impl Spec {
    /// The WatchRecord.
    pub fn record(&self, shape: Option<Shape>, state: State, account: &Account, restore_failed: bool) -> Value {
        json!({
            "id": self.name, "name": self.name, "uri": self.uri, "shape": shape.map(Shape::word), "lang": self.lang,
            "state": state.word(), "events": account.events, "notices": account.notices, "persist": self.persist,
            "restore_failed": restore_failed, "last_error": account.last_error,
        })
    }
}
