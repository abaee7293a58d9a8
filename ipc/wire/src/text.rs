//! Bounding of text: what of a long text is sent, and how the cut is said.

use std::borrow::Cow;

use crate::limits::{PLAIN_TEXT_BYTES, STDERR_BYTES, TEXT_BYTES};

/// Room kept for the line that says what is missing.
const MARKER_BYTES: usize = 96;

/// A text as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<'t> {
    /// The text, the marker line included when it was cut.
    pub text: Cow<'t, str>,
    /// Lines of the whole text that are present, when it was cut.
    pub shown: usize,
    /// Lines that were left out; 0 when nothing was cut.
    pub left_out: usize,
}

/// Bounds `text` to 64 KiB: whole leading lines, then a line that names what is missing and where to read it.
pub fn bound<'t>(text: &'t str, uri: Option<&str>) -> Bounded<'t> {
    bound_to(text, uri, TEXT_BYTES)
}

/// [`bound`] with another limit, which leaves room for the marker.
pub fn bound_to<'t>(text: &'t str, uri: Option<&str>, limit: usize) -> Bounded<'t> {
    if text.len() <= limit {
        return Bounded { text: Cow::Borrowed(text), shown: 0, left_out: 0 };
    }
    let budget = limit.saturating_sub(MARKER_BYTES);
    let head = whole_lines(text, budget);
    let rest = text.get(head.len()..).unwrap_or_default();
    let left_out = rest.lines().count();
    let mut out = String::with_capacity(limit);
    out.push_str(head);
    if !head.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&marker(left_out, uri));
    Bounded { shown: head.lines().count(), text: Cow::Owned(out), left_out }
}

/// The line that says how many lines are missing and where they are.
pub fn marker(lines: usize, uri: Option<&str>) -> String {
    format!("…({lines} more lines, fetch via {})", uri.unwrap_or("ref"))
}

/// The leading lines that fit `budget`; a first line that alone is longer is cut at a character boundary.
fn whole_lines(text: &str, budget: usize) -> &str {
    let within = cut(text, budget);
    match within.rfind('\n') {
        Some(end) => within.get(..=end).unwrap_or(within),
        None => within,
    }
}

/// The longest beginning of `text` of at most `bytes` bytes that ends between characters.
pub fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// The longest end of `text` of at most `bytes` bytes that begins between characters.
pub fn cut_front(text: &str, bytes: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes))..).unwrap_or(text)
}

/// A message, command or directory: 4 KiB, then `…`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.len() <= PLAIN_TEXT_BYTES {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", cut(text, PLAIN_TEXT_BYTES)))
}

/// Standard error of an outcome: above 8,192 bytes its first and last 4,096 remain, with a line between that says how
/// many lines are missing and where the whole is.
pub fn stderr<'t>(text: &'t str, uri: &str) -> Cow<'t, str> {
    let half = STDERR_BYTES.saturating_div(2);
    ends(text, half, half, uri)
}

/// Text of at most `first + last` bytes as it is; of longer text so many bytes of its beginning and of its end, with a line
/// between that says how many lines are missing and where the whole is.
pub fn ends<'t>(text: &'t str, first: usize, last: usize, uri: &str) -> Cow<'t, str> {
    if text.len() <= first.saturating_add(last) {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (cut(text, first), cut_front(text, last));
    let between = text.get(head.len()..text.len().saturating_sub(tail.len())).unwrap_or_default();
    let lines = between.lines().count();
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    Cow::Owned(format!("{head}{gap}…({lines} more lines, fetch via {uri})\n{tail}"))
}

/// `text` without terminal escapes: control sequences, operating system commands and single escapes.
pub fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {},
            Some(']' | 'P' | 'X' | '^' | '_') => {
                while chars.next_if(|c| *c != '\u{7}' && *c != '\u{1b}').is_some() {}
                if chars.next() == Some('\u{1b}') {
                    chars.next_if_eq(&'\\');
                }
                continue;
            }
            Some(' '..='/') => while chars.next_if(|c| (' '..='/').contains(c)).is_some() {},
            _ => continue,
        }
        chars.next();
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_text_is_untouched() {
        let text = "a".repeat(TEXT_BYTES);
        assert_eq!(bound(&text, None), Bounded { text: Cow::Borrowed(text.as_str()), shown: 0, left_out: 0 });
    }

    #[test]
    fn long_text_keeps_whole_lines_and_says_the_rest() {
        let text = "0123456789\n".repeat(10_000);
        let bounded = bound(&text, Some("shoal://out/3"));
        assert!(bounded.text.len() <= TEXT_BYTES);
        assert_eq!(bounded.shown + bounded.left_out, 10_000);
        let last = format!("…({} more lines, fetch via shoal://out/3)", bounded.left_out);
        assert_eq!(bounded.text.lines().last(), Some(last.as_str()));
        let one = "é".repeat(TEXT_BYTES);
        assert!(bound(&one, None).text.ends_with("…(1 more lines, fetch via ref)"));
    }

    #[test]
    fn stderr_keeps_both_ends() {
        let text = format!("first\n{}last", "x\n".repeat(9000));
        let bounded = stderr(&text, "shoal://out/2?path=stderr");
        assert!(bounded.starts_with("first\n") && bounded.ends_with("last"), "{bounded}");
        assert!(bounded.contains(" more lines, fetch via shoal://out/2?path=stderr)\n"));
        assert!(bounded.len() < STDERR_BYTES + 80);
    }

    #[test]
    fn escapes_are_removed() {
        assert_eq!(without_escapes("\u{1b}[1;31mred\u{1b}[0m"), "red");
        assert_eq!(without_escapes("\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b\u{1b}(Bc\u{1b}7d"), "abcd");
        assert_eq!(without_escapes("plain"), "plain");
    }

    proptest! {
        #[test]
        fn bounded_text_is_bounded(text in "(.{0,30}\n){0,60}", limit in 128usize..600) {
            let bounded = bound_to(&text, Some("shoal://out/1"), limit);
            prop_assert!(bounded.text.len() <= limit.max(text.len().min(limit)));
            prop_assert_eq!(bounded.left_out == 0, text.len() <= limit);
            if bounded.left_out == 0 {
                prop_assert_eq!(bounded.text.as_ref(), text.as_str());
            }
        }

        #[test]
        fn no_escape_survives(text in "[\u{1b}\\[\\]a-z0-9;\u{7}\\\\ (]{0,40}") {
            let escapes = without_escapes(&text).matches('\u{1b}').count();
            prop_assert_eq!(escapes, 0);
        }
    }
}
