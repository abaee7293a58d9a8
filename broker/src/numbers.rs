//! Numbers that are never used twice in one state directory: of tasks (which are those of runs) and of terminals.
//!
//! The database holds a mark above every number handed out; it is raised in blocks, well before the last number of the
//! block before is used.

use std::collections::HashMap;

use crate::bus::RESERVE as BLOCK;

/// The next block is reserved when fewer than this are left: more than runs can be under way at a time.
const AHEAD: u64 = BLOCK / 2;

/// Counter of tasks in the database.
pub(crate) const TASKS: &str = "task";
/// Counter of terminals in the database.
pub(crate) const PTYS: &str = "pty";

/// One kind of number.
#[derive(Debug)]
pub(crate) struct Counter {
    next: u64,
    reserved: u64,
}

/// All of them, and the last results of sessions that are not there now.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// Tasks and runs.
    pub(crate) tasks: Counter,
    /// Terminals.
    pub(crate) ptys: Counter,
    outs: HashMap<(String, String), u64>,
}

impl Numbers {
    /// Goes on above the marks an earlier broker left; `outs` are the last results by owner and session.
    pub(crate) fn above(tasks: i64, ptys: i64, outs: impl IntoIterator<Item = ((String, String), u64)>) -> Self {
        Self { tasks: Counter::above(tasks), ptys: Counter::above(ptys), outs: outs.into_iter().collect() }
    }

    /// The last `out:N` of a session that is made (again).
    pub(crate) fn last_out(&self, owner: &str, session: &str) -> u64 {
        self.outs.get(&(owner.to_owned(), session.to_owned())).copied().unwrap_or(0)
    }

    /// A session ends: its successor goes on above its last result.
    pub(crate) fn note_out(&mut self, owner: &str, session: &str, out: u64) {
        self.outs.insert((owner.to_owned(), session.to_owned()), out);
    }
}

impl Counter {
    /// Goes on above the mark an earlier broker left; the block from there on is reserved.
    pub(crate) fn above(mark: i64) -> Self {
        let mark = u64::try_from(mark).unwrap_or(0);
        Self { next: mark + 1, reserved: mark + BLOCK }
    }

    /// The number that comes next.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The next number, and the mark to write when another block is due.
    pub(crate) fn take(&mut self) -> (u64, Option<i64>) {
        let n = self.next;
        self.next += 1;
        let mark = (n + AHEAD > self.reserved).then(|| {
            self.reserved += BLOCK;
            i64::try_from(self.reserved).unwrap_or(i64::MAX)
        });
        (n, mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_successor_goes_on_above_every_number_handed_out() {
        let mut counter = Counter::above(0);
        let marks: Vec<(u64, i64)> = (0..1024)
            .filter_map(|_| {
                let (n, mark) = counter.take();
                Some((n, mark?))
            })
            .collect();
        // Every mark is asked for half a block before it is needed.
        assert_eq!(marks, [(513, 2048)]);
        assert_eq!(counter.take().0, 1025);
        assert_eq!(Counter::above(2048).take().0, 2049);
    }
}
