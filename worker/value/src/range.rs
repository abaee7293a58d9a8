//! Integer ranges.

/// `start..end` or `start..=end`. A reversed range is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// First int.
    pub start: i64,
    /// Last bound.
    pub end: i64,
    /// Whether `end` belongs to the range.
    pub inclusive: bool,
}

impl Range {
    /// `start..end`.
    pub fn exclusive(start: i64, end: i64) -> Self {
        Self { start, end, inclusive: false }
    }

    /// Number of ints in it. The whole i64 range has one more than a u64 counts, hence u128.
    pub fn count(&self) -> u128 {
        let past_end = i128::from(self.end) + i128::from(self.inclusive);
        u128::try_from(past_end - i128::from(self.start)).unwrap_or(0)
    }

    /// Whether it has no ints.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Whether `n` is one of its ints.
    pub fn contains(&self, n: i64) -> bool {
        self.start <= n && (n < self.end || self.inclusive && n == self.end)
    }

    /// Its ints in order, lazily.
    pub fn iter(self) -> impl Iterator<Item = i64> {
        (i128::from(self.start)..i128::from(self.end) + i128::from(self.inclusive))
            .map(|n| i64::try_from(n).unwrap_or(i64::MAX))
    }
}
