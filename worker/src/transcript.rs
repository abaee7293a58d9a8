//! The numbered results of a session: `out:N`, newest kept, bounded.
//!
//! Small results are held by count. Large ones are held up to a budget; beyond it the oldest that the content store has are
//! left to it and read back when they are asked for. Those that it does not have (output of a command that raised, values
//! with live handles in them) stay up to a far larger budget, and are gone beyond that.

mod shed;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_eval::request::Transcript;
use shoal_value::weight::weigh;
use shoal_value::{ErrorValue, Record, Str, Table, Value};

pub(crate) use shed::{Blobs, Shed};

/// Results known by number; of older ones the journal has the stored form.
const MAX_ENTRIES: usize = 1024;
/// A result up to this is never left to the store: all of them together take no more than 4 MiB.
const SMALL: usize = 4 * 1024;
/// Bytes of results in memory; the newest is held whatever its size.
const HELD: usize = 16 * 1024 * 1024;
/// The same, with those that the content store does not have.
const MOST: usize = 256 * 1024 * 1024;
/// Characters of a source shown in `out`.
const SRC_CHARS: usize = 200;

/// One result.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Nothing when it was left to the store, or is gone.
    value: Option<Value>,
    type_name: &'static str,
    ok: bool,
    /// It is an item of a stream, which no request ended with.
    item: bool,
    src: Str,
    /// Bytes it takes, about.
    weight: usize,
    /// What has to stay of it, if it can be read back.
    shed: Option<Shed>,
    /// The store has it.
    stored: bool,
}

impl Entry {
    /// A result of a source: the value, or the error it ended with; `ok` when it ended with a value, and an outcome among
    /// them is ok. `wire` is its wire form if that will be stored, with the streams of an outcome beside it.
    pub(crate) fn new(value: Value, ok: bool, src: &str, wire: Option<&str>) -> Self {
        let src = src.chars().take(SRC_CHARS).collect::<String>().into();
        let weight = weigh(&value);
        let is_large = weight.bytes > SMALL && !weight.live;
        let shed = wire.filter(|_| is_large).and_then(|wire| Shed::of(&value, wire));
        let type_name = value.type_name();
        Self { value: Some(value), type_name, ok, item: false, src, weight: weight.bytes, shed, stored: false }
    }

    /// An item that was fetched from a stream.
    pub(crate) fn item(value: Value) -> Self {
        Self { item: true, ..Self::new(value, true, "", None) }
    }

    /// Bytes it takes, about.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    fn is_large(&self) -> bool {
        self.value.is_some() && self.weight > SMALL
    }

    /// What `it` may be.
    fn is_value(&self) -> bool {
        !self.item && !matches!(self.type_name, "null" | "error")
    }

    /// Where it is.
    fn found(&self) -> Option<Found> {
        match (&self.value, &self.shed) {
            (Some(value), _) => Some(Found::Held(value.clone())),
            (None, Some(shed)) => Some(Found::Stored(shed.clone())),
            (None, None) => None,
        }
    }
}

/// Where a result is.
enum Found {
    Held(Value),
    Stored(Shed),
}

/// Values that are no longer held: to be dropped without any lock.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Loose(Vec<Value>);

impl Loose {
    /// Whether dropping them is worth a thread.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug)]
struct Kept {
    entries: VecDeque<Entry>,
    /// Bytes of the values that are held.
    held: usize,
    /// Number of the next result.
    next: u64,
    /// Number of the first result of this worker.
    own: u64,
}

/// All results of the session.
pub(crate) struct Results {
    kept: Mutex<Kept>,
    store: Arc<dyn Blobs>,
    /// Something large was read back since this was last asked for.
    read_back: AtomicBool,
    /// A worker before this one died, and the session's names with it.
    names_lost: bool,
}

impl Results {
    /// No results yet; the next one gets this number. What is not held is read back from the store. `names_lost` says
    /// whether a worker before this one died with the session's names.
    pub(crate) fn starting_at(next: u64, names_lost: bool, store: Arc<dyn Blobs>) -> Arc<Self> {
        let next = next.max(1);
        let kept = Mutex::new(Kept { entries: VecDeque::new(), held: 0, next, own: next });
        Arc::new(Self { kept, store, read_back: AtomicBool::new(false), names_lost })
    }

    /// The number the next result gets.
    pub(crate) fn next(&self) -> u64 {
        self.lock().next
    }

    /// Whether a result is one of a worker before this one.
    pub(crate) fn is_of_another(&self, n: u64) -> bool {
        n < self.lock().own
    }

