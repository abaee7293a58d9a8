//! What was read last, and what a new read adds to it.

use serde_json::{Value, json};

use crate::limits::EVENTS_PER_PASS;
use crate::{Shape, diff, key};

/// A body as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Its MIME type.
    pub mime: String,
    /// Its text.
    pub text: String,
}

/// The position of a watch in its resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// The state as it was.
    State(Value),
    /// The highest number seen; `None` while the log was empty, whatever number it begins with.
    EventLog(Option<u64>),
}

/// Events of one pass, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pass {
    /// Plain objects with `type` and what belongs to it.
    pub events: Vec<Value>,
    /// Whether the body holds more than one pass takes; pass it again.
    pub more: bool,
}

impl Progress {
    /// Where a first read leaves a watch: nothing before it is delivered.
    pub fn baseline(body: &Body) -> Result<Progress, String> {
        match Shape::of_mime(&body.mime) {
            Shape::State => Ok(Progress::State(state(&body.text))),
            Shape::EventLog => Ok(Progress::EventLog(log(&body.text)?.last().map(|(seq, _)| *seq))),
        }
    }

    /// The newest event of a first read, for trying a filter on.
    pub fn sample(body: &Body) -> Option<Value> {
        let newest = log(&body.text).ok()?.pop()?.1;
        (Shape::of_mime(&body.mime) == Shape::EventLog).then(|| complete(newest))
    }

    /// How the resource is read.
    pub fn shape(&self) -> Shape {
        match self {
            Progress::State(_) => Shape::State,
            Progress::EventLog(_) => Shape::EventLog,
        }
    }

    /// Takes the next pass of a read.
    pub fn advance(&mut self, body: &Body) -> Result<Pass, String> {
        match self {
            Progress::State(before) => {
                let now = state(&body.text);
                let mut events = diff::events(before, &now);
                *before = now;
                if events.len() > EVENTS_PER_PASS {
                    let missed = events.len() - EVENTS_PER_PASS;
                    events.truncate(EVENTS_PER_PASS);
                    events.push(json!({ "type": "GAP", "missed": missed }));
                }
                Ok(Pass { events, more: false })
            }
            Progress::EventLog(seen) => advance_log(seen, log(&body.text)?),
        }
    }
}

