//! The life of the broker.
//!
//! The broker is wanted from the first moment to the last drain, so there is one wish and five states. *Down*: there is
//! no process; when the backoff is over one is started. *Starting*: it opens the journal and reconciles; if that takes
//! longer than its deadline it is killed. *Up*: it said it serves; once a second it is asked for a sign of life, and
//! after three unanswered questions it is told to abort, which leaves its backtrace in the log. *Stuck*: it was told to
//! end and did not yet; when the grace is over it is killed. *Stopped*: the kernel drains, and a broker that ends now
//! is not started again. An exit is believed only from the reaper, never from a closed socket.
//!
//! Deciders, strongest first: the reaper, the drain, the deadline, the silence.

use std::time::{Duration, Instant};

use crate::backoff::Backoff;

/// Opening a large journal after a crash takes seconds; a minute is a fault.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// Between two questions.
const PING: Duration = Duration::from_secs(1);
/// Unanswered questions that make a hang.
const MISSES: u32 = 3;
/// From abort to kill.
const ABORT_GRACE: Duration = Duration::from_secs(2);

/// What is true of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Down,
    Starting,
    Up,
    Stuck,
    Stopped,
}

/// What can happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The state's timer is due.
    Due,
    /// It said that it serves.
    Ready,
    /// It was reaped.
    Exited,
    /// It left too many questions unanswered.
    Silent,
    /// The kernel drains.
    Stop,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Nothing,
    Start,
    Serve,
    Ping,
    Abort,
    Kill,
    /// Wait, then start.
    BackOff,
}

type Move = (State, Act);

/// Rows are states, columns events, both in the order of their declaration.
const MOVES: [[Move; 5]; 5] = {
    use Act::*;
    use State::*;
    [
        /*            Due                Ready               Exited              Silent             Stop             */
        /* Down     */
        [(Starting, Start), (Down, Nothing), (Down, Nothing), (Down, Nothing), (Stopped, Nothing)],
        /* Starting */ [(Stuck, Kill), (Up, Serve), (Down, BackOff), (Starting, Nothing), (Stopped, Nothing)],
        /* Up       */ [(Up, Ping), (Up, Nothing), (Down, BackOff), (Stuck, Abort), (Stopped, Nothing)],
        /* Stuck    */ [(Stuck, Kill), (Stuck, Nothing), (Down, BackOff), (Stuck, Nothing), (Stopped, Nothing)],
        /* Stopped  */
        [(Stopped, Nothing), (Stopped, Nothing), (Stopped, Nothing), (Stopped, Nothing), (Stopped, Nothing)],
    ]
};

/// The broker's life: a state, its timer, the backoff and the count of unanswered questions.
#[derive(Debug)]
pub(crate) struct Life {
    state: State,
    due: Option<Instant>,
    backoff: Backoff,
    unanswered: u32,
    /// Number of the last question.
    pub(crate) asked: u64,
    /// Since when nobody serves; `None` while somebody does, and before the first start.
    away_since: Option<Instant>,
}