    /// Adds a result; its number.
    pub(crate) fn push(&self, entry: Entry) -> u64 {
        let mut kept = self.lock();
        let n = kept.next;
        kept.next += 1;
        kept.held = kept.held.saturating_add(entry.weight);
        kept.entries.push_back(entry);
        let loose = kept.trim();
        drop(kept);
        drop(loose);
        n
    }

    /// The store has a result, with all that was attached to it.
    pub(crate) fn stored(&self, n: u64) -> Loose {
        let mut kept = self.lock();
        if let Some(entry) = kept.place(n).and_then(|at| kept.entries.get_mut(at)) {
            entry.stored = true;
        }
        kept.trim()
    }

    /// The result of a number; nothing if it is not known any more. Fails if it is stored and cannot be read.
    pub(crate) fn value(&self, n: u64) -> Result<Option<Value>, ErrorValue> {
        let found = {
            let kept = self.lock();
            kept.place(n).and_then(|at| kept.entries.get(at)).and_then(Entry::found)
        };
        self.whole(found)
    }

    /// The results up to now.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Arc<dyn Transcript> {
        Arc::new(Snapshot { results: Arc::clone(self), end: self.next() })
    }

    /// Whether something was read back since the last call: it was large, and is dropped by now.
    pub(crate) fn take_read_back(&self) -> bool {
        self.read_back.swap(false, Ordering::Relaxed)
    }

    fn whole(&self, found: Option<Found>) -> Result<Option<Value>, ErrorValue> {
        match found {
            Some(Found::Held(value)) => Ok(Some(value)),
            Some(Found::Stored(shed)) => {
                self.read_back.store(true, Ordering::Relaxed);
                shed.restore(&*self.store).map(Some)
            }
            None => Ok(None),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Number of the oldest result known.
    fn first(&self) -> u64 {
        self.next - self.entries.len() as u64
    }

    fn place(&self, n: u64) -> Option<usize> {
        usize::try_from(n.checked_sub(self.first())?).ok()
    }

    /// Lets go of what is over the budgets, oldest first; never of the newest.
    fn trim(&mut self) -> Loose {
        let mut loose = Loose::default();
        while self.entries.len() > MAX_ENTRIES {
            let oldest = self.entries.pop_front();
            loose.0.extend(oldest.and_then(|mut entry| self.held_no_more(&mut entry)));
        }
        self.let_go(HELD, |entry| entry.stored && entry.shed.is_some(), &mut loose);
        self.let_go(MOST, |_| true, &mut loose);
        loose
    }

    fn let_go(&mut self, budget: usize, may: impl Fn(&Entry) -> bool, loose: &mut Loose) {
        let mut entries = std::mem::take(&mut self.entries);
        let older = entries.len().saturating_sub(1);
        for entry in entries.iter_mut().take(older).filter(|entry| entry.is_large() && may(entry)) {
            if self.held <= budget {
                break;
            }
            loose.0.extend(self.held_no_more(entry));
        }
        self.entries = entries;
    }

    fn held_no_more(&mut self, entry: &mut Entry) -> Option<Value> {
        let value = entry.value.take()?;
        self.held = self.held.saturating_sub(entry.weight);
        Some(value)
    }
}

/// The results a request sees: those there were when it began.
struct Snapshot {
    results: Arc<Results>,
    end: u64,
}

impl Transcript for Snapshot {
    fn newest(&self) -> Result<Value, ErrorValue> {
        let found = {
            let kept = self.results.lock();
            let first = kept.first();
            let seen = (first..).zip(&kept.entries).filter(|(n, entry)| *n < self.end && entry.is_value());
            seen.last().and_then(|(_, entry)| entry.found())
        };
        Ok(self.results.whole(found)?.unwrap_or(Value::Null))
    }

    fn nth(&self, n: i64) -> Result<Option<Value>, ErrorValue> {
        let n = match u64::try_from(n) {
            Ok(n) => Some(n),
            Err(_) => self.end.checked_sub(n.unsigned_abs()),
        };
        n.filter(|n| *n < self.end).map_or(Ok(None), |n| self.results.value(n))
    }

    fn table(&self) -> Result<Table, ErrorValue> {
        let kept = self.results.lock();
        let first = kept.first();
        let rows = (first..).zip(&kept.entries).filter(|(n, _)| *n < self.end).map(|(n, entry)| {
            Record::new([
                ("n", Value::Int(i64::try_from(n).unwrap_or(i64::MAX))),
                ("type", Value::str(entry.type_name)),
                ("ok", Value::Bool(entry.ok)),
                ("src", Value::Str(entry.src.clone())),
            ])
        });
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        drop(kept);
        Table::with_columns(["n", "type", "ok", "src"], rows)
    }

    fn lost_its_names(&self) -> bool {
        self.results.names_lost
    }
}

#[cfg(test)]
mod tests;
