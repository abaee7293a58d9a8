//! Named keys to bytes, by the modes the program has switched on.

/// The modes of a terminal that decide how input is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Cursor keys send `ESC O` (DECCKM).
    pub(crate) application_cursor: bool,
    /// Pasted text is wrapped in markers.
    pub(crate) bracketed_paste: bool,
    /// Keys that the old encoding cannot tell apart are sent as `CSI code ; modifiers u`.
    pub(crate) disambiguate: bool,
}

/// Modifiers of the kitty encoding: 1 + shift (1) + control (4).
const SHIFT: u8 = 2;
const CONTROL: u8 = 5;

/// The bytes of a named key, case-insensitive; `None` for a name nobody knows.
pub(crate) fn encode(name: &str, modes: Modes) -> Option<Vec<u8>> {
    let name = name.to_ascii_lowercase();
    if let Some(with) = name.strip_prefix("ctrl-").or_else(|| name.strip_prefix("c-")) {
        return control(with, modes);
    }
    named(&name, modes)
}

fn named(name: &str, modes: Modes) -> Option<Vec<u8>> {
    let bytes: &[u8] = match name {
        "enter" | "return" | "cr" => b"\r",
        "newline" | "lf" => b"\n",
        "tab" => b"\t",
        "backtab" | "shift-tab" if modes.disambiguate => return Some(unambiguous(b'\t', SHIFT)),
        "backtab" | "shift-tab" => b"\x1b[Z",
        "escape" | "esc" if modes.disambiguate => b"\x1b[27u",
        "escape" | "esc" => b"\x1b",
        "space" => b" ",
        "backspace" | "bs" => b"\x7f",
        "delete" | "del" => b"\x1b[3~",
        "insert" | "ins" => b"\x1b[2~",
        "pageup" | "pgup" => b"\x1b[5~",
        "pagedown" | "pgdn" => b"\x1b[6~",
        "up" => return Some(cursor(b'A', modes)),
        "down" => return Some(cursor(b'B', modes)),
        "right" => return Some(cursor(b'C', modes)),
        "left" => return Some(cursor(b'D', modes)),
        "home" => return Some(cursor(b'H', modes)),
        "end" => return Some(cursor(b'F', modes)),
        _ => return function(name, modes),
    };
    Some(bytes.to_vec())
}

fn cursor(last: u8, modes: Modes) -> Vec<u8> {
    let application = modes.application_cursor && !modes.disambiguate;
    vec![0x1b, if application { b'O' } else { b'[' }, last]
}

fn function(name: &str, modes: Modes) -> Option<Vec<u8>> {
    let number: u8 = name.strip_prefix('f')?.parse().ok()?;
    let introducer = if modes.disambiguate { '[' } else { 'O' };
    let text = match number {
        1 => format!("\x1b{introducer}P"),
        2 => format!("\x1b{introducer}Q"),
        // `CSI R` would be a cursor report.
        3 if modes.disambiguate => "\x1b[13~".to_owned(),
        3 => "\x1bOR".to_owned(),
        4 => format!("\x1b{introducer}S"),
        5 => "\x1b[15~".to_owned(),
        6..=8 => format!("\x1b[{}~", number.saturating_add(11)),
        9..=10 => format!("\x1b[{}~", number.saturating_add(11)),
        11..=12 => format!("\x1b[{}~", number.saturating_add(12)),
        _ => return None,
    };
    Some(text.into_bytes())
}

fn control(with: &str, modes: Modes) -> Option<Vec<u8>> {
    let key = match with {
        "space" => b' ',
        _ => *with.as_bytes().first().filter(|_| with.len() == 1)?,
    };
    let byte = match key {
        b' ' | b'@' => 0x00,
        b'a'..=b'z' => key & 0x1f,
        b'[' => 0x1b,
        b'\\' => 0x1c,
        b']' => 0x1d,
        b'^' => 0x1e,
        b'_' => 0x1f,
        b'?' => 0x7f,
        _ => return None,
    };
    Some(if modes.disambiguate { unambiguous(key, CONTROL) } else { vec![byte] })
}