impl Life {
    /// Down, to be started now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { state: State::Down, due: Some(now), backoff: Backoff::BROKER, unanswered: 0, asked: 0, away_since: None }
    }

    #[cfg(test)]
    fn state(&self) -> State {
        self.state
    }

    /// When the state's timer is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Since when nobody serves.
    pub(crate) fn away_since(&self) -> Option<Instant> {
        self.away_since
    }

    /// Takes an event and says what is to be done.
    pub(crate) fn on(&mut self, event: Event, now: Instant) -> Act {
        let row = MOVES.get(self.state as usize);
        let Some(&(next, act)) = row.and_then(|row| row.get(event as usize)) else { return Act::Nothing };
        if event == Event::Exited && self.state != State::Stopped {
            self.away_since.get_or_insert(now);
        }
        self.state = next;
        match act {
            Act::Nothing => {
                if next == State::Stopped {
                    self.due = None;
                }
            }
            Act::Start => self.due = Some(now + START_DEADLINE),
            Act::Serve => {
                self.unanswered = 0;
                self.away_since = None;
                self.due = Some(now + PING);
            }
            Act::Ping => {
                if self.unanswered >= MISSES {
                    return self.on(Event::Silent, now);
                }
                self.unanswered += 1;
                self.asked += 1;
                self.due = Some(now + PING);
            }
            Act::Abort => self.due = Some(now + ABORT_GRACE),
            // Killed already: the reaper has the next word.
            Act::Kill => self.due = None,
            Act::BackOff => self.due = Some(now + self.backoff.failed(now)),
        }
        act
    }

    /// An answer to a question; only the last one counts.
    pub(crate) fn answered(&mut self, number: u64) {
        if number == self.asked {
            self.unanswered = 0;
        }
    }

    /// The timer's event, if it is due.
    pub(crate) fn tick(&mut self, now: Instant) -> Act {
        if self.due.is_some_and(|due| due <= now) { self.on(Event::Due, now) } else { Act::Nothing }
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;

    struct Rig {
        life: Life,
        now: Instant,
    }

    impl Rig {
        fn new() -> Self {
            let now = Instant::now();
            Self { life: Life::new(now), now }
        }

        fn up() -> Self {
            let mut rig = Self::new();
            assert_eq!(rig.tick(0), Act::Start);
            assert_eq!(rig.on(Event::Ready), Act::Serve);
            rig
        }

        fn tick(&mut self, after_ms: u64) -> Act {
            self.now += Duration::from_millis(after_ms);
            self.life.tick(self.now)
        }

        fn on(&mut self, event: Event) -> Act {
            self.life.on(event, self.now)
        }
    }

    #[test]
    fn it_is_started_at_once_and_again_with_growing_delays() {
        let mut rig = Rig::new();
        for delay in [0, 0, 100, 200, 400] {
            assert!(delay == 0 || rig.tick(delay - 1) == Act::Nothing);
            assert_eq!(rig.tick(delay.min(1)), Act::Start);
            assert_eq!(rig.on(Event::Exited), Act::BackOff);
        }
    }

    #[test]
    fn an_answered_broker_is_asked_for_ever() {
        let mut rig = Rig::up();
        for _ in 0..10 {
            assert_eq!(rig.tick(1000), Act::Ping);
            rig.life.answered(rig.life.asked);
        }
        assert_eq!(rig.life.state(), State::Up);
    }

    #[test]
    fn three_misses_abort_and_two_seconds_later_kill() {
        let mut rig = Rig::up();
        for _ in 0..3 {
            assert_eq!(rig.tick(1000), Act::Ping);
            // An old answer is none.
            rig.life.answered(0);
        }
        assert_eq!(rig.tick(1000), Act::Abort);
        assert_eq!(rig.tick(1999), Act::Nothing);
        assert_eq!(rig.tick(1), Act::Kill);
        assert_eq!(rig.tick(100_000), Act::Nothing);
        assert_eq!(rig.on(Event::Exited), Act::BackOff);
    }

    #[test]
    fn a_start_that_takes_too_long_is_killed() {
        let mut rig = Rig::new();
        rig.tick(0);
        assert_eq!(rig.tick(59_999), Act::Nothing);
        assert_eq!(rig.tick(1), Act::Kill);
        assert_eq!(rig.on(Event::Exited), Act::BackOff);
    }

    #[test]
    fn absence_counts_from_the_exit_to_the_next_service() {
        let mut rig = Rig::up();
        assert_eq!(rig.life.away_since(), None);
        rig.on(Event::Exited);
        let since = rig.now;
        rig.tick(0);
        rig.now += Duration::from_secs(1);
        rig.on(Event::Exited);
        assert_eq!(rig.life.away_since(), Some(since));
        rig.tick(100);
        rig.on(Event::Ready);
        assert_eq!(rig.life.away_since(), None);
    }

    #[test]
    fn a_drained_broker_is_not_started_again() {
        for state in [Rig::new(), Rig::up()] {
            let mut rig = state;
            assert_eq!(rig.on(Event::Stop), Act::Nothing);
            assert_eq!(rig.on(Event::Exited), Act::Nothing);
            assert_eq!(rig.tick(100_000), Act::Nothing);
            assert_eq!(rig.life.state(), State::Stopped);
        }
    }
}