fn state(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// The numbered events of a body, ascending.
fn log(text: &str) -> Result<Vec<(u64, Value)>, String> {
    let mut body: Value = serde_json::from_str(text).map_err(|error| format!("the event log is not JSON: {error}"))?;
    let Some(Value::Array(events)) = body.get_mut("events").map(Value::take) else {
        return Err("the event log has no list `events`".to_owned());
    };
    let numbered = |event: Value| Some((event.get("seq")?.as_u64()?, event));
    let mut events: Vec<(u64, Value)> = events.into_iter().filter_map(numbered).collect();
    events.sort_by_key(|(seq, _)| *seq);
    Ok(events)
}

fn advance_log(seen: &mut Option<u64>, events: Vec<(u64, Value)>) -> Result<Pass, String> {
    let (Some((lowest, _)), Some((highest, _))) = (events.first(), events.last()) else { return Ok(Pass::default()) };
    let (lowest, highest) = (*lowest, *highest);
    let mut pass = Pass::default();
    match *seen {
        Some(last) if highest < last => {
            pass.events.push(json!({ "type": "GAP", "from": last + 1, "to": highest, "missed": null, "reset": true }));
            *seen = None;
        }
        Some(last) if lowest > last + 1 => {
            let missed = lowest - last - 1;
            pass.events.push(json!({ "type": "GAP", "from": last + 1, "to": lowest - 1, "missed": missed }));
        }
        _ => {}
    }
    let before = *seen;
    let mut new = events.into_iter().filter(|(seq, _)| before.is_none_or(|last| *seq > last));
    for (seq, event) in new.by_ref().take(EVENTS_PER_PASS) {
        *seen = Some(seq);
        pass.events.push(complete(event));
    }
    pass.more = new.next().is_some();
    Ok(pass)
}

/// Adds `old` and `changed`, which a filter can rely on.
fn complete(mut event: Value) -> Value {
    let changed = match (event.get("old"), event.get("object")) {
        (Some(old), Some(new)) if event["type"] == "MODIFIED" => diff::changed(old, new),
        _ => Value::Null,
    };
    if event.get("old").is_none() {
        event["old"] = Value::Null;
    }
    event["changed"] = changed;
    event
}

/// The object whose last line a new one is compared with: its identity, if it has one.
pub fn object_key(event: &Value) -> Option<String> {
    event["key"].as_str().map(str::to_owned).or_else(|| key::carried(key::object(event)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use shoal_wire::EVENTS_MIME;

    fn body(seqs: impl IntoIterator<Item = u64>) -> Body {
        let events: Vec<Value> = seqs.into_iter().map(|seq| json!({"seq": seq, "type": "T"})).collect();
        Body { mime: EVENTS_MIME.to_owned(), text: json!({ "events": events }).to_string() }
    }

    fn seqs(pass: &Pass) -> Vec<u64> {
        pass.events.iter().filter_map(|event| event["seq"].as_u64()).collect()
    }

    #[test]
    fn a_first_read_delivers_nothing() {
        assert_eq!(Progress::baseline(&body([3, 9, 5])), Ok(Progress::EventLog(Some(9))));
        assert_eq!(Progress::baseline(&body([])), Ok(Progress::EventLog(None)));
        let state = Body { mime: "application/json".into(), text: "[1]".into() };
        assert_eq!(Progress::baseline(&state), Ok(Progress::State(json!([1]))));
        let bad = Body { mime: EVENTS_MIME.into(), text: "{}".into() };
        assert!(Progress::baseline(&bad).is_err());
    }

    #[test]
    fn gaps_come_first() {
        let mut progress = Progress::EventLog(Some(10));
        let pass = progress.advance(&body([14, 15])).unwrap();
        assert_eq!(pass.events[0], json!({"type":"GAP","from":11,"to":13,"missed":3}));
        assert_eq!(seqs(&pass), [14, 15]);
        let restarted = progress.advance(&body([1, 2])).unwrap();
        assert_eq!((&restarted.events[0]["type"], &restarted.events[0]["reset"]), (&json!("GAP"), &json!(true)));
        assert_eq!(seqs(&restarted), [1, 2]);
        assert_eq!(progress, Progress::EventLog(Some(2)));
    }

    #[test]
    fn an_empty_log_may_begin_with_any_number() {
        for first in [0, 1, 7] {
            let mut progress = Progress::baseline(&body([])).unwrap();
            let pass = progress.advance(&body([first, first + 1])).unwrap();
            assert_eq!((pass.events.len(), seqs(&pass)), (2, vec![first, first + 1]));
        }
    }

    #[test]
    fn floods_are_taken_in_passes() {
        let mut progress = Progress::EventLog(None);
        let flood = body(1..=250);
        let sizes: Vec<(usize, bool)> =
            (0..3).map(|_| progress.advance(&flood).map(|pass| (pass.events.len(), pass.more)).unwrap()).collect();
        assert_eq!(sizes, [(100, true), (100, true), (50, false)]);
        let many: serde_json::Map<String, Value> = (0..130).map(|n| (n.to_string(), json!(n))).collect();
        let mut state = Progress::State(json!({}));
        let pass = state.advance(&Body { mime: String::new(), text: json!(many).to_string() }).unwrap();
        assert_eq!((pass.events.len(), &pass.events[100]), (101, &json!({"type":"GAP","missed":30})));
    }

    #[test]
    fn modified_events_name_their_changes() {
        let event = json!({"seq":1,"type":"MODIFIED","old":{"a":1,"b":1},"object":{"a":2,"b":1}});
        let text = json!({ "events": [event] }).to_string();
        let pass = Progress::EventLog(None).advance(&Body { mime: EVENTS_MIME.into(), text }).unwrap();
        assert_eq!(pass.events[0]["changed"], json!(["a"]));
    }

    proptest! {
        #[test]
        fn each_number_is_delivered_once(reads in prop::collection::vec(prop::collection::btree_set(1u64..60, 0..20), 1..6)) {
            let mut progress = Progress::EventLog(Some(0));
            let mut last = 0;
            for read in reads {
                let restarted = read.last().is_some_and(|highest| *highest < last);
                let pass = progress.advance(&body(read)).unwrap();
                if restarted {
                    last = 0;
                }
                for seq in seqs(&pass) {
                    prop_assert!(seq > last);
                    last = seq;
                }
            }
        }
    }
}
