//! Parts of text: what of it fits, its first and its last lines.

use shoal_wire::limits::TEXT_BYTES;

/// Room kept for the line that says what was left out.
const MARK_ROOM: usize = 96;

/// Length of the whole leading lines that fit; of a first line that is too long, as many characters as fit.
pub(super) fn whole_lines(text: &str) -> usize {
    let budget = TEXT_BYTES - MARK_ROOM;
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
    use super::*;

    #[test]
    fn heads_and_tails() {
        assert_eq!(head_lines("a\nb\nc", 2), "a\nb");
        assert_eq!(head_lines("a\n", 2), "a");
        assert_eq!(tail_lines("a\nb\nc\n", 2, 100), "b\nc");
        assert_eq!(tail_lines("aaaa\nbb\ncc", 10, 6), "bb\ncc");
        assert_eq!(tail_lines("aaaa\nbbbb\ncc", 10, 5), "cc");
        assert_eq!(tail_lines("aaaaaa", 10, 3), "aaa");
    }
}
