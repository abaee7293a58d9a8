//! How much memory a value takes.
//!
//! An estimate for budgets: storage that two values share counts for each of them, and what a live handle holds does not
//! count, because nobody can tell who else holds it.

use crate::bytes::Stored;
use crate::outcome::Stage;
use crate::{Bytes, ErrorValue, List, Outcome, Record, Str, Value};

/// Counts of an allocation that is shared, and its bookkeeping by the allocator.
const SHARED: usize = 32;
/// A compiled regular expression; few are larger.
const REGEX: usize = 8 * 1024;
/// A handle of something live.
const HANDLE: usize = 256;

/// What [`weigh`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Bytes of memory, about.
    pub bytes: usize,
    /// A closure, alias, task, stream, channel or secret is in it: a written form gives only what it was.
    pub live: bool,
}

impl Weight {
    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn text(&mut self, text: &str) {
        self.add(SHARED + text.len());
    }

    fn maybe(&mut self, text: Option<&Str>) {
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn items(&mut self, items: &[Value]) {
        self.add(SHARED + size_of_val(items));
        items.iter().for_each(|item| self.value(item));
    }

    fn handle(&mut self) {
        self.live = true;
        self.add(HANDLE);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Size(_) | Value::Duration(_) => {}
            Value::DateTime(_) | Value::Time(_) | Value::Range(_) => {}
            Value::Str(text) => self.text(text),
            Value::Path(path) => self.add(SHARED + path.as_bytes().len()),
            Value::Glob(glob) => self.add(SHARED + glob.pattern().len() + glob.cwd().as_bytes().len()),
            Value::Regex(regex) => self.add(REGEX + regex.src().len()),
            Value::Bytes(bytes) => self.stream(bytes),
            Value::List(list) => self.list(list),
            Value::Record(record) => self.record(record),
            Value::Table(table) => {
                self.add(SHARED + size_of_val(table.rows()));
                table.rows().iter().for_each(|row| self.record(row));
            }
            Value::Outcome(outcome) => self.outcome(outcome),
            Value::Error(error) => self.error(error),
            Value::Closure(_)
            | Value::Command(_)
            | Value::Task(_)
            | Value::Stream(_)
            | Value::Channel(_)
            | Value::Secret(_) => self.handle(),
        }
    }

    fn list(&mut self, list: &List) {
        self.items(list.items());
    }

    /// Keys are shared by the records that were made alike, so they do not count.
    fn record(&mut self, record: &Record) {
        self.items(record.values());
    }

    fn stream(&mut self, bytes: &Bytes) {
        match bytes {
            Bytes::Held(held) => self.add(SHARED + held.len()),
            Bytes::Cut(cut) => self.add(2 * SHARED + cut.head.len() + cut.tail.len()),
            Bytes::Stored(stored) => {
                let Stored { hash, preview, tail, .. } = &**stored;
                self.add(3 * SHARED + hash.len() + preview.len() + tail.len());
            }
        }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        let body = outcome.body();
        self.add(SHARED + size_of_val(body));
        self.text(&body.cmd);
        self.maybe(body.signal.as_ref());
        self.maybe(body.limit.as_ref());
        self.stream(&body.stdout);
        self.stream(&body.stderr);
        for Stage { cmd, signal, .. } in &body.stages {
            self.add(size_of::<Stage>());
            self.text(cmd);
            self.maybe(signal.as_ref());
        }
        if let Some(out) = outcome.made_out() {
            self.value(out);
        }
    }

    /// The outputs an error carries are those of its outcome, if it has one.
    fn error(&mut self, error: &ErrorValue) {
        self.add(SHARED + size_of_val(&**error));
        self.text(&error.code);
        self.text(&error.msg);
        self.maybe(error.hint.as_ref());
        match &error.outcome {
            Some(outcome) => self.outcome(outcome),
            None => [&error.stdout, &error.stderr].into_iter().flatten().for_each(|bytes| self.stream(bytes)),
        }
    }
}

/// Weighs a value and all it holds.
pub fn weigh(value: &Value) -> Weight {
    let mut weight = Weight { bytes: size_of::<Value>(), live: false };
    weight.value(value);
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use crate::outcome::{Out, OutcomeBody};

    fn bytes(value: &Value) -> usize {
        weigh(value).bytes
    }

    #[test]
    fn texts_and_containers_weigh_what_they_hold() {
        assert_eq!(bytes(&Value::Int(7)), size_of::<Value>());
        assert!((10_000..10_200).contains(&bytes(&Value::str("x".repeat(10_000)))));
        let ints = Value::list((0..1000).map(Value::Int).collect()).expect("flat");
        assert!((1000..1010).contains(&(bytes(&ints) / size_of::<Value>())));
        let row = Record::leaves([("k", Str::from("x".repeat(1000)).into())]);
        let table = Value::Table(Table::new(vec![row; 100]).expect("flat"));
        assert!((100_000..120_000).contains(&bytes(&table)), "{}", bytes(&table));
    }

    #[test]
    fn an_outcome_weighs_its_streams_and_its_decoded_output() {
        let outcome = Outcome::new(OutcomeBody {
            out: Out::Stdout,
            ..OutcomeBody::builtin("x", Value::Null, vec![b'a'; 50_000].into(), 0)
        });
        let value = Value::Outcome(outcome.clone());
        assert!((50_000..51_000).contains(&bytes(&value)));
        outcome.peek_out();
        assert!((100_000..101_000).contains(&bytes(&value)), "the text beside the bytes");
        let error = outcome.failure();
        assert!(bytes(&Value::Error(error)) < 102_000, "its outputs are those of its outcome");
    }

    #[test]
    fn a_handle_anywhere_is_told() {
        let secret = Value::Secret("key".into());
        assert!(weigh(&Value::list(vec![Value::record([("a", secret)]).expect("flat")]).expect("flat")).live);
        assert!(!weigh(&Value::list(vec![Value::str("a")]).expect("flat")).live);
    }
}
