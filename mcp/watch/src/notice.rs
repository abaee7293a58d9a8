//! Notices: what a watch has to say, as an event.

use serde_json::Value;
use shoal_wire::value;

use crate::Spec;
use crate::batch::Flushed;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Name of the watch.
    pub name: String,
    /// Its resource.
    pub uri: String,
    /// The lines.
    pub lines: Vec<String>,
    /// Lines left out.
    pub more: usize,
    /// Events behind it.
    pub events: u64,
}

impl Notice {
    /// The notice of a batch.
    pub fn of(spec: &Spec, batch: Flushed) -> Notice {
        let Flushed { lines, more, events } = batch;
        Notice { name: spec.name.clone(), uri: spec.uri.clone(), lines, more, events }
    }

    /// A notice of one line that no event stands behind, such as the failure of a watch.
    pub fn word(spec: &Spec, line: String) -> Notice {
        Notice { name: spec.name.clone(), uri: spec.uri.clone(), lines: vec![line], more: 0, events: 0 }
    }

    /// Its lines as one text.
    pub fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        if self.more > 0 {
            text.push_str(&format!("\n+{} more", self.more));
        }
        text
    }

    /// The payload of the event on `watch.NAME`.
    pub fn payload(&self, session: &str) -> Value {
        value::record([
            ("name", value::str(self.name.as_str())),
            ("uri", value::str(self.uri.as_str())),
            ("session", value::str(session)),
            ("text", value::str(self.text())),
            ("lines", value::list(self.lines.iter().map(|line| value::str(line.as_str())))),
            ("more", value::int(i64::try_from(self.more).unwrap_or(i64::MAX))),
            ("events", value::int(i64::try_from(self.events).unwrap_or(i64::MAX))),
        ])
    }
}
