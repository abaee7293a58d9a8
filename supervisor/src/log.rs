//! Log lines on standard error: one line each, nothing in them that a terminal would obey.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Turns [`detail`] on.
pub(crate) fn set_verbose() {
    VERBOSE.store(true, Ordering::Relaxed);
}

/// Something the operator should know.
pub(crate) fn line(text: &str) {
    // Nobody is left to tell when standard error is gone.
    let _unread = writeln!(std::io::stderr(), "shoal-kernel: {}", printable(text));
}

/// Something that matters to a person looking for a fault.
pub(crate) fn detail(text: &str) {
    if VERBOSE.load(Ordering::Relaxed) {
        line(text);
    }
}

/// The text on one line, with control and bidirectional characters shown as escapes, at most 4 KiB of it.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(4096) {
        let bidi = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || bidi { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn one_line_without_escapes() {
        assert_eq!(printable("a\nb\u{1b}[1m\u{202e}c"), "a\\nb\\u{1b}[1m\\u{202e}c");
        assert_eq!(printable(&"x".repeat(5000)).len(), 4096);
    }
}
