//! What a watch's thread is told between its acts. Signals of one kind fall together, so it never grows.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What came since the last look.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals {
    /// The resource or a part of it changed.
    pub(crate) changed: bool,
    /// The subscription ended, and why.
    pub(crate) ended: Option<String>,
    /// The watch is stopped.
    pub(crate) stopped: bool,
}

/// Signals on their way to one thread.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    signals: Mutex<Signals>,
    raised: Condvar,
}

impl Inbox {
    /// Something changed under the watched URI.
    pub(crate) fn changed(&self) {
        self.raise(|signals| signals.changed = true);
    }

    /// The subscription is gone.
    pub(crate) fn ended(&self, why: &str) {
        self.raise(|signals| signals.ended = Some(why.to_owned()));
    }

    /// The watch is to end.
    pub(crate) fn stop(&self) {
        self.raise(|signals| signals.stopped = true);
    }

    /// Waits for signals, at most so long, and takes them; nothing when the time is over.
    pub(crate) fn wait(&self, longest: Option<Duration>) -> Signals {
        let none = |signals: &mut Signals| *signals == Signals::default();
        let signals = self.lock();
        let mut signals = match longest {
            None => self.raised.wait_while(signals, none).unwrap_or_else(PoisonError::into_inner),
            Some(longest) => {
                self.raised.wait_timeout_while(signals, longest, none).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        std::mem::take(&mut *signals)
    }

    fn raise(&self, how: impl FnOnce(&mut Signals)) {
        how(&mut self.lock());
        self.raised.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Signals> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_fall_together() {
        let inbox = Inbox::default();
        (0..1000).for_each(|_| inbox.changed());
        inbox.ended("gone");
        assert_eq!(inbox.wait(None), Signals { changed: true, ended: Some("gone".into()), stopped: false });
        assert_eq!(inbox.wait(Some(Duration::ZERO)), Signals::default());
        inbox.stop();
        assert!(inbox.wait(None).stopped);
    }
}
