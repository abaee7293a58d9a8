//! Queries of programs, answered by the terminal host.

use crate::host::{Host, lines};

/// A program that asks, reads an answer of `len` bytes and shows it.
fn asked(query: &str, len: usize) -> String {
    let mut host = Host::start();
    let script =
        format!("stty raw -echo; printf 'x{query}'; head -c {len} | od -An -c | tr -s ' \\n' '  '; printf ' done'");
    let shell = host.sh(1, &script);
    let screen = host.until(1, "done");
    let line = lines(&screen)[0].trim_start_matches('x').trim_end_matches("done").replace(' ', "");
    host.reap(1, &shell);
    line
}

#[test]
fn the_cursor_is_told_as_of_the_query() {
    assert_eq!(asked("\\033[6nlater", 6), "later033[1;2R");
}

#[test]
fn modes_and_sizes_are_told() {
    assert_eq!(asked("\\033[?2004h\\033[?2004$p\\033[?2004l", 11), "033[?2004;1$y");
    assert_eq!(asked("\\033[18t", 10), "033[8;24;80t");
    assert_eq!(asked("\\033[>1u\\033[?u", 5), "033[?1u");
}

#[test]
fn what_is_not_answered_does_not_hold_up_what_is() {
    assert_eq!(asked("\\033]52;c;?\\007\\033[21t\\033]11;?\\007\\033[5n", 4), "033[0n");
}
