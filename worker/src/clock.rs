//! The clock port; the only place of this process that reads a clock.
#![allow(clippy::disallowed_methods, reason = "this module is the worker's clock")]

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use shoal_eval::cancel::{CancelToken, Cancelled};
use shoal_eval::host::Clock;

/// The system's clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClock;

/// The monotonic clock.
pub(crate) fn now() -> Instant {
    Instant::now()
}

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

impl Clock for SystemClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::system()
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(origin().elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, ns: u64, cancel: &CancelToken) -> Result<(), Cancelled> {
        let due = Instant::now().checked_add(Duration::from_nanos(ns));
        let gate = std::sync::Arc::new((Mutex::new(()), Condvar::new()));
        let waker = gate.clone();
        let _woken = cancel.on_cancel(move || {
            drop(waker.0.lock().unwrap_or_else(PoisonError::into_inner));
            waker.1.notify_all();
        });
        let mut guard = gate.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if cancel.is_set() {
                return Err(Cancelled);
            }
            // A sleep beyond the clock's range ends only by the token.
            let rest = due.map_or(Duration::MAX, |due| due.saturating_duration_since(Instant::now()));
            if rest.is_zero() {
                return Ok(());
            }
            let rest = rest.min(Duration::from_secs(3600));
            guard = gate.1.wait_timeout(guard, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_eval::cancel::CancelReason;

    #[test]
    fn a_sleep_ends_with_its_token() {
        let cancel = CancelToken::new();
        let sleeper = cancel.clone();
        let asleep = std::thread::spawn(move || SystemClock.sleep(u64::MAX, &sleeper));
        cancel.cancel(CancelReason::Cancelled);
        assert_eq!(asleep.join().expect("no panic"), Err(Cancelled));
        assert_eq!(SystemClock.sleep(1, &CancelToken::new()), Ok(()));
    }
}
