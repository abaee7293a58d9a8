//! How much of a value is sent in place.

use serde::{Deserialize, Serialize};

use crate::params::params;

params! {
    /// What a client asks for; absent members mean the defaults.
    #[derive(Copy, Eq, Default, Serialize, Deserialize)]
    ElideSpec {
        /// Encoded JSON length; also the budget of raw bytes when given.
        opt max_bytes: u64,
        /// Rows of a table.
        opt max_rows: u64,
        /// Items of a list.
        opt max_items: u64,
    }
}

/// The budgets in force for one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Budgets {
    /// Encoded JSON length of the value.
    pub max_bytes: u64,
    /// Rows of a table.
    pub max_rows: u64,
    /// Length of `bytes` before base64.
    pub max_bytes_raw: u64,
    /// Items of a list.
    pub max_items: u64,
    /// Encoded JSON, whatever was asked for.
    pub hard_cap: u64,
}

/// Encoded JSON of a value never passes this: it is what one answer may cost its reader.
pub const HARD_CAP: u64 = 65_536;
/// Rows and items never pass this, however small each is.
pub const COUNT_CAP: u64 = 10_000;

impl Budgets {
    /// What holds when a client asks for nothing; attach advertises it.
    pub const DEFAULT: Budgets =
        Budgets { max_bytes: 8192, max_rows: 100, max_bytes_raw: 4096, max_items: 500, hard_cap: HARD_CAP };
}

impl ElideSpec {
    /// The budgets this asks for, clamped.
    pub fn budgets(&self) -> Budgets {
        let d = Budgets::DEFAULT;
        Budgets {
            max_bytes: self.max_bytes.unwrap_or(d.max_bytes).min(HARD_CAP),
            max_bytes_raw: self.max_bytes.unwrap_or(d.max_bytes_raw).min(HARD_CAP),
            max_rows: self.max_rows.unwrap_or(d.max_rows).min(COUNT_CAP),
            max_items: self.max_items.unwrap_or(d.max_items).min(COUNT_CAP),
            hard_cap: HARD_CAP,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_default_and_clamp() {
        assert_eq!(ElideSpec::default().budgets(), Budgets::DEFAULT);
        let spec = ElideSpec { max_bytes: Some(1 << 40), max_rows: Some(0), max_items: Some(1 << 40) };
        let budgets = spec.budgets();
        assert_eq!((budgets.max_bytes, budgets.max_bytes_raw), (HARD_CAP, HARD_CAP));
        assert_eq!((budgets.max_rows, budgets.max_items), (0, COUNT_CAP));
    }
}