fn unambiguous(code: u8, modifiers: u8) -> Vec<u8> {
    format!("\x1b[{code};{modifiers}u").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Modes = Modes { application_cursor: false, bracketed_paste: false, disambiguate: false };
    const APPLICATION: Modes = Modes { application_cursor: true, ..PLAIN };
    const KITTY: Modes = Modes { disambiguate: true, ..PLAIN };

    #[test]
    fn every_name_has_its_bytes() {
        let table: &[(&str, &[u8])] = &[
            ("Enter Return CR", b"\r"),
            ("Newline LF", b"\n"),
            ("Tab", b"\t"),
            ("BackTab Shift-Tab", b"\x1b[Z"),
            ("Escape Esc Ctrl-[", b"\x1b"),
            ("Space", b" "),
            ("Backspace BS Ctrl-?", b"\x7f"),
            ("Delete Del", b"\x1b[3~"),
            ("Insert Ins", b"\x1b[2~"),
            ("Up", b"\x1b[A"),
            ("DOWN", b"\x1b[B"),
            ("right", b"\x1b[C"),
            ("Left", b"\x1b[D"),
            ("Home", b"\x1b[H"),
            ("End", b"\x1b[F"),
            ("PageUp PgUp", b"\x1b[5~"),
            ("PageDown PgDn", b"\x1b[6~"),
            ("F1", b"\x1bOP"),
            ("F2", b"\x1bOQ"),
            ("F3", b"\x1bOR"),
            ("F4", b"\x1bOS"),
            ("F5", b"\x1b[15~"),
            ("F6", b"\x1b[17~"),
            ("F7", b"\x1b[18~"),
            ("F8", b"\x1b[19~"),
            ("F9", b"\x1b[20~"),
            ("F10", b"\x1b[21~"),
            ("F11", b"\x1b[23~"),
            ("F12", b"\x1b[24~"),
            ("Ctrl-a C-A", b"\x01"),
            ("Ctrl-z", b"\x1a"),
            ("Ctrl-Space Ctrl-@", b"\x00"),
            ("Ctrl-\\", b"\x1c"),
            ("Ctrl-]", b"\x1d"),
            ("Ctrl-^", b"\x1e"),
            ("Ctrl-_", b"\x1f"),
        ];
        for (names, bytes) in table {
            for name in names.split(' ') {
                assert_eq!(encode(name, PLAIN).as_deref(), Some(*bytes), "{name}");
            }
        }
    }

    #[test]
    fn unknown_names_are_none() {
        for name in ["", "F0", "F13", "f", "Ctrl-", "Ctrl-ab", "Ctrl-1", "Hyper-x", "Entr", "Ctrl-\u{e9}"] {
            assert_eq!(encode(name, PLAIN), None, "{name}");
        }
    }

    #[test]
    fn application_mode_changes_cursor_keys_alone() {
        assert_eq!(encode("Up", APPLICATION).as_deref(), Some(&b"\x1bOA"[..]));
        assert_eq!(encode("End", APPLICATION).as_deref(), Some(&b"\x1bOF"[..]));
        assert_eq!(encode("Delete", APPLICATION).as_deref(), Some(&b"\x1b[3~"[..]));
    }

    #[test]
    fn disambiguated_keys_say_what_was_pressed() {
        let table: &[(&str, &[u8])] = &[
            ("Escape", b"\x1b[27u"),
            ("Ctrl-c", b"\x1b[99;5u"),
            ("Ctrl-Space", b"\x1b[32;5u"),
            ("Shift-Tab", b"\x1b[9;2u"),
            ("Enter", b"\r"),
            ("Tab", b"\t"),
            ("Up", b"\x1b[A"),
            ("F1", b"\x1b[P"),
            ("F3", b"\x1b[13~"),
        ];
        for (name, bytes) in table {
            assert_eq!(encode(name, KITTY).as_deref(), Some(*bytes), "{name}");
        }
    }
}
