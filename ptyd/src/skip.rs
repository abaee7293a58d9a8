//! The fast path of a flood: text whose beginning nobody will ever see.
//!
//! In plain ASCII lines without margins every line feed moves the screen on, so after as many lines as screen and
//! scrollback hold nothing of what was before them is left. Only those last lines are fed to the emulator. The result
//! is the same by the oracle test below.

/// A terminal grows by at most this many rows.
const MAX_GROWTH: usize = 1000;

/// Lines that hide everything before them: the screen, its scrollback and the most rows a later growth can pull back;
/// and once more the screen, because the first of them may be written over rows that show something.
pub(crate) fn lines_kept(rows: u16, scrollback: usize) -> usize {
    scrollback.max(MAX_GROWTH).saturating_add(usize::from(rows).saturating_mul(2))
}

/// The end of `text` that decides what the screen shows after it, or `None` when all of it has to be fed.
///
/// `lines` is [`lines_kept`]; the emulator must be in its ground state and its scroll region the whole screen.
pub(crate) fn decisive(text: &[u8], lines: usize) -> Option<&[u8]> {
    // A line has at least its CR and LF.
    if text.len() <= lines.saturating_mul(2) {
        return None;
    }
    let feed = memchr::memrchr_iter(b'\n', text).nth(lines)?;
    let (before, end) = text.split_at_checked(feed.checked_add(1)?)?;
    let starts_fresh = before.ends_with(b"\r\n");
    // A later "repeat the last character" needs one in the part that is fed.
    let has_glyph = end.iter().any(|byte| *byte > b' ');
    (starts_fresh && has_glyph && text.iter().all(|byte| is_plain(*byte))).then_some(end)
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_left() {
        let text = b"a\r\n".repeat(100);
        assert_eq!(decisive(&text, 10), Some(&b"a\r\n".repeat(10)[..]));
        assert_eq!(decisive(&text, 100), None);
    }

    #[test]
    fn anything_but_plain_lines_is_fed() {
        for odd in [&b"\t"[..], b"\x08", "\u{e9}".as_bytes(), b"\x1b[1m"] {
            let text = [&b"a\r\n".repeat(50), odd, &b"a\r\n".repeat(50)].concat();
            assert_eq!(decisive(&text, 10), None, "{odd:?}");
        }
        assert_eq!(decisive(&b"a\n".repeat(100), 10), None, "the column is carried over");
        assert_eq!(decisive(&b"\r\n".repeat(100), 10), None, "no glyph to repeat");
    }
}
