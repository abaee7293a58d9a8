//! Which channel a URI changes with, and with which of its events.

use serde_json::Value;
use shoal_wire::envelope::Event;
use shoal_wire::{Ref, Uri, value};

/// The events of a channel that concern a URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Every one.
    All,
    /// `session` events with one of these actions.
    Actions(&'static [&'static str]),
    /// `session` events that say a view changed.
    Changed(String),
}

impl Wants {
    /// Whether an event is one of them.
    pub fn event(&self, event: &Event) -> bool {
        let payload = value::plain(&event.payload);
        // A summary of dropped events may stand for any of them.
        if payload.get("dropped").is_some() || payload["error"] == "history_lost" {
            return true;
        }
        let action = payload["action"].as_str();
        match self {
            Wants::All => true,
            Wants::Actions(actions) => action.is_some_and(|action| actions.contains(&action)),
            Wants::Changed(view) => {
                let what = payload["what"].as_array().into_iter().flatten();
                action == Some("changed") && what.filter_map(Value::as_str).any(|what| what == view)
            }
        }
    }
}

/// The channel behind a URI, if it can be watched. Query parameters do not matter.
pub fn of(uri: &str) -> Option<(String, Wants)> {
    let uri = Uri::parse(uri).ok()?;
    let segments: Vec<&str> = uri.segments.iter().map(String::as_str).collect();
    let session = |wants| Some(("session".to_owned(), wants));
    match (uri.root.as_str(), segments.as_slice()) {
        ("events", [channel]) => Some(((*channel).to_owned(), Wants::All)),
        ("watch", [name]) => Some((format!("watch.{name}"), Wants::All)),
        ("task", [id] | [id, "out" | "log"]) => numbered("task", id),
        ("pty", [id]) => numbered("pty", id),
        ("jobs", []) => session(Wants::Actions(&["task_started", "task_ended"])),
        ("pty", []) => session(Wants::Actions(&["pty_opened", "pty_closed"])),
        ("session", [view @ ("cwd" | "env" | "reef")]) => session(Wants::Changed((*view).to_owned())),
        ("journal", []) => Some(("journal".to_owned(), Wants::All)),
        _ => None,
    }
}

fn numbered(kind: &str, id: &str) -> Option<(String, Wants)> {
    match Ref::of(kind, id)? {
        Ref::Task(n) | Ref::Pty(n) => Some((format!("{kind}.{n}"), Wants::All)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(payload: Value) -> Event {
        Event { channel: "session".into(), owner: None, seq: 1, ts: 1, payload }
    }

    #[test]
    fn channels_of_uris() {
        let channel = |uri: &str| of(uri).map(|(channel, _)| channel);
        for (uri, expected) in [
            ("shoal://events/user.z?since=4", "user.z"),
            ("shoal://watch/cm", "watch.cm"),
            ("shoal://task/9/out", "task.9"),
            ("shoal://task/task:9/log", "task.9"),
            ("shoal://pty/3", "pty.3"),
            ("shoal://pty", "session"),
            ("shoal://jobs", "session"),
            ("shoal://session/cwd", "session"),
            ("shoal://journal?limit=5", "journal"),
        ] {
            assert_eq!(channel(uri).as_deref(), Some(expected), "{uri}");
        }
        for uri in
            ["shoal://out/1", "shoal://plan/x", "shoal://session/x", "shoal://task/x", "http://x", "shoal://nowatch/1"]
        {
            assert_eq!(channel(uri), None, "{uri}");
        }
    }

    #[test]
    fn session_events_concern_their_views() {
        let changed = |what: &[&str]| {
            let what = value::list(what.iter().map(|view| value::str(*view)));
            event(value::record([("action", value::str("changed")), ("what", what)]))
        };
        let (_, cwd) = of("shoal://session/cwd").unwrap();
        assert!(cwd.event(&changed(&["env", "cwd"])) && !cwd.event(&changed(&["env"])));
        let (_, jobs) = of("shoal://jobs").unwrap();
        assert!(jobs.event(&event(value::record([("action", value::str("task_started"))]))));
        assert!(!jobs.event(&changed(&["cwd"])));
        assert!(jobs.event(&event(json!({"dropped": 3, "latest_seq": 9}))));
    }
}
