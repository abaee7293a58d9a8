//! Names of sessions: they are file names of sockets, and people read them in lists.

/// Longest name in bytes.
const BYTES: usize = 64;

/// The rule of [`is_session_name`] in words, for errors.
pub const NAME_RULE: &str = "1 to 64 bytes without `/`, control or direction characters, not beginning with a dot";

/// Whether `name` can name a session: 1 to 64 bytes without `/`, control or bidirectional-format characters, not
/// beginning with a dot.
pub fn is_session_name(name: &str) -> bool {
    (1..=BYTES).contains(&name.len())
        && !name.starts_with('.')
        && !name.chars().any(|c| c == '/' || c.is_control() || is_directional(c))
}

fn is_directional(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for bad in ["", ".", ".x", "a/b", "a\nb", "a\u{202e}b", "é".repeat(33).as_str()] {
            assert!(!is_session_name(bad), "{bad:?}");
        }
        for good in ["a", "größe 1", "a.b", "n".repeat(64).as_str()] {
            assert!(is_session_name(good), "{good:?}");
        }
    }
}
