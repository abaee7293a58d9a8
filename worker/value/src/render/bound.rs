//! Bounds of text that leaves the kernel.

use std::borrow::Cow;

/// Bytes of text that are left unchanged.
pub const MAX_RENDER: usize = 65_536;

/// Room kept for the line that says what was left out.
const MARK_ROOM: usize = 96;

/// `text` if it is at most [`MAX_RENDER`] bytes. Else its whole leading lines and a line that counts the lines left out
/// and names `uri`, where they can be read.
pub fn bound_text<'a>(text: &'a str, uri: Option<&str>) -> Cow<'a, str> {
    if text.len() <= MAX_RENDER {
        return Cow::Borrowed(text);
    }
    let kept = whole_lines(text);
    let left_out = line_count(&text[kept..]);
    Cow::Owned(format!("{}{}", &text[..kept], more_lines(&text[..kept], left_out, uri)))
}

/// Length of the whole leading lines that fit; of a first line that is too long, as many characters as fit.
pub(super) fn whole_lines(text: &str) -> usize {
    let budget = MAX_RENDER - MARK_ROOM;
    let room = text.floor_char_boundary(budget);
    match text[..room].rfind('\n') {
        Some(at) => at + 1,
        None => room,
    }
}

/// Lines of text, an unfinished last one included.
pub(super) fn line_count(text: &str) -> u64 {
    let breaks = text.bytes().filter(|b| *b == b'\n').count() as u64;
    breaks + u64::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The closing line, on a line of its own. Longer URIs than fit are replaced by `ref`.
pub(super) fn more_lines(kept: &str, left_out: u64, uri: Option<&str>) -> String {
    let gap = if kept.is_empty() || kept.ends_with('\n') { "" } else { "\n" };
    let line = format!("{gap}…({left_out} more lines, fetch via {})", uri.unwrap_or("ref"));
    if line.len() <= MARK_ROOM { line } else { format!("{gap}…({left_out} more lines, fetch via ref)") }
}

/// The first `lines` lines of `text`, without the last newline.
pub fn head_lines(text: &str, lines: usize) -> &str {
    let end = text.match_indices('\n').nth(lines.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    head.strip_suffix('\n').unwrap_or(head)
}

/// The last `lines` lines of `text` and at most `bytes` of it, whole lines if possible.
pub fn tail_lines(text: &str, lines: usize, bytes: usize) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let by_lines = text.rmatch_indices('\n').nth(lines.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    let by_bytes = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    if by_lines >= by_bytes {
        return &text[by_lines..];
    }
    // Prefer to start after a newline, unless that leaves nothing.
    match text[by_bytes..].find('\n') {
        Some(at) if !text[..by_bytes].ends_with('\n') => &text[by_bytes + at + 1..],
        _ => &text[by_bytes..],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_text_keeps_whole_lines_and_counts_the_rest() {
        let text = "line\n".repeat(60_000);
        let bounded = bound_text(&text, Some("shoal://out/7"));
        assert!(bounded.len() <= MAX_RENDER);
        let kept = bounded.lines().count() - 1;
        let last = format!("…({} more lines, fetch via shoal://out/7)", 60_000 - kept);
        assert_eq!(bounded.lines().last(), Some(&*last));
    }

    #[test]
    fn a_long_first_line_is_cut_by_bytes() {
        let bounded = bound_text(&"é".repeat(40_000), None).into_owned();
        assert!(bounded.len() <= MAX_RENDER && bounded.ends_with("é\n…(1 more lines, fetch via ref)"));
    }

    #[test]
    fn heads_and_tails() {
        assert_eq!(head_lines("a\nb\nc", 2), "a\nb");
        assert_eq!(head_lines("a\n", 2), "a");
        assert_eq!(tail_lines("a\nb\nc\n", 2, 100), "b\nc");
        assert_eq!(tail_lines("aaaa\nbb\ncc", 10, 6), "bb\ncc");
        assert_eq!(tail_lines("aaaa\nbbbb\ncc", 10, 5), "cc");
        assert_eq!(tail_lines("aaaaaa", 10, 3), "aaa");
    }

    proptest! {
        #[test]
        fn bounded_text_is_a_prefix_within_its_budget(line in "[a-zé]{0,300}", count in 1usize..2_000) {
            let text = format!("{line}\n").repeat(count);
            let bounded = bound_text(&text, Some("shoal://out/1"));
            prop_assert!(bounded.len() <= MAX_RENDER);
            if text.len() > MAX_RENDER {
                let kept = bounded.rfind('…').unwrap_or(0);
                prop_assert!(text.starts_with(&bounded[..kept]));
            } else {
                prop_assert_eq!(&*bounded, &*text);
            }
        }
    }
}
