//! The retained tail of one channel, and the pages read from it.

use std::collections::VecDeque;
use std::rc::Rc;

/// Events a ring keeps.
const MAX_EVENTS: usize = 1024;
/// Payload bytes a ring keeps.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Payload bytes of one page; a page must fit into a frame with room to spare.
pub(crate) const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Numbers are reserved in the database in blocks of this many.
pub(crate) const RESERVE: u64 = 1024;
/// The next block is reserved when fewer than this are left, so that only the first event of a channel ever waits.
const AHEAD: u64 = RESERVE / 4;

/// One event. The payload is JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Counts from 0 per channel.
    pub(crate) seq: u64,
    /// Nanoseconds since the epoch.
    pub(crate) ts: i64,
    /// JSON text.
    pub(crate) payload: Rc<str>,
}

/// The newest events of a channel.
///
/// A number is shown only once the database holds a mark above it, so that no successor of this broker uses it again.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    next_seq: u64,
    /// The highest mark that was asked for.
    reserved: u64,
    /// The highest mark that is in the database.
    marked: u64,
}

/// Events of a read and where they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Ascending.
    pub(crate) events: Vec<Event>,
    /// More match than are here.
    pub(crate) truncated: bool,
    /// The lowest number a read can return.
    pub(crate) oldest: Option<u64>,
    /// Events between `since` and `oldest` are gone.
    pub(crate) history_lost: bool,
}

impl Ring {
    /// A ring that continues at a reserved number: what came before is gone. The block from there on is reserved.
    pub(crate) fn resume(mark: u64) -> Self {
        let reserved = mark.saturating_add(RESERVE);
        Self { next_seq: mark, reserved, marked: reserved, ..Self::default() }
    }

    /// The number the next event gets that is not shown yet.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq.min(self.marked)
    }

    /// It has or had events.
    pub(crate) fn is_used(&self) -> bool {
        self.next_seq > 0
    }

    /// The mark is in the database: the events that may be shown now.
    pub(crate) fn mark(&mut self, mark: u64) -> Vec<Event> {
        let shown = self.marked..self.marked.max(mark);
        self.marked = shown.end;
        self.events.iter().filter(|event| shown.contains(&event.seq)).cloned().collect()
    }

    /// A number may be shown.
    pub(crate) fn shows(&self, seq: u64) -> bool {
        seq < self.marked
    }

    /// Adds an event; `Some(mark)` when numbers up to `mark` have to be reserved.
    pub(crate) fn push(&mut self, ts: i64, payload: Rc<str>) -> (Event, Option<u64>) {
        let event = Event { seq: self.next_seq, ts, payload };
        self.next_seq += 1;
        let mark = (event.seq + AHEAD >= self.reserved).then(|| {
            self.reserved = self.reserved.max(event.seq) + RESERVE;
            self.reserved
        });
        self.bytes += event.payload.len();
        self.events.push_back(event.clone());
        while self.events.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            if let Some(old) = self.events.pop_front() {
                self.bytes -= old.payload.len();
            }
        }
        (event, mark)
    }

    /// A page: forward from `since` (exclusive), or the tail.
    pub(crate) fn page(&self, since: Option<u64>, limit: usize) -> Page {
        let shown = self.events.partition_point(|event| self.shows(event.seq));
        let oldest = self.events.front().map(|event| event.seq).filter(|_| shown > 0);
        let matching = match since {
            Some(since) => self.events.partition_point(|event| event.seq <= since).min(shown),
            None => shown.saturating_sub(limit),
        };
        let candidates = self.events.range(matching..shown);
        let mut bytes = 0;
        let mut events = Vec::new();
        for event in candidates.clone().take(limit) {
            bytes += event.payload.len();
            if bytes > MAX_PAGE_BYTES && !events.is_empty() {
                break;
            }
            events.push(event.clone());
        }
        let truncated = match since {
            Some(_) => events.len() < candidates.len(),
            None => events.len() < shown,
        };
        let first = oldest.unwrap_or(self.next_seq());
        let history_lost = since.is_some_and(|since| since.saturating_add(1) < first);
        Page { events, truncated, oldest, history_lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: u64) -> Ring {
        let mut ring = Ring::default();
        for n in 0..count {
            push(&mut ring, &n.to_string());
        }
        ring
    }

    /// Pushes, with a database that takes every mark at once.
    fn push(ring: &mut Ring, payload: &str) -> u64 {
        let (event, mark) = ring.push(0, payload.into());
        if let Some(mark) = mark {
            ring.mark(mark);
        }
        event.seq
    }

    fn seqs(page: &Page) -> Vec<u64> {
        page.events.iter().map(|event| event.seq).collect()
    }

    #[test]
    fn forward_pages_and_tails() {
        let ring = filled(10);
        let page = ring.page(Some(2), 3);
        assert_eq!((seqs(&page), page.truncated), (vec![3, 4, 5], true));
        let tail = ring.page(None, 3);
        assert_eq!((seqs(&tail), tail.truncated), (vec![7, 8, 9], true));
        let rest = ring.page(Some(8), 5);
        assert_eq!((seqs(&rest), rest.truncated, rest.history_lost), (vec![9], false, false));
        assert_eq!(ring.page(Some(5), 0).events, []);
    }

    #[test]
    fn an_empty_ring_has_no_oldest() {
        assert_eq!(Ring::default().page(None, 10), Page::default());
    }

    #[test]
    fn the_oldest_leave_and_readers_are_told() {
        let ring = filled(1500);
        let page = ring.page(Some(0), 1024);
        assert_eq!(page.oldest, Some(476));
        assert!(page.history_lost);
        assert!(!ring.page(Some(475), 1024).history_lost);
    }

    #[test]
    fn bytes_bound_a_ring_too() {
        let mut ring = Ring::default();
        let big: Rc<str> = "x".repeat(1024 * 1024).into();
        for _ in 0..5 {
            push(&mut ring, &big);
        }
        assert_eq!(ring.page(None, 10).oldest, Some(3));
    }

    #[test]
    fn numbers_are_reserved_in_blocks_ahead_and_resume_above_them() {
        let mut ring = Ring::default();
        assert_eq!(ring.push(0, "1".into()).1, Some(1024));
        let marks: Vec<u64> = (1..1024).filter_map(|_| ring.push(0, "1".into()).1).collect();
        assert_eq!(marks, [2048]);
        let mut resumed = Ring::resume(2048);
        let (event, mark) = resumed.push(0, "1".into());
        assert_eq!((event.seq, mark), (2048, None));
        assert!(resumed.page(Some(3), 10).history_lost);
    }

    #[test]
    fn nothing_is_shown_above_the_mark_in_the_database() {
        let mut ring = Ring::default();
        ring.push(0, "0".into());
        ring.push(0, "1".into());
        assert_eq!((ring.page(None, 10), ring.next_seq()), (Page::default(), 0));
        let shown: Vec<u64> = ring.mark(1024).iter().map(|event| event.seq).collect();
        assert_eq!((shown, ring.next_seq()), (vec![0, 1], 2));
        assert_eq!(seqs(&ring.page(None, 10)), [0, 1]);
        assert_eq!(ring.mark(1024), []);
    }
}
