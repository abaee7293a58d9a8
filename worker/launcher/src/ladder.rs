//! The cancel ladder: INT, TERM, KILL of the groups, KILL of whatever is left, then a receipt.
//!
//! A ladder starts at the rung it was asked for and climbs one rung each time the members of its target are still there
//! when the rung's time is over. Members are looked up anew at every step, because they fork. It is done as soon as
//! nobody is left, or [`SWEEP_TIME`] after the last rung. It sends no signal itself: [`Ladder::step`] says what is due.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use shoal_proto::List;
use shoal_proto::launcher_worker::{Receipt, Rung, Target};

/// Time per rung unless the asker says otherwise.
pub(crate) const RUNG_TIME: Duration = Duration::from_secs(2);
/// After KILL of the groups the stragglers are swept at once; the pause lets the kernel take the groups down first.
const KILL_TIME: Duration = Duration::from_millis(20);
/// How long the last rung is repeated before the receipt names survivors: processes in uninterruptible sleep.
const SWEEP_TIME: Duration = Duration::from_secs(1);
/// How often a running ladder looks whether its members are gone: grandchildren end without telling us.
pub(crate) const TICK: Duration = Duration::from_millis(15);
/// Pids named in a receipt.
const MAX_PIDS: usize = 4096;

/// Who gets the receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// The worker of this epoch.
    Worker(u32),
    /// The broker of this end: the next one counts its calls from the beginning.
    Broker(u32),
    /// The launcher itself.
    Nobody,
}

/// What a ladder works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prey {
    /// A command or the foreground commands of a run.
    Target {
        /// The target.
        target: Target,
        /// Epoch of the worker whose commands are meant.
        epoch: u32,
    },
    /// A terminal's program.
    Terminal(u64),
    /// Every command of a worker that is gone, the background ones included.
    Epoch(u32),
    /// Every program.
    Everything,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing yet.
    Wait,
    /// Signal the members.
    Signal(Rung),
    /// Finished: take the receipt.
    Done,
}

/// One running ladder.
#[derive(Debug)]
pub(crate) struct Ladder {
    /// Number of the request.
    pub(crate) call: u64,
    /// Who asked.
    pub(crate) asker: Asker,
    /// Whom it ends.
    pub(crate) prey: Prey,
    next: Option<Rung>,
    used: Option<Rung>,
    rung_time: Duration,
    due: Instant,
    seen: BTreeSet<i32>,
}

impl Ladder {
    /// A ladder whose first rung is due at once.
    pub(crate) fn new(call: u64, asker: Asker, prey: Prey, first: Rung, rung_time: Duration, now: Instant) -> Self {
        Self { call, asker, prey, next: Some(first), used: None, rung_time, due: now, seen: BTreeSet::new() }
    }

    /// Looks at the members that are there now.
    pub(crate) fn step(&mut self, alive: &BTreeSet<i32>, now: Instant) -> Step {
        self.seen.extend(alive);
        if alive.is_empty() {
            return Step::Done;
        }
        if now < self.due {
            return if self.used == Some(Rung::Sweep) { Step::Signal(Rung::Sweep) } else { Step::Wait };
        }
        let Some(rung) = self.next else { return Step::Done };
        self.used = Some(rung);
        let (next, time) = match rung {
            Rung::Int => (Some(Rung::Term), self.rung_time),
            Rung::Term => (Some(Rung::Kill), self.rung_time),
            Rung::Kill => (Some(Rung::Sweep), KILL_TIME),
            Rung::Sweep => (None, SWEEP_TIME),
        };
        self.next = next;
        self.due = now + time;
        Step::Signal(rung)
    }

    /// When to look again.
    pub(crate) fn wake(&self, now: Instant) -> Instant {
        self.due.min(now + TICK).max(now)
    }

    /// What ended and what did not. A ladder that found nobody used its first rung: it is what stops the evaluator.
    pub(crate) fn receipt(&self, alive: &BTreeSet<i32>) -> Receipt {
        let (survived, ended): (Vec<i32>, Vec<i32>) = self.seen.iter().copied().partition(|pid| alive.contains(pid));
        Receipt { call: self.call, ended: named(ended), survived: named(survived), escalated: self.used.or(self.next) }
    }
}

fn named(mut pids: Vec<i32>) -> List<i32, MAX_PIDS> {
    pids.truncate(MAX_PIDS);
    List::new(pids).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(first: Rung, now: Instant) -> Ladder {
        let prey = Prey::Target { target: Target::Run(1), epoch: 1 };
        Ladder::new(7, Asker::Broker(0), prey, first, RUNG_TIME, now)
    }

    #[test]
    fn climbs_every_rung_and_names_survivors() {
        #[expect(clippy::disallowed_methods, reason = "an origin for the handed-in clock")]
        let start = Instant::now();
        let (alive, mut l) = (BTreeSet::from([10, 11]), ladder(Rung::Int, start));
        assert_eq!(l.step(&alive, start), Step::Signal(Rung::Int));
        assert_eq!(l.step(&alive, start + RUNG_TIME / 2), Step::Wait);
        assert_eq!(l.step(&alive, start + RUNG_TIME), Step::Signal(Rung::Term));
        assert_eq!(l.step(&alive, start + 2 * RUNG_TIME), Step::Signal(Rung::Kill));
        let swept = start + 2 * RUNG_TIME + KILL_TIME;
        assert_eq!(l.step(&alive, swept), Step::Signal(Rung::Sweep));
        assert_eq!(l.step(&alive, swept + TICK), Step::Signal(Rung::Sweep), "the sweep is repeated");
        assert_eq!(l.step(&alive, swept + SWEEP_TIME), Step::Done);
        let receipt = l.receipt(&BTreeSet::from([11]));
        assert_eq!((receipt.ended.as_slice(), receipt.survived.as_slice()), (&[10][..], &[11][..]));
        assert_eq!(receipt.escalated, Some(Rung::Sweep));
    }

    #[test]
    fn nothing_to_end_is_done_at_once() {
        #[expect(clippy::disallowed_methods, reason = "an origin for the handed-in clock")]
        let start = Instant::now();
        let mut l = ladder(Rung::Term, start);
        assert_eq!(l.step(&BTreeSet::new(), start), Step::Done);
        assert_eq!(l.receipt(&BTreeSet::new()).escalated, Some(Rung::Term), "the rung that stopped the evaluator");
    }

    #[test]
    fn the_last_needed_rung_is_reported() {
        #[expect(clippy::disallowed_methods, reason = "an origin for the handed-in clock")]
        let start = Instant::now();
        let mut l = ladder(Rung::Int, start);
        assert_eq!(l.step(&BTreeSet::from([5]), start), Step::Signal(Rung::Int));
        assert_eq!(l.step(&BTreeSet::new(), start + TICK), Step::Done);
        let receipt = l.receipt(&BTreeSet::new());
        assert_eq!((receipt.ended.as_slice(), receipt.escalated), (&[5][..], Some(Rung::Int)));
    }
}
