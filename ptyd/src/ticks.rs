//! At most one tick per terminal and interval, and only when output came. Time is handed in.

use std::time::{Duration, Instant};

/// The interval.
const EVERY: Duration = Duration::from_millis(50);

/// The ticks of one terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks {
    next: Option<Instant>,
    changed: bool,
}

impl Ticks {
    /// Output came.
    pub(crate) fn changed(&mut self) {
        self.changed = true;
    }

    /// Whether to tick now.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        if !self.changed || self.next.is_some_and(|next| now < next) {
            return false;
        }
        *self = Self { next: now.checked_add(EVERY), changed: false };
        true
    }

    /// When the next tick is due; none while no output came.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next.filter(|_| self.changed)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "an arbitrary first instant; the tests move it")]
mod tests {
    use super::*;

    #[test]
    fn the_first_output_ticks_at_once_and_later_ones_share_a_tick() {
        let (mut ticks, now) = (Ticks::default(), Instant::now());
        assert!(!ticks.take(now));
        ticks.changed();
        assert!(ticks.take(now));
        assert_eq!(ticks.due(), None);
        ticks.changed();
        ticks.changed();
        assert!(!ticks.take(now + EVERY / 2));
        assert_eq!(ticks.due(), Some(now + EVERY));
        assert!(ticks.take(now + EVERY));
        assert!(!ticks.take(now + 10 * EVERY));
    }
}
