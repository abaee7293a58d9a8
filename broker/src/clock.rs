//! The clocks, read once per wake of the loop.
#![allow(clippy::disallowed_methods, reason = "the loop hands time to everything else; here it is read")]

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The monotonic clock; it stands still while the machine sleeps.
pub(crate) fn mono() -> Instant {
    Instant::now()
}

/// Nanoseconds since the epoch, for display, rows and expiry.
pub(crate) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
