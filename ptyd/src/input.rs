//! From the pieces of a send to bytes, and the limit of canonical lines.

use std::os::fd::BorrowedFd;

use rustix::termios::{LocalModes, SpecialCodeIndex, Termios};
use shoal_proto::Text;
use shoal_proto::broker_ptyd::{Input, Refusal, Send};

use crate::emulator::Emulator;
use crate::keys;

/// Longest line a terminal takes in canonical mode, its end included; what is longer is dropped by the system.
const CANONICAL: usize = if cfg!(target_os = "macos") { 1023 } else { 4095 };
const PASTE_START: &str = "\x1b[200~";
const PASTE_END: &str = "\x1b[201~";

/// The bytes of a send in the modes in force.
pub(crate) fn encode(send: &Send, emulator: &Emulator) -> Result<Vec<u8>, Refusal> {
    let modes = emulator.modes();
    let marked = send.paste && emulator.bracketed_paste();
    let mut bytes = Vec::new();
    for input in send.input.as_slice() {
        match input {
            Input::Text(text) if marked => bytes.extend_from_slice(pasted(text).as_bytes()),
            Input::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            Input::Raw(raw) => bytes.extend_from_slice(raw.as_slice()),
            Input::Key(name) => match keys::bytes(name, modes) {
                Some(key) => bytes.extend(key),
                None => return Err(Refusal::Key(Text::cut(name))),
            },
        }
    }
    Ok(bytes)
}

/// Text between the markers. A marker inside would end the paste early, and may come together from parts.
fn pasted(text: &str) -> String {
    let mut text = text.to_owned();
    while text.contains(PASTE_END) {
        text = text.replace(PASTE_END, "");
    }
    format!("{PASTE_START}{text}{PASTE_END}")
}

/// How much of an unfinished line the terminal holds already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenLine(usize);

impl OpenLine {
    /// Refuses bytes that hold a longer line than a terminal in canonical mode takes, else the open line after them. A
    /// terminal in another mode has no lines.
    pub(crate) fn after(self, leader: BorrowedFd<'_>, bytes: &[u8]) -> Result<Self, Refusal> {
        match rustix::termios::tcgetattr(leader) {
            Ok(termios) if termios.local_modes.contains(LocalModes::ICANON) => self.fit(&termios, bytes),
            // A leader whose program is gone has no modes any more; the write will say so.
            Ok(_) | Err(_) => Ok(Self(0)),
        }
    }

    fn fit(self, termios: &Termios, bytes: &[u8]) -> Result<Self, Refusal> {
        let codes = &termios.special_codes;
        let ends = [SpecialCodeIndex::VEOF, SpecialCodeIndex::VEOL, SpecialCodeIndex::VEOL2];
        let ends: Vec<u8> = ends.iter().map(|i| codes[*i]).filter(|code| *code != 0).collect();
        self.fit_lines(|byte| matches!(byte, b'\n' | b'\r') || ends.contains(&byte), bytes)
    }

    fn fit_lines(self, is_end: impl Fn(u8) -> bool, bytes: &[u8]) -> Result<Self, Refusal> {
        let mut open = self.0;
        for byte in bytes {
            if is_end(*byte) {
                open = 0;
                continue;
            }
            open = open.saturating_add(1);
            if open > CANONICAL {
                return Err(Refusal::LineTooLong { max: u32::try_from(CANONICAL).unwrap_or(u32::MAX) });
            }
        }
        Ok(Self(open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_proto::{Bytes, List};

    fn send(input: Vec<Input>, paste: bool) -> Send {
        Send { call: 1, id: 1, input: List::new(input).expect("fits"), paste }
    }

    fn text(text: &str) -> Input {
        Input::Text(Text::new(text).expect("fits"))
    }

    fn key(name: &str) -> Input {
        Input::Key(Text::new(name).expect("fits"))
    }

    #[test]
    fn pieces_come_in_order() {
        let raw = Input::Raw(Bytes::new(&b"\xff\x00"[..]).expect("fits"));
        let bytes = encode(&send(vec![text("hello"), key("Enter"), raw, key("Up")], false), &Emulator::new(80, 24));
        assert_eq!(bytes.as_deref(), Ok(&b"hello\r\xff\x00\x1b[A"[..]));
        let unknown = encode(&send(vec![text("x"), key("Hyper-Q")], false), &Emulator::new(80, 24));
        assert_eq!(unknown, Err(Refusal::Key(Text::cut("Hyper-Q"))));
    }

    #[test]
    fn a_paste_is_marked_only_where_it_is_asked_for() {
        let mut emulator = Emulator::new(80, 24);
        let paste = send(vec![text("a\x1b[20\x1b[201~1~b"), key("Enter")], true);
        assert_eq!(encode(&paste, &emulator).as_deref(), Ok(&b"a\x1b[20\x1b[201~1~b\r"[..]));
        emulator.feed(b"\x1b[?2004h");
        assert_eq!(encode(&paste, &emulator).as_deref(), Ok(&b"\x1b[200~ab\x1b[201~\r"[..]));
    }

    #[test]
    fn a_line_is_counted_over_several_sends() {
        let fit = |line: OpenLine, bytes: &[u8]| line.fit_lines(|byte| byte == b'\n', bytes);
        let max = u32::try_from(CANONICAL).expect("small");
        assert!(fit(OpenLine(0), &[b'x'; CANONICAL]).is_ok());
        assert_eq!(fit(OpenLine(0), &[b'x'; 6000]), Err(Refusal::LineTooLong { max }));
        assert_eq!(fit(OpenLine(CANONICAL), b"x"), Err(Refusal::LineTooLong { max }));
        assert_eq!(fit(OpenLine(CANONICAL), b"\nxy"), Ok(OpenLine(2)));
        let lines = [b"x".repeat(4000), b"\n".to_vec()].concat().repeat(10);
        assert!(fit(OpenLine(0), &lines).is_ok());
    }
}
