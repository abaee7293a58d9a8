//! Text of programs and agents for a person's terminal: control and bidirectional characters become visible escapes.

/// Whether a character could steer a terminal or reorder what is read.
fn is_unsafe_to_show(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// One line: line breaks are escaped too.
pub(crate) fn line(text: &str) -> String {
    escape(text, &[])
}

/// Several lines: line breaks and tabs stay.
pub(crate) fn block(text: &str) -> String {
    escape(text, &['\n', '\t'])
}

/// A JSON document: what could steer a terminal stands in strings only, where an escape is the same text.
pub(crate) fn json(document: &str) -> String {
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if is_unsafe_to_show(c) && c != '\n' {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

fn escape(text: &str, kept: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe_to_show(c) && !kept.contains(&c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_stays_the_same_document() {
        let value = serde_json::json!({"a\u{202e}": ["\u{9b}\u{7f}\u{feff}", "\u{1b}"]});
        let safe = json(&format!("{value:#}"));
        assert!(!safe.chars().any(|c| is_unsafe_to_show(c) && c != '\n'), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).expect("JSON"), value);
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(line("a\x1b[31m\nb\u{202E}c"), "a\\u{1b}[31m\\nb\\u{202e}c");
        assert_eq!(block("a\n\tb\x07"), "a\n\tb\\u{7}");
        assert_eq!(line("größe 漢字"), "größe 漢字");
    }
}
