//! Where a broker is killed: points of the protocol with its supervisor and workers, at which they send it SIGKILL.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A named point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    /// It asked for a session; no row of it is written.
    SessionAsked,
    /// It asked for a claim: nothing is recorded yet.
    ClaimAsked,
    /// It has the claim: the row is being written.
    ClaimTold,
    /// It said to run: the row is there.
    RunAsked,
    /// It is being told the end: outputs and closing are being written.
    EndTold,
    /// It acknowledged the end: the answer is on its way.
    EndRecorded,
}

/// All of them.
pub(crate) const POINTS: [Point; 6] =
    [Point::SessionAsked, Point::ClaimAsked, Point::ClaimTold, Point::RunAsked, Point::EndTold, Point::EndRecorded];

#[derive(Debug, Default)]
struct State {
    armed: Option<(Point, usize)>,
    fired: bool,
    /// The supervisor has not noticed yet.
    news: bool,
}

/// A kill that waits for its point.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crash {
    state: Arc<Mutex<State>>,
    broker: Arc<AtomicI32>,
}

impl Crash {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in a fake")
    }

    /// The broker that is killed.
    pub(crate) fn watch(&self, pid: i32) {
        self.broker.store(pid, Ordering::SeqCst);
    }

    /// Kills the broker when it passes a point for the time after so many.
    pub(crate) fn arm(&self, point: Point, after: usize) {
        *self.state() = State { armed: Some((point, after)), ..State::default() };
    }

    /// Ends the wait; whether the broker was killed.
    pub(crate) fn disarm(&self) -> bool {
        let mut state = self.state();
        state.armed = None;
        std::mem::take(&mut state.fired)
    }

    /// A point is passed.
    pub(crate) fn pass(&self, at: Point) {
        let mut state = self.state();
        match &mut state.armed {
            Some((point, 0)) if *point == at => {
                state.armed = None;
                (state.fired, state.news) = (true, true);
                shoal_sys::process::kill(self.broker.load(Ordering::SeqCst), 9).expect("killed");
            }
            Some((point, left)) if *point == at => *left -= 1,
            Some(_) | None => {}
        }
    }

    /// Whether a broker that is gone was killed here; each kill counts once.
    pub(crate) fn take_news(&self) -> bool {
        std::mem::take(&mut self.state().news)
    }
}
