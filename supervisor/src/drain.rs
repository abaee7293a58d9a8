//! The end of the kernel: no new work, rows closed, sessions ended, socket removed.

use std::time::{Duration, Instant};

use shoal_proto::supervisor_broker::{Shutdown, ToBroker};

use crate::kernel::Kernel;
use crate::lifecycle::Event;
use crate::{log, notify};

/// How long a drain takes at most when nobody says otherwise.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// The most a client may ask for.
const MAX_GRACE: Duration = Duration::from_secs(60);
/// For sessions and broker to end after the grace.
const REST: Duration = Duration::from_secs(6);

/// A kernel that drains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    /// When waiting for the broker is over.
    deadline: Instant,
    /// When waiting for everything is over.
    end: Instant,
    /// The deadline was acted on.
    forced: bool,
}

impl Drain {
    pub(crate) fn due(&self) -> Instant {
        if self.forced { self.end } else { self.deadline }
    }
}

impl Kernel {
    /// Starts to drain; a second wish for less time counts, one for more does not.
    pub(crate) fn begin_drain(&mut self, grace: Duration, now: Instant) {
        let deadline = now + grace.min(MAX_GRACE);
        if let Some(drain) = &mut self.drain {
            if !drain.forced && deadline < drain.deadline {
                *drain = Drain { deadline, end: deadline + REST, forced: false };
            }
            return;
        }
        self.drain = Some(Drain { deadline, end: deadline + REST, forced: false });
        notify::stopping();
        let act = self.life.on(Event::Stop, now);
        self.act(act, now);
        let grace_ms = u32::try_from(grace.min(MAX_GRACE).as_millis()).unwrap_or(0);
        self.tell_broker(&ToBroker::Drain(Shutdown { grace_ms }), &[]);
        if self.broker.is_none() {
            self.end_all(now);
        }
    }

    /// The broker closed its rows and exits.
    pub(crate) fn on_drained(&mut self, now: Instant) {
        self.end_all(now);
    }

    /// The deadlines of a drain.
    pub(crate) fn on_drain_due(&mut self, now: Instant) {
        let Some(drain) = &mut self.drain else { return };
        if !drain.forced && drain.deadline <= now {
            drain.forced = true;
            self.end_all(now);
            if self.broker.is_some() {
                log::line("the broker did not drain in time: killing it");
                self.signal_broker(libc::SIGKILL);
            }
        }
    }

    /// Nothing is left, or the time for it is over.
    pub(crate) fn is_drained(&self) -> bool {
        let Some(drain) = &self.drain else { return false };
        let empty = self.broker.is_none() && self.sessions.is_empty();
        empty || (drain.forced && drain.end <= crate::kernel::clock())
    }
}
