//! What waits to be typed into one terminal.
//!
//! Inputs of calls are written in order, each whole before the next. Answers to the program's own queries go between
//! them, before an input that has not begun: a program that asks waits for nothing else. Time is handed in.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use shoal_proto::broker_ptyd::Sent;

/// A call ends with what was written by then.
const PATIENCE: Duration = Duration::from_secs(4);
/// Inputs that wait, in bytes: four of the largest calls. What does not fit is answered as not written.
const MAX_QUEUED: usize = 4 * 1024 * 1024;
/// Answers a program did not read, in bytes; later ones are lost to it.
const MAX_ANSWERS: usize = 64 * 1024;

/// The queue of one terminal.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    inputs: VecDeque<Typed>,
    queued: usize,
    answers: Vec<u8>,
}

#[derive(Debug)]
struct Typed {
    /// `None` when the caller is gone.
    call: Option<u64>,
    bytes: Vec<u8>,
    written: usize,
    due: Option<Instant>,
}

impl Typed {
    fn sent(&self) -> Option<Sent> {
        let sent = u64::try_from(self.written).unwrap_or(u64::MAX);
        self.call.map(|call| Sent { call, sent, complete: self.written == self.bytes.len() })
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.written..).unwrap_or_default()
    }
}

impl Writes {
    /// Queues an input; an answer right away when there is nothing to write or no room.
    pub(crate) fn push(&mut self, call: u64, bytes: Vec<u8>, now: Instant) -> Option<Sent> {
        let queued = self.queued.saturating_add(bytes.len());
        if bytes.is_empty() || queued > MAX_QUEUED {
            return Some(Sent { call, sent: 0, complete: bytes.is_empty() });
        }
        self.queued = queued;
        self.inputs.push_back(Typed { call: Some(call), bytes, written: 0, due: now.checked_add(PATIENCE) });
        None
    }

    /// Queues answers to the program.
    pub(crate) fn answer(&mut self, answers: &[u8]) {
        if self.answers.len().saturating_add(answers.len()) <= MAX_ANSWERS {
            self.answers.extend_from_slice(answers);
        }
    }

    /// The bytes to write next; empty when there are none.
    pub(crate) fn next(&self) -> &[u8] {
        match self.inputs.front() {
            Some(input) if input.written > 0 || self.answers.is_empty() => input.rest(),
            _ => &self.answers,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.answers.is_empty()
    }

    /// `count` bytes of [`Writes::next`] were written; the call that is complete with them.
    pub(crate) fn wrote(&mut self, count: usize) -> Option<Sent> {
        let answers_first = self.inputs.front().is_none_or(|input| input.written == 0) && !self.answers.is_empty();
        if answers_first {
            self.answers.drain(..count.min(self.answers.len()));
            return None;
        }
        let input = self.inputs.front_mut()?;
        input.written = input.written.saturating_add(count);
        if input.rest().is_empty() { self.pop() } else { None }
    }

    /// Ends the calls whose time is over; what they did not write is dropped.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Sent> {
        let mut ended = Vec::new();
        while self.inputs.front().and_then(|input| input.due).is_some_and(|due| due <= now) {
            ended.extend(self.pop());
        }
        ended
    }

    /// The terminal is closed: every call ends with what was written.
    pub(crate) fn close(&mut self) -> Vec<Sent> {
        self.answers.clear();
        self.queued = 0;
        self.inputs.drain(..).filter_map(|input| input.sent()).collect()
    }

    /// The callers are gone; what they sent is still typed.
    pub(crate) fn forget_callers(&mut self) {
        for input in &mut self.inputs {
            input.call = None;
        }
    }

    /// When [`Writes::expire`] has something to do: inputs end in order, so the first decides.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.inputs.front().and_then(|input| input.due)
    }

    fn pop(&mut self) -> Option<Sent> {
        let input = self.inputs.pop_front()?;
        self.queued = self.queued.saturating_sub(input.bytes.len());
        input.sent()
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "an arbitrary first instant; the tests move it")]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_written_in_order_and_answered_when_done() {
        let (mut writes, now) = (Writes::default(), Instant::now());
        assert_eq!(writes.push(1, b"abc".to_vec(), now), None);
        assert_eq!(writes.push(2, b"de".to_vec(), now), None);
        assert_eq!(writes.next(), b"abc");
        assert_eq!(writes.wrote(2), None);
        assert_eq!(writes.next(), b"c");
        assert_eq!(writes.wrote(1), Some(Sent { call: 1, sent: 3, complete: true }));
        assert_eq!(writes.next(), b"de");
        assert_eq!(writes.wrote(2), Some(Sent { call: 2, sent: 2, complete: true }));
        assert!(writes.is_empty() && writes.next().is_empty());
    }

    #[test]
    fn answers_go_before_an_input_that_has_not_begun() {
        let (mut writes, now) = (Writes::default(), Instant::now());
        writes.push(1, b"abc".to_vec(), now);
        writes.wrote(1);
        writes.push(2, b"de".to_vec(), now);
        writes.answer(b"\x1b[0n");
        assert_eq!(writes.next(), b"bc", "what has begun is not torn");
        writes.wrote(2);
        assert_eq!(writes.next(), b"\x1b[0n");
        assert_eq!(writes.wrote(4), None);
        assert_eq!(writes.next(), b"de");
    }

    #[test]
    fn a_call_ends_after_its_time_with_what_was_written() {
        let (mut writes, now) = (Writes::default(), Instant::now());
        writes.push(1, b"abc".to_vec(), now);
        writes.push(2, b"de".to_vec(), now + Duration::from_secs(1));
        writes.wrote(1);
        assert_eq!(writes.due(), Some(now + PATIENCE));
        assert_eq!(writes.expire(now + PATIENCE / 2), []);
        assert_eq!(writes.expire(now + PATIENCE), [Sent { call: 1, sent: 1, complete: false }]);
        assert_eq!(writes.next(), b"de");
    }

    #[test]
    fn nothing_and_too_much_are_answered_at_once() {
        let (mut writes, now) = (Writes::default(), Instant::now());
        assert_eq!(writes.push(1, Vec::new(), now), Some(Sent { call: 1, sent: 0, complete: true }));
        assert_eq!(writes.push(2, vec![0; MAX_QUEUED], now), None);
        assert_eq!(writes.push(3, vec![0], now), Some(Sent { call: 3, sent: 0, complete: false }));
        writes.answer(&vec![0; MAX_ANSWERS]);
        writes.answer(b"x");
        assert_eq!(writes.answers.len(), MAX_ANSWERS);
    }

    #[test]
    fn a_closed_terminal_ends_all_calls_and_gone_callers_get_nothing() {
        let (mut writes, now) = (Writes::default(), Instant::now());
        writes.push(1, b"abc".to_vec(), now);
        writes.forget_callers();
        writes.push(2, b"de".to_vec(), now);
        assert_eq!(writes.close(), [Sent { call: 2, sent: 0, complete: false }]);
        assert!(writes.is_empty());
    }
}
