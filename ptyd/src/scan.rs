//! Cuts output at escape sequences.
//!
//! A step of the emulator is a run of text or one sequence, so the clock can be looked at between sequences, and whoever
//! feeds the emulator knows before each run of text that the emulator is in its ground state. The states are
//! those of the common parser of DEC terminals, without the content of the sequences.

/// A sequence longer than this (a string of an operating-system command) is fed in parts.
const MAX_SEQUENCE: usize = 4 * 1024;

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;

/// What a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text and control characters outside of any sequence.
    Text,
    /// A sequence or a part of one.
    Sequence,
    /// A sequence that set margins (`CSI r`): `true` when it took them back.
    Margins(bool),
    /// The whole terminal was reset (`ESC c`).
    Reset,
}

/// The next bytes to feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// How many; 0 only for no input.
    pub(crate) len: usize,
    pub(crate) kind: Kind,
}

/// Where the emulator's parser stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and intermediates.
    Intermediate,
    /// After `CSI`; `bare` while it has no parameter.
    Csi { bare: bool },
    /// A string that BEL ends as well.
    Osc,
    /// A string that only ESC or a cancel ends.
    Opaque,
}

/// Follows the output of one terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scanner {
    state: State,
}

impl Scanner {
    /// The next step of `bytes`.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Step {
        if self.state == State::Ground {
            match memchr::memchr(ESC, bytes) {
                Some(0) => {}
                Some(len) => return Step { len, kind: Kind::Text },
                None => return Step { len: bytes.len(), kind: Kind::Text },
            }
        }
        self.sequence(bytes)
    }

    /// Whether these bytes are nothing but text to the emulator.
    pub(crate) fn is_text(&self, bytes: &[u8]) -> bool {
        self.state == State::Ground && memchr::memchr(ESC, bytes).is_none()
    }

    fn sequence(&mut self, bytes: &[u8]) -> Step {
        let mut len = 0_usize;
        for &byte in bytes.iter().take(MAX_SEQUENCE) {
            len = len.saturating_add(1);
            let ended = self.advance(byte);
            if self.state == State::Ground {
                return Step { len, kind: ended };
            }
        }
        Step { len, kind: Kind::Sequence }
    }

    /// Moves by one byte; what ended when the state is ground again.
    fn advance(&mut self, byte: u8) -> Kind {
        let (state, kind) = match (self.state, byte) {
            (_, ESC) => (State::Escape, Kind::Sequence),
            (_, CANCEL | SUBSTITUTE) | (State::Osc, BEL) => (State::Ground, Kind::Sequence),
            (State::Escape, b'[') => (State::Csi { bare: true }, Kind::Sequence),
            (State::Escape, b']') => (State::Osc, Kind::Sequence),
            (State::Escape, b'P' | b'X' | b'^' | b'_') => (State::Opaque, Kind::Sequence),
            (State::Escape, b'c') => (State::Ground, Kind::Reset),
            (State::Escape | State::Intermediate, 0x20..=0x2f) => (State::Intermediate, Kind::Sequence),
            (State::Escape | State::Intermediate, 0x30..=0x7e) => (State::Ground, Kind::Sequence),
            (State::Csi { bare }, b'r') => (State::Ground, Kind::Margins(bare)),
            (State::Csi { .. }, 0x40..=0x7e) => (State::Ground, Kind::Sequence),
            (State::Csi { .. }, 0x20..=0x3f) => (State::Csi { bare: false }, Kind::Sequence),
            // Control characters inside a sequence are executed and do not end it; a string swallows everything.
            (state, _) => (state, Kind::Sequence),
        };
        self.state = state;
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(chunks: &[&[u8]]) -> Vec<(Vec<u8>, Kind)> {
        let mut scanner = Scanner::default();
        let mut steps = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            while !rest.is_empty() {
                let step = scanner.step(rest);
                steps.push((rest[..step.len].to_vec(), step.kind));
                rest = &rest[step.len..];
            }
        }
        steps
    }

    fn kinds(bytes: &[u8]) -> Vec<Kind> {
        steps(&[bytes]).into_iter().map(|(_, kind)| kind).collect()
    }

    #[test]
    fn text_and_sequences_alternate() {
        let got = steps(&[b"a\r\n\x1b[31mred\x1b]0;title\x07end"]);
        let parts: Vec<&[u8]> = got.iter().map(|(bytes, _)| bytes.as_slice()).collect();
        assert_eq!(parts, [&b"a\r\n"[..], b"\x1b[31m", b"red", b"\x1b]0;title\x07", b"end"]);
        assert_eq!(got[0].1, Kind::Text);
        assert_eq!(got[1].1, Kind::Sequence);
    }

    #[test]
    fn a_sequence_goes_on_in_the_next_chunk() {
        let got = steps(&[b"\x1b[3", b"1mred"]);
        assert_eq!(got.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(), [Kind::Sequence, Kind::Sequence, Kind::Text]);
        assert_eq!(got[1].0, b"1m");
    }

    #[test]
    fn what_matters_to_others_is_told() {
        assert_eq!(kinds(b"\x1b[r"), [Kind::Margins(true)]);
        assert_eq!(kinds(b"\x1b[2;9r"), [Kind::Margins(false)]);
        assert_eq!(kinds(b"\x1b[?6r"), [Kind::Margins(false)]);
        assert_eq!(kinds(b"\x1bc"), [Kind::Reset]);
        assert_eq!(kinds(b"\x1b(c"), [Kind::Sequence]);
    }

    #[test]
    fn text_is_told_from_the_middle_of_a_sequence() {
        let mut scanner = Scanner::default();
        assert!(scanner.is_text(b"1m\r\n") && !scanner.is_text(b"a\x1b"));
        scanner.step(b"\x1b[3");
        assert!(!scanner.is_text(b"1m"));
    }

    #[test]
    fn strings_end_where_the_emulator_ends_them() {
        assert_eq!(kinds(b"\x1bPa\x07b\x1b\\x"), [Kind::Sequence, Kind::Text]);
        assert_eq!(kinds(b"\x1b]52;c;?\x18x"), [Kind::Sequence, Kind::Text]);
        assert_eq!(kinds(b"\x1b[3\x1b[r"), [Kind::Margins(true)]);
    }

    #[test]
    fn long_sequences_are_fed_in_parts() {
        let mut string = b"\x1b]0;".to_vec();
        string.resize(3 * MAX_SEQUENCE, b'x');
        assert_eq!(steps(&[&string]).len(), 3);
    }
}
