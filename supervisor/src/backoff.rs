//! How long to wait before a role is started again.

use std::time::{Duration, Instant};

/// Delays of one role: the first restart at once, then `first`, doubling to `most`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
    /// After this long without a failure the count starts again.
    healthy: Duration,
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    /// The broker's: 0, 100 ms, doubling to 10 s, forgotten after 60 s.
    pub(crate) const BROKER: Self =
        Self::new(Duration::from_millis(100), Duration::from_secs(10), Duration::from_secs(60));
    /// A worker's or ptyd's: 0, 1, 2, 4 ... 30 s, forgotten after five minutes.
    pub(crate) const SESSION_ROLE: Self =
        Self::new(Duration::from_secs(1), Duration::from_secs(30), Duration::from_secs(300));

    const fn new(first: Duration, most: Duration, healthy: Duration) -> Self {
        Self { first, most, healthy, failures: 0, last: None }
    }

    /// Counts a failure and says how long to wait.
    pub(crate) fn failed(&mut self, now: Instant) -> Duration {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= self.healthy) {
            self.failures = 0;
        }
        self.last = Some(now);
        let doublings = self.failures.checked_sub(1);
        self.failures = self.failures.saturating_add(1);
        doublings.map_or(Duration::ZERO, |n| self.first.saturating_mul(2_u32.saturating_pow(n)).min(self.most))
    }

    /// Failures since the count started.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn doubles_to_its_bound_and_forgets() {
        let start = Instant::now();
        let mut backoff = Backoff::BROKER;
        let delays: Vec<u128> = (0..10).map(|_| backoff.failed(start).as_millis()).collect();
        assert_eq!(delays, [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(backoff.failures(), 10);
        assert_eq!(backoff.failed(start + Duration::from_secs(59)).as_millis(), 10_000);
        assert_eq!(backoff.failed(start + Duration::from_secs(119)).as_millis(), 0);
        let mut backoff = Backoff::SESSION_ROLE;
        let delays: Vec<u64> = (0..8).map(|_| backoff.failed(start).as_secs()).collect();
        assert_eq!(delays, [0, 1, 2, 4, 8, 16, 30, 30]);
    }
}
