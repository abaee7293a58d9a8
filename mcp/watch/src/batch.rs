//! Gathering lines into notices.
//!
//! Debounce is trailing: each line moves the end of the batch, up to a last moment counted from its first line.

use indexmap::IndexMap;

use crate::Millis;
use crate::limits::{BURST_MS, LINES, OBJECTS, QUIET_MS};

/// Lines on their way into one notice.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    lines: IndexMap<String, usize>,
    events: u64,
    times: Option<(Millis, Millis)>,
    last: IndexMap<String, String>,
}

/// A finished batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// At most twenty lines, each with `×N` where it was repeated.
    pub lines: Vec<String>,
    /// Different lines that were left out.
    pub more: usize,
    /// Events behind all of them.
    pub events: u64,
}

impl Batch {
    /// Adds the line of an event. A line equal to the last one of the same object is dropped; without an object there
    /// is no check. Tells whether the line was kept.
    pub fn push(&mut self, line: String, object: Option<&str>, now: Millis) -> bool {
        if let Some(object) = object {
            if self.last.get(object) == Some(&line) {
                return false;
            }
            self.last.shift_remove(object);
            self.last.insert(object.to_owned(), line.clone());
            if self.last.len() > OBJECTS {
                self.last.shift_remove_index(0);
            }
        }
        // Lines past what a notice shows are only counted, and their number is bounded like that of objects.
        if self.lines.len() < LINES + OBJECTS || self.lines.contains_key(&line) {
            *self.lines.entry(line).or_default() += 1;
        }
        self.events += 1;
        let first = self.times.map_or(now, |(first, _)| first);
        self.times = Some((first, now));
        true
    }

    /// When the batch is to be sent; `None` while it is empty.
    pub fn due(&self) -> Option<Millis> {
        self.times.map(|(first, last)| (last + QUIET_MS).min(first + BURST_MS))
    }

    /// Takes the batch if it is due.
    pub fn flush(&mut self, now: Millis) -> Option<Flushed> {
        if self.due()? > now {
            return None;
        }
        self.times = None;
        let lines = std::mem::take(&mut self.lines);
        let more = lines.len().saturating_sub(LINES);
        let shown = lines.into_iter().take(LINES);
        let lines = shown.map(|(line, count)| if count > 1 { format!("{line} ×{count}") } else { line }).collect();
        Some(Flushed { lines, more, events: std::mem::take(&mut self.events) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_single_line_waits_three_seconds_and_a_stream_fifteen() {
        let mut batch = Batch::default();
        batch.push("a".into(), None, 1000);
        assert_eq!((batch.due(), batch.flush(3999)), (Some(4000), None));
        assert_eq!(batch.flush(4000).unwrap().lines, ["a"]);
        assert_eq!(batch.due(), None);
        let sent = (0..20).map(|n| n * 2000).find(|now| {
            batch.push(format!("{now}"), None, *now);
            batch.flush(*now).is_some()
        });
        assert_eq!(sent, Some(16_000), "due at 15 s, seen at the next line");
    }

    #[test]
    fn many_lines_and_equal_lines() {
        let mut batch = Batch::default();
        for n in 0..25 {
            batch.push(format!("line {n}"), None, 0);
        }
        let flushed = batch.flush(3000).unwrap();
        assert_eq!((flushed.lines.len(), flushed.more, flushed.events), (20, 5, 25));
        for object in ["x", "y", "z"] {
            assert!(batch.push("line".into(), Some(object), 0));
        }
        assert!(!batch.push("line".into(), Some("x"), 0), "the same line of the same object");
        assert_eq!(batch.flush(3000).unwrap().lines, ["line ×3"]);
        assert!(!batch.push("line".into(), Some("x"), 9000), "remembered across notices");
        assert!(batch.push("other".into(), Some("x"), 9000) && batch.push("line".into(), Some("x"), 9000));
    }

    proptest! {
        #[test]
        fn no_line_waits_longer_than_fifteen_seconds(gaps in prop::collection::vec(0u64..5000, 1..40)) {
            let mut batch = Batch::default();
            let (mut now, mut first) = (0, None);
            for gap in gaps {
                now += gap;
                if batch.due().is_some_and(|due| due <= now) {
                    prop_assert!(batch.flush(now).is_some());
                    first = None;
                }
                batch.push(now.to_string(), None, now);
                let first = *first.get_or_insert(now);
                let due = batch.due().unwrap();
                prop_assert!(due <= first + BURST_MS && due <= now + QUIET_MS && due >= now);
            }
        }
    }
}
