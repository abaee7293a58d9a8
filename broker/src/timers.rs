//! What is due when: one heap, one armed sleep in the loop, nothing while nothing waits.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

/// Number of a timer; never used twice.
pub(crate) type TimerId = u64;

/// Timers of kind `T`, ordered by their due time on the monotonic clock.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Duration, TimerId)>>,
    armed: HashMap<TimerId, T>,
    next: TimerId,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), armed: HashMap::new(), next: 1 }
    }
}

impl<T> Timers<T> {
    /// Arms a timer for `at`.
    pub(crate) fn arm(&mut self, at: Duration, what: T) -> TimerId {
        let id = self.next;
        self.next += 1;
        self.armed.insert(id, what);
        self.heap.push(Reverse((at, id)));
        id
    }

    /// Forgets a timer; one that went off already is no error.
    pub(crate) fn disarm(&mut self, id: TimerId) {
        self.armed.remove(&id);
        // Disarmed entries leave the heap when they surface; rebuild when they are the greater part.
        if self.heap.len() > 64 && self.heap.len() > self.armed.len() * 2 {
            let armed = &self.armed;
            self.heap.retain(|Reverse((_, id))| armed.contains_key(id));
        }
    }

    /// When the next one is due.
    pub(crate) fn next_due(&mut self) -> Option<Duration> {
        while let Some(Reverse((at, id))) = self.heap.peek() {
            if self.armed.contains_key(id) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes one that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<T> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse((_, id)) = self.heap.pop()?;
        self.armed.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_in_order_of_time_then_age_and_disarmed_ones_never() {
        let mut timers = Timers::default();
        let late = timers.arm(Duration::from_millis(20), "late");
        timers.arm(Duration::from_millis(10), "first");
        timers.arm(Duration::from_millis(10), "second");
        assert_eq!(timers.next_due(), Some(Duration::from_millis(10)));
        assert_eq!(timers.pop_due(Duration::from_millis(9)), None);
        assert_eq!(timers.pop_due(Duration::from_millis(10)), Some("first"));
        assert_eq!(timers.pop_due(Duration::from_millis(10)), Some("second"));
        timers.disarm(late);
        assert_eq!(timers.next_due(), None);
        assert_eq!(timers.pop_due(Duration::from_secs(9)), None);
    }
}
