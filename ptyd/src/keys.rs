//! Named keys and the bytes they send in the modes in force.

use crate::kitty::{ALL_KEYS, DISAMBIGUATE};

/// The modes that change what keys send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    /// Application cursor keys (`CSI ? 1 h`).
    pub(crate) application_cursor: bool,
    /// Flags of the kitty keyboard protocol.
    pub(crate) kitty: u8,
}

/// The bytes of a named key, any case; `None` for a name nobody knows.
pub(crate) fn bytes(name: &str, modes: Modes) -> Option<Vec<u8>> {
    let name = name.to_lowercase();
    if let Some(code) = kitty_code(&name, modes) {
        return Some(code.into_bytes());
    }
    if let Some((_, fixed)) = FIXED.iter().find(|(names, _)| names.contains(&name.as_str())) {
        return Some(fixed.as_bytes().to_vec());
    }
    if let Some((_, last)) = CURSOR.iter().find(|(names, _)| names.contains(&name.as_str())) {
        let introducer = if modes.application_cursor { "\x1bO" } else { "\x1b[" };
        return Some(format!("{introducer}{last}").into_bytes());
    }
    control(&name).map(|byte| vec![byte])
}

/// Keys that send the same in every mode.
const FIXED: &[(&[&str], &str)] = &[
    (&["enter", "return", "cr"], "\r"),
    (&["newline", "lf"], "\n"),
    (&["tab"], "\t"),
    (&["backtab", "shift-tab"], "\x1b[Z"),
    (&["escape", "esc"], "\x1b"),
    (&["space"], " "),
    (&["backspace", "bs"], "\x7f"),
    (&["delete", "del"], "\x1b[3~"),
    (&["insert", "ins"], "\x1b[2~"),
    (&["pageup", "pgup"], "\x1b[5~"),
    (&["pagedown", "pgdn"], "\x1b[6~"),
    (&["f1"], "\x1bOP"),
    (&["f2"], "\x1bOQ"),
    (&["f3"], "\x1bOR"),
    (&["f4"], "\x1bOS"),
    (&["f5"], "\x1b[15~"),
    (&["f6"], "\x1b[17~"),
    (&["f7"], "\x1b[18~"),
    (&["f8"], "\x1b[19~"),
    (&["f9"], "\x1b[20~"),
    (&["f10"], "\x1b[21~"),
    (&["f11"], "\x1b[23~"),
    (&["f12"], "\x1b[24~"),
];

/// Keys that follow the application cursor mode.
const CURSOR: &[(&[&str], char)] =
    &[(&["up"], 'A'), (&["down"], 'B'), (&["right"], 'C'), (&["left"], 'D'), (&["home"], 'H'), (&["end"], 'F')];

/// `ctrl-x` and `c-x`: the control byte.
fn control(name: &str) -> Option<u8> {
    match name.strip_prefix("ctrl-").or_else(|| name.strip_prefix("c-"))? {
        "space" | "@" => Some(0x00),
        "[" => Some(0x1b),
        "\\" => Some(0x1c),
        "]" => Some(0x1d),
        "^" => Some(0x1e),
        "_" => Some(0x1f),
        "?" => Some(0x7f),
        letter => match letter.as_bytes() {
            [byte @ b'a'..=b'z'] => Some(byte & 0x1f),
            _ => None,
        },
    }
}

/// The escape code of a key under the kitty protocol, where that differs.
fn kitty_code(name: &str, modes: Modes) -> Option<String> {
    if modes.kitty & (DISAMBIGUATE | ALL_KEYS) == 0 {
        return None;
    }
    let plain = match name {
        "escape" | "esc" => Some(27),
        "enter" | "return" | "cr" if modes.kitty & ALL_KEYS != 0 => Some(13),
        "tab" if modes.kitty & ALL_KEYS != 0 => Some(9),
        "backspace" | "bs" if modes.kitty & ALL_KEYS != 0 => Some(127),
        "space" if modes.kitty & ALL_KEYS != 0 => Some(32),
        _ => None,
    };
    if let Some(code) = plain {
        return Some(format!("\x1b[{code}u"));
    }
    if matches!(name, "backtab" | "shift-tab") {
        return Some("\x1b[9;2u".to_owned());
    }
    let key = name.strip_prefix("ctrl-").or_else(|| name.strip_prefix("c-"))?;
    let code = if key == "space" { 32 } else { u32::from(single(key)?) };
    Some(format!("\x1b[{code};5u"))
}

fn single(key: &str) -> Option<char> {
    let mut chars = key.chars();
    chars.next().filter(|_| chars.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(name: &str) -> Option<Vec<u8>> {
        bytes(name, Modes::default())
    }

    #[test]
    fn names_in_any_case() {
        for (name, expected) in [
            ("Enter", "\r"),
            ("LF", "\n"),
            ("Shift-Tab", "\x1b[Z"),
            ("PgUp", "\x1b[5~"),
            ("f12", "\x1b[24~"),
            ("Ctrl-C", "\x03"),
            ("C-a", "\x01"),
            ("ctrl-?", "\x7f"),
            ("Ctrl-Space", "\0"),
            ("Home", "\x1b[H"),
        ] {
            assert_eq!(plain(name).as_deref(), Some(expected.as_bytes()), "{name}");
        }
        for name in ["Ctrl-1", "Ctrl-", "F13", "", "Hyper"] {
            assert_eq!(plain(name), None, "{name}");
        }
    }

    #[test]
    fn cursor_keys_follow_the_mode() {
        let modes = Modes { application_cursor: true, kitty: 0 };
        assert_eq!(bytes("Up", modes).as_deref(), Some(&b"\x1bOA"[..]));
        assert_eq!(plain("Up").as_deref(), Some(&b"\x1b[A"[..]));
        assert_eq!(bytes("PageDown", modes).as_deref(), Some(&b"\x1b[6~"[..]));
    }

    #[test]
    fn kitty_flags_disambiguate() {
        let modes = Modes { application_cursor: false, kitty: DISAMBIGUATE };
        assert_eq!(bytes("Esc", modes).as_deref(), Some(&b"\x1b[27u"[..]));
        assert_eq!(bytes("Ctrl-C", modes).as_deref(), Some(&b"\x1b[99;5u"[..]));
        assert_eq!(bytes("Enter", modes).as_deref(), Some(&b"\r"[..]));
        let all = Modes { kitty: DISAMBIGUATE | ALL_KEYS, ..modes };
        assert_eq!(bytes("Enter", all).as_deref(), Some(&b"\x1b[13u"[..]));
        assert_eq!(bytes("Up", all).as_deref(), Some(&b"\x1b[A"[..]));
    }
}
