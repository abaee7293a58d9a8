//! A terminal as a read sees it.

use std::time::Duration;

use shoal_proto::broker_ptyd::{MAX_ROW, Screen};
use shoal_proto::{Bytes, List, Text};

use crate::terminal::Terminal;
use crate::waits::{Ended, Want};

/// Bytes of the rows, of the scrollback and of the formatted screen in one answer; together they fit into a message.
/// Only screens near the largest, filled with marks on every character, are cut by them.
const MAX_ROWS: usize = 8 * 1024 * 1024;
const MAX_SCROLLBACK: usize = 3 * 1024 * 1024;
pub(crate) const MAX_FORMATTED: usize = 8 * 1024 * 1024;
const _: () = assert!(MAX_ROWS + MAX_SCROLLBACK + MAX_FORMATTED < shoal_proto::message::MAX_BODY);

impl Terminal {
    /// The answer to a read. A formatted read is a person looking on and does not count as the previous read.
    pub(crate) fn screen(&mut self, call: u64, want: Want, waited: Duration, end: Ended) -> Screen {
        let snapshot = self.pane.snapshot();
        let digest = snapshot.digest();
        let changed = self.seen != Some(digest);
        let reset = !want.formatted && self.pane.take_rebuilt();
        if !want.formatted {
            self.seen = Some(digest);
        }
        let (start, stop) = want.scrollback.unwrap_or_default();
        let mut lines = self.pane.scrollback(length(start), length(stop));
        lines.truncate(fitting(&lines));
        let formatted = if want.formatted { self.pane.formatted() } else { Vec::new() };
        Screen {
            call,
            cols: self.pane.size().cols.get(),
            rows: rows(&snapshot.rows),
            row: snapshot.row,
            col: snapshot.col,
            hidden: snapshot.hidden,
            changed,
            reset,
            exit: self.exit(),
            waited_ms: u32::try_from(waited.as_millis()).unwrap_or(u32::MAX),
            matched: end.matched,
            timed_out: end.timed_out,
            scrollback_len: u32::try_from(self.pane.scrollback_len()).unwrap_or(u32::MAX),
            scrollback: texts(lines.iter().map(String::as_str)),
            formatted: Bytes::new(formatted).unwrap_or_default(),
            output: self.output,
        }
    }
}

fn length(lines: u32) -> usize {
    usize::try_from(lines).unwrap_or(usize::MAX)
}

/// As many lines as fit; the reader asks for the next ones by their number.
fn fitting(lines: &[String]) -> usize {
    let mut room = MAX_SCROLLBACK;
    lines.iter().take_while(|line| take(&mut room, line.len())).count()
}

/// All rows; those that do not fit are empty, so that their number stays that of the screen.
fn rows(rows: &[String]) -> List<Text<MAX_ROW>, 1000> {
    let mut room = MAX_ROWS;
    texts(rows.iter().map(|row| if take(&mut room, row.len()) { row.as_str() } else { "" }))
}

fn take(room: &mut usize, len: usize) -> bool {
    let left = room.checked_sub(len);
    *room = left.unwrap_or(0);
    left.is_some()
}

/// A row fits by the limits of a screen; what would not is cut.
fn texts<'a, const N: usize>(lines: impl Iterator<Item = &'a str>) -> List<Text<MAX_ROW>, N> {
    let texts: Vec<Text<MAX_ROW>> = lines.take(N).map(Text::cut).collect();
    List::new(texts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_beyond_the_bound_are_blank_and_lines_beyond_it_are_left() {
        let wide = vec!["x".repeat(MAX_ROW); 1000];
        let cut = rows(&wide);
        assert_eq!(cut.as_slice().len(), 1000);
        assert_eq!(cut.as_slice().iter().filter(|row| !row.is_empty()).count(), MAX_ROWS / MAX_ROW);
        assert_eq!(fitting(&wide), MAX_SCROLLBACK / MAX_ROW);
    }
}
