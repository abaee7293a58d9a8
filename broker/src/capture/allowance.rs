//! Bytes that may still be kept: counted by every writer before it keeps them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cap and what was taken of it, shared by the writers under it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowance {
    cap: u64,
    taken: Arc<AtomicU64>,
}

impl Allowance {
    /// Nothing taken of `cap` bytes.
    pub(crate) fn new(cap: u64) -> Self {
        Self { cap, taken: Arc::default() }
    }

    /// What is taken was counted anew.
    pub(crate) fn set_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }

    fn take(&self, bytes: u64) -> bool {
        let fits = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= self.cap);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        let less = |taken: u64| Some(taken.saturating_sub(bytes));
        // The closure never declines.
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok();
    }
}

/// What one stream may take: of its execution, its session and the store.
#[derive(Debug)]
pub(crate) struct Allowed {
    of: Vec<Allowance>,
    taken: u64,
}

impl Allowed {
    /// Under all of these caps.
    pub(crate) fn new(of: Vec<Allowance>) -> Self {
        Self { of, taken: 0 }
    }

    /// Takes so many bytes of every cap, or of none.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        for (at, allowance) in self.of.iter().enumerate() {
            if !allowance.take(bytes) {
                self.of.iter().take(at).for_each(|taken| taken.give_back(bytes));
                return false;
            }
        }
        self.taken += bytes;
        true
    }

    /// The stream is stored: it counts by what it takes on the disk.
    pub(crate) fn settle(mut self, stored: u64) {
        let surplus = self.taken.saturating_sub(stored);
        self.of.iter().for_each(|allowance| allowance.give_back(surplus));
        self.taken = 0;
    }
}

impl Drop for Allowed {
    /// What was not stored takes nothing.
    fn drop(&mut self) {
        self.of.iter().for_each(|allowance| allowance.give_back(self.taken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_cap_decides_and_the_others_lose_nothing() {
        let (wide, narrow) = (Allowance::new(100), Allowance::new(10));
        let mut allowed = Allowed::new(vec![wide.clone(), narrow.clone()]);
        assert!(allowed.take(10) && !allowed.take(1));
        assert_eq!((wide.taken.load(Ordering::Relaxed), narrow.taken.load(Ordering::Relaxed)), (10, 10));
        let mut second = Allowed::new(vec![wide.clone(), narrow.clone()]);
        assert!(!second.take(1), "shared");
        allowed.settle(4);
        assert!(second.take(6) && !second.take(1), "compressed bytes count as they lie there");
        drop(second);
        assert_eq!((wide.taken.load(Ordering::Relaxed), narrow.taken.load(Ordering::Relaxed)), (4, 4));
    }
}
