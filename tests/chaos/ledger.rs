//! What a client asked for and what it was told: the truth that file and journal are compared with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use shoal_harness::{Client, Place};

/// How one request ended for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// A result: it happened, exactly once. Its `out` number, unless the answer was rebuilt from the journal.
    Done(Option<u64>),
    /// Its worker or its command was killed while it ran: it happened once or not at all.
    Lost,
}

/// The requests of one client, in its session, on a file of its own.
pub(crate) struct Ledger {
    pub(crate) session: String,
    file: PathBuf,
    told: Mutex<BTreeMap<usize, Told>>,
    /// Answers when [`Ledger::was_answered_since_asked`] was asked first; 0 before.
    asked_at: AtomicUsize,
}

impl Ledger {
    pub(crate) fn new(place: &Place, number: usize) -> Ledger {
        let file = place.work().join(format!("ledger-{number}"));
        Ledger { session: format!("teller-{number}"), file, told: Mutex::default(), asked_at: AtomicUsize::new(0) }
    }

    /// The idempotency key of a request.
    pub(crate) fn key(&self, request: usize) -> String {
        format!("{}-{request}", self.session)
    }

    /// The source of a request: one line more in the file.
    pub(crate) fn source(&self, request: usize) -> String {
        format!("sh {{ echo {request} >> {} }}", self.file.display())
    }

    pub(crate) fn write(&self, request: usize, told: Told) {
        let before = self.entries().insert(request, told);
        assert_eq!(before, None, "{} was told twice of {request}", self.session);
    }

    /// Requests whose end the client was told.
    pub(crate) fn told(&self) -> usize {
        self.entries().len()
    }

    /// Whether an answer came since this was asked first.
    pub(crate) fn was_answered_since_asked(&self) -> bool {
        let now = self.told();
        match self.asked_at.compare_exchange(0, now + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_first) => false,
            Err(asked_at) => now >= asked_at,
        }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, BTreeMap<usize, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is done is in the file once, what is lost at most once, and nothing else is.
    pub(crate) fn check_against_the_file(&self) {
        // None is made by a client whose every request was lost before it ran; one that is done and not there is told below.
        let text = match std::fs::read_to_string(&self.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.expect("the file is read"),
        };
        let mut lines: BTreeMap<usize, usize> = BTreeMap::new();
        for line in text.lines() {
            *lines.entry(line.parse().expect("a number")).or_default() += 1;
        }
        for (request, told) in self.entries().iter() {
            let times = lines.remove(request).unwrap_or(0);
            let fits = match told {
                Told::Done(_) => times == 1,
                Told::Lost => times <= 1,
            };
            assert!(fits, "{}: {request} is {told:?} and was done {times} times", self.session);
        }
        assert!(lines.is_empty(), "{}: done without being asked for: {lines:?}", self.session);
    }

    /// What is done has one closed row; no two results share an `out` number, and no row is left open.
    pub(crate) fn check_against_the_journal(&self, human: &mut Client) {
        let query = json!({"session": self.session, "kinds": ["exec"], "limit": 10_000});
        let rows = human.ok("journal.query", query);
        let rows: Vec<&Value> = rows.as_array().expect("rows").iter().collect();
        let mut numbers = Vec::new();
        for (request, told) in self.entries().iter() {
            let key = self.key(*request);
            let found: Vec<_> = rows.iter().filter(|row| row["key"] == json!(key)).collect();
            assert!(found.len() <= 1, "{key}: {found:?}");
            if let Told::Done(number) = told {
                numbers.extend(*number);
                let row = found.first().unwrap_or_else(|| panic!("{key} was acknowledged and has no row"));
                assert_eq!((&row["ok"], &row["ended"]), (&json!(true), &Value::Null), "{row}");
            }
        }
        let open: Vec<_> = rows.iter().filter(|row| row["ok"].is_null()).collect();
        assert!(open.is_empty(), "rows left open: {open:?}");
        let asked = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), asked, "{}: an `out` number was used twice", self.session);
    }
}
