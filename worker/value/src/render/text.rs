//! Control characters and display widths.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands for a newline inside a cell.
const NEWLINE_MARK: &str = "⏎";

/// Characters that change what is around them: controls, and those that turn the direction of writing.
fn acts(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with control characters other than newline and tab written as `\r`, `\0` or `\xHH`, and the ones that turn the
/// direction of writing as `\u{HHHH}`.
pub fn escape_controls(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| acts(c) && c != '\n' && c != '\t';
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => shown.push_str("\\r"),
            '\0' => shown.push_str("\\0"),
            c if hidden(c) && c.is_control() => shown.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// `text` on one line for a cell: newlines as a mark, tabs as a space, other control characters escaped.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(escape_controls(text).replace('\n', NEWLINE_MARK).replace('\t', " "))
}

/// Display cells of one line of text.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// `text` cut to `cells` display cells, the last one an ellipsis if something was cut.
pub(super) fn fit(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let mut end = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += width(grapheme);
        if used + 1 > cells {
            break;
        }
        end = at + grapheme.len();
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_and_newline_and_tab_kept() {
        assert_eq!(escape_controls("a\tb\nc"), "a\tb\nc");
        assert_eq!(escape_controls("\x1b[31m\r\0\x07\u{9b}"), "\\x1b[31m\\r\\0\\x07\\x9b");
        assert_eq!(one_line("a\nb\tc\x1b"), "a⏎b c\\x1b");
        assert_eq!(escape_controls("gnp.\u{202e}exe"), "gnp.\\u{202e}exe");
    }

    #[test]
    fn widths_count_display_cells() {
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(width("日本"), 4);
        assert_eq!(fit("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }
}
