//! Lines on stderr, which the supervisor passes on: one line each, no controls, bounded.

use std::fmt;
use std::io::Write as _;

/// Longest line.
const MAX: usize = 2048;

/// Writes a log event: one JSON object in a line of its own.
pub(crate) fn event(object: &serde_json::Value) {
    std::io::stderr().write_all(format!("{object}\n").as_bytes()).ok();
}

/// Writes one line. A log that cannot be written has nobody to tell.
pub(crate) fn line(what: fmt::Arguments<'_>) {
    let text = crate::json::one_line(&what.to_string(), MAX);
    std::io::stderr().write_all(format!("shoal-broker: {text}\n").as_bytes()).ok();
}
