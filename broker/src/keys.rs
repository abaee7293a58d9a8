//! Idempotency keys of a session: which call each stands for, and the answer it got.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use shoal_wire::{RpcError, limits};

/// A key is kept this long after its run ended.
pub(crate) const KEPT: Duration = Duration::from_secs(24 * 3600);

/// What a key stands for: BLAKE3 of source, mode, position and deadline.
pub(crate) type Body = [u8; 32];

/// How far the run of a key is.
#[derive(Clone, Debug)]
pub(crate) enum Use {
    /// It runs under this number.
    Running(u64),
    /// It ended: the result's members, or the error.
    Done(Result<Rc<str>, RpcError>),
}

/// A known key.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// What it stands for.
    pub(crate) body: Body,
    /// Its journal row, when there is one.
    pub(crate) entry: Option<i64>,
    /// How far its run is.
    pub(crate) used: Use,
    ended: Option<Duration>,
}

/// The newest keys of a session.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    known: HashMap<String, Known>,
    order: VecDeque<String>,
}

/// The hash a key is bound to.
pub(crate) fn body(src: &str, mode: &str, position: &str, deadline_ms: Option<i64>) -> Body {
    let mut hasher = blake3::Hasher::new();
    for part in [src, mode, position] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(&deadline_ms.unwrap_or(-1).to_le_bytes());
    *hasher.finalize().as_bytes()
}

impl Keys {
    /// What a key stands for, if it is still kept.
    pub(crate) fn find(&mut self, key: &str, now: Duration) -> Option<&Known> {
        let old = |known: &Known| known.ended.is_some_and(|ended| now.saturating_sub(ended) > KEPT);
        if self.known.get(key).is_some_and(old) {
            self.forget(key);
        }
        self.known.get(key)
    }

    /// The run of a key starts.
    pub(crate) fn begin(&mut self, key: &str, body: Body, run: u64) {
        self.forget(key);
        self.known.insert(key.to_owned(), Known { body, entry: None, used: Use::Running(run), ended: None });
        self.order.push_back(key.to_owned());
        while self.order.len() > limits::KEPT_KEYS {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }

    /// Its row is written.
    pub(crate) fn record(&mut self, key: &str, entry: i64) {
        if let Some(known) = self.known.get_mut(key) {
            known.entry = Some(entry);
        }
    }

    /// It ended.
    pub(crate) fn end(&mut self, key: &str, answer: Result<Rc<str>, RpcError>, now: Duration) {
        if let Some(known) = self.known.get_mut(key) {
            known.used = Use::Done(answer);
            known.ended = Some(now);
        }
    }

    /// It was refused before evaluation: the key is unused.
    pub(crate) fn forget(&mut self, key: &str) {
        if self.known.remove(key).is_some() {
            self.order.retain(|other| other != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_bound_to_what_it_was_used_for() {
        assert_ne!(body("1+1", "run", "value", None), body("1+2", "run", "value", None));
        assert_ne!(body("1", "run", "value", None), body("1", "run", "stmt", None));
        assert_ne!(body("1", "run", "value", Some(5)), body("1", "run", "value", None));
        assert_ne!(body("ab", "c", "", None), body("a", "bc", "", None));
    }

    #[test]
    fn keys_last_a_day_and_the_newest_thousand_and_twenty_four() {
        let mut keys = Keys::default();
        keys.begin("a", [0; 32], 1);
        keys.end("a", Ok("{}".into()), Duration::from_secs(10));
        assert!(keys.find("a", Duration::from_secs(80_000)).is_some());
        assert!(keys.find("a", Duration::from_secs(90_000)).is_none());
        for n in 0..1100 {
            keys.begin(&n.to_string(), [0; 32], n);
        }
        assert!(keys.find("75", Duration::ZERO).is_none());
        assert!(keys.find("76", Duration::ZERO).is_some());
    }
}
