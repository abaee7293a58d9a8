//! What the emulator tells a program that asks its terminal, with the state as of the byte of the question.
//!
//! Only these have answers: device status and cursor position, device attributes, requests of modes, keyboard flags,
//! window sizes. Titles, colours and the clipboard are never told: their contents come from outside the program.

use vt100::{Callbacks, MouseProtocolEncoding, MouseProtocolMode, Screen};

use crate::kitty::Kitty;

/// Answers waiting to be written; a program that asks without reading gets no more.
const MAX_WAITING: usize = 64 * 1024;
/// Nominal size of a cell for reports in pixels.
const CELL_WIDTH: u32 = 8;
const CELL_HEIGHT: u32 = 16;

/// The emulator's side of the questions.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    waiting: Vec<u8>,
    /// Keyboard flags.
    pub(crate) kitty: Kitty,
}

impl Answers {
    /// Takes what is to be written to the program.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.waiting)
    }

    fn say(&mut self, answer: &str) {
        if self.waiting.len().saturating_add(answer.len()) <= MAX_WAITING {
            self.waiting.extend_from_slice(answer.as_bytes());
        }
    }

    fn status(&mut self, screen: &Screen, private: bool, what: u16) {
        let prefix = if private { "?" } else { "" };
        match (what, private) {
            (5, false) => self.say("\x1b[0n"),
            (6, _) => {
                let (row, col) = screen.cursor_position();
                let (_, cols) = screen.size();
                // After the last column the cursor waits beyond it; programs know it as in the last column.
                let col = col.saturating_add(1).min(cols.get());
                self.say(&format!("\x1b[{prefix}{};{col}R", row.saturating_add(1)));
            }
            _ => {}
        }
    }

    fn window(&mut self, screen: &Screen, what: u16) {
        let (rows, cols) = screen.size();
        let (rows, cols) = (u32::from(rows.get()), u32::from(cols.get()));
        match what {
            14 => {
                let (height, width) = (rows.saturating_mul(CELL_HEIGHT), cols.saturating_mul(CELL_WIDTH));
                self.say(&format!("\x1b[4;{height};{width}t"));
            }
            16 => self.say(&format!("\x1b[6;{CELL_HEIGHT};{CELL_WIDTH}t")),
            18 => self.say(&format!("\x1b[8;{rows};{cols}t")),
            19 => self.say(&format!("\x1b[9;{rows};{cols}t")),
            _ => {}
        }
    }

    fn keyboard(&mut self, screen: &Screen, introducer: u8, params: &[&[u16]]) {
        let alternate = screen.alternate_screen();
        match introducer {
            b'?' => {
                let flags = self.kitty.flags(alternate);
                self.say(&format!("\x1b[?{flags}u"));
            }
            b'>' => self.kitty.push(alternate, param(params, 0)),
            b'<' => self.kitty.pop(alternate, param(params, 0)),
            b'=' => self.kitty.set(alternate, param(params, 0), param(params, 1)),
            _ => {}
        }
    }
}

impl Callbacks for Answers {
    fn unhandled_csi(&mut self, screen: &mut Screen, i1: Option<u8>, i2: Option<u8>, params: &[&[u16]], c: char) {
        match (i1, i2, c) {
            (None, None, 'n') => self.status(screen, false, param(params, 0)),
            (Some(b'?'), None, 'n') => self.status(screen, true, param(params, 0)),
            // A VT220 with colour; as little as programs need to use what this emulator has.
            (None, None, 'c') if param(params, 0) == 0 => self.say("\x1b[?62;22c"),
            (Some(b'>'), None, 'c') if param(params, 0) == 0 => self.say("\x1b[>1;10;0c"),
            (Some(b'?'), Some(b'$'), 'p') => {
                let mode = param(params, 0);
                let state = private_mode(screen, mode);
                self.say(&format!("\x1b[?{mode};{state}$y"));
            }
            (Some(b'$'), None, 'p') => self.say(&format!("\x1b[{};0$y", param(params, 0))),
            (None, None, 't') => self.window(screen, param(params, 0)),
            (Some(introducer), None, 'u') => self.keyboard(screen, introducer, params),
            _ => {}
        }
    }
}

fn param(params: &[&[u16]], index: usize) -> u16 {
    params.get(index).and_then(|p| p.first()).copied().unwrap_or(0)
}

/// 1 set, 2 reset, 0 not recognised.
fn private_mode(screen: &Screen, mode: u16) -> u8 {
    let set = match mode {
        1 => screen.application_cursor(),
        9 => screen.mouse_protocol_mode() == MouseProtocolMode::Press,
        25 => !screen.hide_cursor(),
        47 | 1047 | 1049 => screen.alternate_screen(),
        1000 => screen.mouse_protocol_mode() == MouseProtocolMode::PressRelease,
        1002 => screen.mouse_protocol_mode() == MouseProtocolMode::ButtonMotion,
        1003 => screen.mouse_protocol_mode() == MouseProtocolMode::AnyMotion,
        1005 => screen.mouse_protocol_encoding() == MouseProtocolEncoding::Utf8,
        1006 => screen.mouse_protocol_encoding() == MouseProtocolEncoding::Sgr,
        2004 => screen.bracketed_paste(),
        _ => return 0,
    };
    if set { 1 } else { 2 }
}
