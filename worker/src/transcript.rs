//! The numbered results of a session: `out:N`, newest kept, bounded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_eval::request::Transcript;
use shoal_value::{ErrorValue, Record, Str, Table, Value};

/// Values held in memory; older ones are read from the content store.
const MAX_ENTRIES: usize = 1024;
/// Bytes of their encoded forms; the newest is held whatever its size.
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// Characters of a source shown in `out`.
const SRC_CHARS: usize = 200;

/// One result.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The value, or the error it ended with.
    pub(crate) value: Value,
    /// It ended with a value, and an outcome among them is ok.
    pub(crate) ok: bool,
    src: Str,
    bytes: usize,
}

impl Entry {
    /// A result of a source; `bytes` is about what the value takes.
    pub(crate) fn new(value: Value, ok: bool, src: &str, bytes: usize) -> Self {
        let src = src.chars().take(SRC_CHARS).collect::<String>().into();
        Self { value, ok, src, bytes }
    }
}

#[derive(Debug)]
struct Kept {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Number of the next result.
    next: u64,
}

/// All results of the session.
#[derive(Debug)]
pub(crate) struct Results(Mutex<Kept>);

impl Results {
    /// No results yet; the next one gets this number.
    pub(crate) fn starting_at(next: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Kept { entries: VecDeque::new(), bytes: 0, next: next.max(1) })))
    }

    /// The number the next result gets.
    pub(crate) fn next(&self) -> u64 {
        self.lock().next
    }

    /// Adds a result; its number.
    pub(crate) fn push(&self, entry: Entry) -> u64 {
        let mut kept = self.lock();
        let n = kept.next;
        kept.next += 1;
        kept.bytes = kept.bytes.saturating_add(entry.bytes);
        kept.entries.push_back(entry);
        let mut dropped = Vec::new();
        while kept.entries.len() > MAX_ENTRIES || (kept.bytes > MAX_BYTES && kept.entries.len() > 1) {
            let Some(oldest) = kept.entries.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(oldest.bytes);
            dropped.push(oldest);
        }
        drop(kept);
        // Large values are freed without the lock.
        drop(dropped);
        n
    }

    /// The result of a number, if it is still held.
    pub(crate) fn entry(&self, n: u64) -> Option<Entry> {
        let kept = self.lock();
        kept.entries.get(kept.place(n)?).cloned()
    }

    /// The results up to now.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Arc<dyn Transcript> {
        Arc::new(Snapshot { results: Arc::clone(self), end: self.next() })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Number of the oldest result held.
    fn first(&self) -> u64 {
        self.next - self.entries.len() as u64
    }

    fn place(&self, n: u64) -> Option<usize> {
        usize::try_from(n.checked_sub(self.first())?).ok()
    }
}

/// The results a request sees: those there were when it began.
struct Snapshot {
    results: Arc<Results>,
    end: u64,
}

impl Snapshot {
    /// Results below the end, oldest first, with their numbers.
    fn seen(&self) -> Vec<(u64, Entry)> {
        let kept = self.results.lock();
        let first = kept.first();
        (first..).zip(kept.entries.iter().cloned()).filter(|(n, _)| *n < self.end).collect()
    }
}

impl Transcript for Snapshot {
    fn newest(&self) -> Value {
        let is_value = |value: &Value| !value.is_null() && !matches!(value, Value::Error(_));
        let kept = self.results.lock();
        let first = kept.first();
        let newest = (first..).zip(&kept.entries).filter(|(n, entry)| *n < self.end && is_value(&entry.value)).last();
        newest.map_or(Value::Null, |(_, entry)| entry.value.clone())
    }

    fn nth(&self, n: i64) -> Option<Value> {
        let n = match u64::try_from(n) {
            Ok(n) => n,
            Err(_) => self.end.checked_sub(n.unsigned_abs())?,
        };
        (n < self.end).then(|| self.results.entry(n)).flatten().map(|entry| entry.value)
    }

    fn table(&self) -> Result<Table, ErrorValue> {
        let rows = self.seen().into_iter().map(|(n, entry)| {
            Record::new([
                ("n", Value::Int(i64::try_from(n).unwrap_or(i64::MAX))),
                ("type", Value::str(entry.value.type_name())),
                ("ok", Value::Bool(entry.ok)),
                ("src", Value::Str(entry.src)),
            ])
        });
        Table::with_columns(["n", "type", "ok", "src"], rows.collect::<Result<Vec<_>, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(n: i64) -> Entry {
        Entry::new(Value::Int(n), true, "src", 1)
    }

    fn is_int(value: Option<Value>, n: i64) -> bool {
        matches!(value, Some(Value::Int(got)) if got == n)
    }

    #[test]
    fn numbers_count_on_and_a_snapshot_does_not_move() {
        let results = Results::starting_at(5);
        assert_eq!(results.push(int(50)), 5);
        let snapshot = results.snapshot();
        assert_eq!(results.push(int(60)), 6);
        assert!(is_int(snapshot.nth(5), 50) && is_int(snapshot.nth(-1), 50));
        assert!(snapshot.nth(6).is_none() && snapshot.nth(4).is_none() && snapshot.nth(0).is_none());
        assert!(is_int(Some(snapshot.newest()), 50));
        assert_eq!(snapshot.table().expect("a table").len(), 1);
    }

    #[test]
    fn the_newest_value_is_neither_null_nor_an_error() {
        let results = Results::starting_at(1);
        assert!(results.snapshot().newest().is_null());
        results.push(int(7));
        results.push(Entry::new(Value::Null, true, "", 1));
        results.push(Entry::new(Value::Error(ErrorValue::type_error("x")), false, "", 1));
        assert!(is_int(Some(results.snapshot().newest()), 7));
    }

    #[test]
    fn old_and_large_results_are_dropped() {
        let results = Results::starting_at(1);
        (0..2000).for_each(|n| {
            results.push(int(n));
        });
        assert!(results.entry(1).is_none() && results.entry(977).is_some() && results.entry(2000).is_some());
        results.push(Entry::new(Value::Int(1), true, "", MAX_BYTES + 1));
        assert!(results.entry(2000).is_none());
        assert!(results.entry(2001).is_some(), "the newest is held whatever its size");
    }
}
