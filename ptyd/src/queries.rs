//! What a program may ask its terminal, and the answers.
//!
//! The emulator hands over every control sequence it does not know at the byte where it ends, so an answer tells the
//! state as of that byte. What is not in [`Responder::answer`] gets no answer; titles and the clipboard never do: an
//! answer is typed into the program, and nobody but the user may choose what is typed.

use vt100::{Callbacks, MouseProtocolEncoding, MouseProtocolMode, Screen};

use crate::kitty::Kitty;

/// A program that asks and does not read gets no more answers beyond this.
const MAX_UNREAD: usize = 16 * 1024;

/// Width and height of a cell in the reports that count in pixels, which no screen here has.
const CELL: (u32, u32) = (8, 16);

/// Collects the answers and keeps the keyboard mode, which the emulator does not know.
#[derive(Debug, Default)]
pub(crate) struct Responder {
    answers: Vec<u8>,
    kitty: Kitty,
}

impl Responder {
    /// Takes the answers that came up since the last call.
    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answers)
    }

    /// Whether the program wants keys without the ambiguities of the old encoding.
    pub(crate) fn disambiguates(&self, alternate: bool) -> bool {
        self.kitty.disambiguates(alternate)
    }

    /// The terminal was reset.
    pub(crate) fn reset(&mut self) {
        self.kitty = Kitty::default();
    }

    fn push(&mut self, answer: &str) {
        if self.answers.len().saturating_add(answer.len()) <= MAX_UNREAD {
            self.answers.extend_from_slice(answer.as_bytes());
        }
    }

    fn answer(&self, screen: &Screen, query: Query) -> Option<String> {
        let (rows, cols) = screen.size();
        Some(match query {
            Query::Status => "\x1b[0n".to_owned(),
            Query::Cursor => {
                let (row, col) = cursor(screen);
                format!("\x1b[{};{}R", row.saturating_add(1), col.saturating_add(1))
            }
            // A VT220 with colour.
            Query::Attributes => "\x1b[?62;22c".to_owned(),
            Query::Version => "\x1b[>0;10;0c".to_owned(),
            Query::Mode(mode) => format!("\x1b[?{mode};{}$y", private_mode(screen, mode)),
            Query::AnsiMode(mode) => format!("\x1b[{mode};0$y"),
            Query::Keyboard => format!("\x1b[?{}u", self.kitty.flags(screen.alternate_screen())),
            Query::Pixels => {
                let (height, width) = (u32::from(rows.get()), u32::from(cols.get()));
                format!("\x1b[4;{};{}t", height.saturating_mul(CELL.1), width.saturating_mul(CELL.0))
            }
            Query::CellPixels => format!("\x1b[6;{};{}t", CELL.1, CELL.0),
            Query::TextArea => format!("\x1b[8;{rows};{cols}t"),
            Query::ScreenSize => format!("\x1b[9;{rows};{cols}t"),
        })
    }
}

/// The queries that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Query {
    Status,
    Cursor,
    Attributes,
    Version,
    Mode(u16),
    AnsiMode(u16),
    Keyboard,
    Pixels,
    CellPixels,
    TextArea,
    ScreenSize,
}

impl Query {
    fn of(markers: (Option<u8>, Option<u8>), first: u16, last: char) -> Option<Self> {
        match (markers, last, first) {
            ((None, None), 'n', 5) => Some(Self::Status),
            ((None, None), 'n', 6) => Some(Self::Cursor),
            ((None, None), 'c', 0) => Some(Self::Attributes),
            ((Some(b'>'), None), 'c', 0) => Some(Self::Version),
            ((Some(b'?'), Some(b'$')), 'p', mode) => Some(Self::Mode(mode)),
            ((Some(b'$'), None), 'p', mode) => Some(Self::AnsiMode(mode)),
            ((Some(b'?'), None), 'u', _) => Some(Self::Keyboard),
            ((None, None), 't', 14) => Some(Self::Pixels),
            ((None, None), 't', 16) => Some(Self::CellPixels),
            ((None, None), 't', 18) => Some(Self::TextArea),
            ((None, None), 't', 19) => Some(Self::ScreenSize),
            _ => None,
        }
    }
}

impl Callbacks for Responder {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let param = |index: usize| params.get(index).and_then(|param| param.first()).copied();
        if let (Some(marker @ (b'>' | b'<' | b'=')), None, 'u') = (first, second, last) {
            return self.kitty.change(screen.alternate_screen(), marker, param(0), param(1));
        }
        let query = Query::of((first, second), param(0).unwrap_or_default(), last);
        if let Some(answer) = query.and_then(|query| self.answer(screen, query)) {
            self.push(&answer);
        }
    }
}

/// Row and column from 0. While a wrap is pending the emulator's column is one beyond the screen.
pub(crate) fn cursor(screen: &Screen) -> (u16, u16) {
    let (row, col) = screen.cursor_position();
    (row, col.min(screen.size().1.get().saturating_sub(1)))
}

/// A private mode as DECRQM reports it: 0 unknown, 1 set, 2 reset, 3 always set.
fn private_mode(screen: &Screen, mode: u16) -> u8 {
    let mouse = screen.mouse_protocol_mode();
    let encoding = screen.mouse_protocol_encoding();
    let on = match mode {
        1 => screen.application_cursor(),
        7 => return 3,
        9 => mouse == MouseProtocolMode::Press,
        25 => !screen.hide_cursor(),
        47 | 1049 => screen.alternate_screen(),
        1000 => mouse == MouseProtocolMode::PressRelease,
        1002 => mouse == MouseProtocolMode::ButtonMotion,
        1003 => mouse == MouseProtocolMode::AnyMotion,
        1005 => encoding == MouseProtocolEncoding::Utf8,
        1006 => encoding == MouseProtocolEncoding::Sgr,
        2004 => screen.bracketed_paste(),
        _ => return 0,
    };
    if on { 1 } else { 2 }
}
