//! A screen as it is read: plain rows, or escape sequences for a person's own terminal.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use unicode_width::UnicodeWidthStr as _;
use vt100::Screen;

use crate::answer::MAX_FORMATTED;
use crate::queries;

/// A screen at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Snapshot {
    /// One string per row, trailing blanks removed.
    pub(crate) rows: Vec<String>,
    /// Cursor row from 0.
    pub(crate) row: u16,
    /// Cursor column from 0.
    pub(crate) col: u16,
    /// Cursor hidden.
    pub(crate) hidden: bool,
}

impl Snapshot {
    pub(crate) fn of(screen: &Screen) -> Self {
        let (row, col) = queries::cursor(screen);
        Self { rows: rows(screen).collect(), row, col, hidden: screen.hide_cursor() }
    }

    pub(crate) fn blank(rows: u16) -> Self {
        Self { rows: vec![String::new(); usize::from(rows)], row: 0, col: 0, hidden: false }
    }

    /// Tells screens apart without keeping them.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Rows joined by newlines: what conditions look at.
    pub(crate) fn text(&self) -> String {
        self.rows.join("\n")
    }

    /// The same with the cursor's row filled with blanks up to the cursor, so that a condition can ask for a prompt
    /// with its blank at the end; `None` when that is no different.
    pub(crate) fn text_to_cursor(&self) -> Option<String> {
        let row = self.rows.get(usize::from(self.row))?;
        let missing = usize::from(self.col).checked_sub(row.width()).filter(|missing| *missing > 0)?;
        let mut rows = self.rows.clone();
        rows.get_mut(usize::from(self.row))?.push_str(&" ".repeat(missing));
        Some(rows.join("\n"))
    }
}

fn rows(screen: &Screen) -> impl Iterator<Item = String> {
    let cols = screen.size().1.get();
    screen.rows(0, cols).map(|mut row| {
        row.truncate(row.trim_end_matches(' ').len());
        row
    })
}

/// Escape sequences that draw the screen and set the modes by which keys are encoded, so that what a person types into a
/// terminal of their own fits the program; a screen with too many of them is drawn without colours.
pub(crate) fn formatted(screen: &Screen) -> Vec<u8> {
    let full = screen.state_formatted();
    if full.len() <= MAX_FORMATTED {
        return full.into_bytes();
    }
    let (row, col) = queries::cursor(screen);
    let rows: Vec<String> = rows(screen).collect();
    let plain =
        format!("\x1b[m\x1b[H\x1b[J{}\x1b[{};{}H", rows.join("\r\n"), row.saturating_add(1), col.saturating_add(1));
    let mut bytes = plain.into_bytes();
    bytes.truncate(MAX_FORMATTED);
    bytes
}

/// Lines `start..end` of the scrollback, oldest first. The emulator shows them by moving its window.
pub(crate) fn scrollback(screen: &mut Screen, start: usize, end: usize) -> Vec<String> {
    let kept = screen.scrollback_len();
    let end = end.min(kept);
    let mut lines = Vec::new();
    let mut next = start;
    while next < end {
        screen.set_scrollback(kept.saturating_sub(next));
        let wanted = end.saturating_sub(next).min(usize::from(screen.size().0.get()));
        lines.extend(rows(screen).take(wanted));
        next = next.saturating_add(wanted);
    }
    screen.set_scrollback(0);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_keeps_its_blank_before_the_cursor() {
        let rows = vec![">>> 1".to_owned(), "\u{65e5}>".to_owned(), String::new()];
        let at = |row, col| Snapshot { rows: rows.clone(), row, col, hidden: false };
        assert_eq!(at(1, 4).text_to_cursor().as_deref(), Some(">>> 1\n\u{65e5}> \n"));
        assert_eq!(at(0, 5).text_to_cursor(), None);
        assert_eq!(at(0, 2).text_to_cursor(), None);
        assert_eq!(at(2, 1).text_to_cursor().as_deref(), Some(">>> 1\n\u{65e5}>\n "));
    }
}
