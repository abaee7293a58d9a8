//! How many events come, by channel and over the last minute.

use std::collections::VecDeque;

/// Seconds that are kept.
const KEPT: usize = 60;
/// Seconds a rate is taken over.
const OVER: usize = 10;

/// The channels that are counted, in the order they are shown.
pub(super) const CHANNELS: [&str; 4] = ["journal", "session", "approval", "kernel"];

/// Counts per second, newest last.
#[derive(Debug)]
pub(super) struct Rates {
    seconds: VecDeque<[u64; CHANNELS.len()]>,
}

impl Default for Rates {
    fn default() -> Self {
        Self { seconds: VecDeque::from([[0; CHANNELS.len()]]) }
    }
}

impl Rates {
    /// An event came on a channel.
    pub(super) fn count(&mut self, channel: &str) {
        let at = CHANNELS.iter().position(|name| *name == channel);
        if let Some(count) = at.and_then(|at| self.seconds.back_mut()?.get_mut(at)) {
            *count += 1;
        }
    }

    /// A second is over.
    pub(super) fn tick(&mut self) {
        self.seconds.push_back([0; CHANNELS.len()]);
        if self.seconds.len() > KEPT {
            self.seconds.pop_front();
        }
    }

    /// Events per second of each channel over the last ten, in tenths.
    pub(super) fn tenths(&self) -> [u64; CHANNELS.len()] {
        let mut sums = [0; CHANNELS.len()];
        for second in self.seconds.iter().rev().take(OVER) {
            for (sum, count) in sums.iter_mut().zip(second) {
                *sum += count;
            }
        }
        // Ten seconds of counts are tenths of a count per second.
        sums
    }

    /// Events of each second, oldest first.
    pub(super) fn history(&self) -> Vec<u64> {
        self.seconds.iter().map(|second| second.iter().sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_taken_over_ten_seconds() {
        let mut rates = Rates::default();
        for _ in 0..3 {
            rates.count("journal");
        }
        rates.count("kernel");
        rates.count("nobody");
        assert_eq!(rates.tenths(), [3, 0, 0, 1]);
        rates.tick();
        rates.count("journal");
        assert_eq!((rates.tenths(), rates.history()), ([4, 0, 0, 1], vec![4, 1]));
        for _ in 0..9 {
            rates.tick();
        }
        assert_eq!(rates.tenths(), [1, 0, 0, 0]);
        for _ in 0..100 {
            rates.tick();
        }
        assert_eq!((rates.tenths(), rates.history().len()), ([0; 4], KEPT));
    }
}
