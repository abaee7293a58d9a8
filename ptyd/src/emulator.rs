//! One emulated screen: vt100 behind bounds on size, scrollback, time and faults.

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use shoal_proto::Text;
use shoal_proto::broker_ptyd::MAX_ROW;

use crate::answers::Answers;
use crate::keys::Modes;

/// Columns or rows at most; a grid so has at most a million cells.
const MAX_SIDE: u16 = 1000;
/// Lines kept above the screen: with the widest screen two million cells.
const SCROLLBACK: usize = 2000;
/// Bytes parsed between two looks at the clock: the worst sequence (a reset of the largest grid) costs milliseconds.
pub(crate) const SLICE: usize = 256;

/// Where the cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// Row, from 0.
    pub(crate) row: u16,
    /// Column, from 0.
    pub(crate) col: u16,
    /// Not shown.
    pub(crate) hidden: bool,
}

/// A screen and what it has been told.
pub(crate) struct Emulator {
    parser: vt100::Parser<Answers>,
    rebuilt: bool,
}

impl Emulator {
    /// A blank screen, each side clamped to 1..=1000.
    pub(crate) fn new(cols: u16, rows: u16) -> Self {
        Self { parser: parser(cols, rows), rebuilt: false }
    }

    /// Takes output of the program, at most [`SLICE`] bytes. A fault of the emulator gives a blank screen.
    pub(crate) fn feed(&mut self, slice: &[u8]) {
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| parser.process(slice))).is_err() {
            let (cols, rows) = self.size();
            self.parser = self::parser(cols, rows);
            self.rebuilt = true;
        }
    }

    /// Whether a fault blanked the screen; said once.
    pub(crate) fn take_rebuilt(&mut self) -> bool {
        std::mem::take(&mut self.rebuilt)
    }

    /// What is to be written to the program in answer to its questions.
    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        self.parser.callbacks_mut().take()
    }

    /// A new size, clamped.
    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        let (cols, rows) = (side(cols), side(rows));
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| parser.set_size(rows, cols))).is_err() {
            self.parser = self::parser(cols.get(), rows.get());
            self.rebuilt = true;
        }
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        let (rows, cols) = self.parser.screen().size();
        (cols.get(), rows.get())
    }

    /// Every row, trailing blanks removed.
    pub(crate) fn rows(&self) -> Vec<Text<MAX_ROW>> {
        let (cols, _) = self.size();
        self.parser.screen().rows(0, cols).map(|row| line(&row)).collect()
    }

    /// The cursor.
    pub(crate) fn cursor(&self) -> Cursor {
        let screen = self.parser.screen();
        let (row, col) = screen.cursor_position();
        Cursor { row, col, hidden: screen.hide_cursor() }
    }

    /// The modes that keys depend on.
    pub(crate) fn modes(&self) -> Modes {
        let screen = self.parser.screen();
        let kitty = self.parser.callbacks().kitty.flags(screen.alternate_screen());
        Modes { application_cursor: screen.application_cursor(), kitty }
    }

    /// The program wants pasted text marked.
    pub(crate) fn bracketed_paste(&self) -> bool {
        self.parser.screen().bracketed_paste()
    }

    /// Lines kept above the screen.
    pub(crate) fn scrollback_len(&self) -> usize {
        self.parser.screen().scrollback_len()
    }

    /// Lines `start..end` of them, the oldest is 0; what is not there is left out.
    pub(crate) fn scrollback(&mut self, start: usize, end: usize) -> Vec<Text<MAX_ROW>> {
        let (cols, _) = self.size();
        let screen = self.parser.screen_mut();
        let total = screen.scrollback_len();
        let end = end.min(total);
        let mut lines = Vec::new();
        let mut at = start;
        while at < end {
            // The view is moved up so that its first row is the wanted line.
            screen.set_scrollback(total.saturating_sub(at));
            let wanted = end.saturating_sub(at);
            let before = lines.len();
            lines.extend(screen.rows(0, cols).take(wanted).map(|row| line(&row)));
            at = at.saturating_add(lines.len().saturating_sub(before).max(1));
        }
        screen.set_scrollback(0);
        lines
    }

    /// The screen as escape sequences for a person's terminal.
    pub(crate) fn formatted(&self) -> Vec<u8> {
        self.parser.screen().contents_formatted().into_bytes()
    }
}

fn parser(cols: u16, rows: u16) -> vt100::Parser<Answers> {
    vt100::Parser::new_with_callbacks(side(rows), side(cols), SCROLLBACK, Answers::default())
}

fn side(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n.clamp(1, MAX_SIDE)).unwrap_or(NonZeroU16::MIN)
}

fn line(row: &str) -> Text<MAX_ROW> {
    Text::cut(row.trim_end_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(cols: u16, rows: u16, output: &str) -> Emulator {
        let mut emulator = Emulator::new(cols, rows);
        for slice in output.as_bytes().chunks(SLICE) {
            emulator.feed(slice);
        }
        emulator
    }

    fn text(emulator: &Emulator) -> Vec<String> {
        emulator.rows().into_iter().map(Text::into_string).collect()
    }

    #[test]
    fn rows_are_trimmed_and_wide_characters_take_two_cells() {
        let emulator = screen(10, 3, "a漢b  \r\n\x1b[1;31mred\x1b[m");
        assert_eq!(text(&emulator), ["a漢b", "red", ""]);
        assert_eq!(emulator.cursor(), Cursor { row: 1, col: 3, hidden: false });
    }

    #[test]
    fn questions_are_answered_with_the_state_at_their_byte() {
        let mut emulator =
            screen(80, 24, "ab\x1b[6nc\x1b[6n\x1b[5n\x1b[c\x1b[>c\x1b[?2004$p\x1b[?2004h\x1b[?2004$p\x1b[?77$p");
        let answers = String::from_utf8(emulator.take_answers()).expect("text");
        assert_eq!(
            answers,
            "\x1b[1;3R\x1b[1;4R\x1b[0n\x1b[?62;22c\x1b[>1;10;0c\x1b[?2004;2$y\x1b[?2004;1$y\x1b[?77;0$y"
        );
        let mut emulator = screen(80, 24, "\x1b[18t\x1b[14t\x1b[?u\x1b[>1u\x1b[?u\x1b[21t\x1b]11;?\x07\x1b]52;c;?\x07");
        let answers = String::from_utf8(emulator.take_answers()).expect("text");
        assert_eq!(answers, "\x1b[8;24;80t\x1b[4;384;640t\x1b[?0u\x1b[?1u", "titles, colours, clipboard: nothing");
        assert_eq!(emulator.modes().kitty, 1);
    }

    #[test]
    fn the_last_column_is_told_as_the_last() {
        let mut emulator = screen(4, 2, "abcd\x1b[6n");
        assert_eq!(emulator.take_answers(), b"\x1b[1;4R");
    }

    #[test]
    fn answers_are_bounded() {
        let mut emulator = screen(80, 24, &"\x1b[c".repeat(100_000));
        assert!(emulator.take_answers().len() <= 64 * 1024);
    }

    #[test]
    fn the_alternate_screen_comes_and_goes() {
        let emulator = screen(20, 2, "shell\x1b[?1049h\x1b[Hvim");
        assert_eq!(text(&emulator)[0], "vim");
        assert_eq!(text(&screen(20, 2, "shell\x1b[?1049h\x1b[Hvim\x1b[?1049l"))[0], "shell");
    }

    #[test]
    fn scrollback_is_read_by_line_and_bounded() {
        let output: String = (0..50).map(|n| format!("line {n}\r\n")).collect();
        let mut emulator = screen(20, 4, &output);
        assert_eq!(emulator.scrollback_len(), 47);
        let lines: Vec<String> = emulator.scrollback(10, 20).into_iter().map(Text::into_string).collect();
        assert_eq!(lines.len(), 10);
        assert_eq!((lines[0].as_str(), lines[9].as_str()), ("line 10", "line 19"));
        assert_eq!(emulator.scrollback(40, 1000).len(), 7);
        assert!(emulator.scrollback(1000, 2000).is_empty());
        assert_eq!(text(&emulator)[0], "line 47", "the view is back on the screen");
        let output: String = (0..5000).map(|n| format!("{n}\r\n")).collect();
        assert_eq!(screen(20, 4, &output).scrollback_len(), SCROLLBACK);
    }

    #[test]
    fn sizes_are_clamped() {
        let mut emulator = Emulator::new(0, 60_000);
        assert_eq!(emulator.size(), (1, 1000));
        emulator.resize(5000, 0);
        assert_eq!(emulator.size(), (1000, 1));
    }

    #[test]
    fn an_endless_string_takes_no_memory_and_hides_nothing_after_it() {
        let mut emulator = screen(20, 2, &format!("\x1b]0;{}\x07after", "x".repeat(1_000_000)));
        assert_eq!(text(&emulator)[0], "after");
        assert!(!emulator.take_rebuilt());
    }
}
