//! Bytes: held in memory, kept in the content store, or cut.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{ErrorValue, Str};

/// A sequence of bytes. Cloning shares it.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// All of them, in memory.
    Held(Arc<[u8]>),
    /// Kept by the content store; only a preview is in memory.
    Stored(Arc<Stored>),
    /// Too many were printed: the head and the tail, without the middle.
    Cut(Arc<Cut>),
}

/// Bytes kept by the content store under their hash.
#[derive(Debug)]
pub struct Stored {
    /// BLAKE3 hash, 64 lower-case hexadecimal digits.
    pub hash: Str,
    /// Length in bytes.
    pub len: u64,
    /// The first bytes.
    pub preview: Arc<[u8]>,
    /// The last bytes, behind the preview; none if they are not known.
    pub tail: Arc<[u8]>,
    /// Whether the store stopped at its limit, so that `len` is less than was printed.
    pub truncated: bool,
}

/// What was kept of bytes beyond the capture limit.
#[derive(Debug)]
pub struct Cut {
    /// The first bytes kept.
    pub head: Arc<[u8]>,
    /// The last bytes kept.
    pub tail: Arc<[u8]>,
    /// Length before cutting, in bytes.
    pub total: u64,
}

impl Stored {
    /// The line that stands for what is not in memory, without a newline.
    fn marker(&self) -> String {
        let shown = (self.preview.len() + self.tail.len()) as u64;
        format!("[... {} bytes between ...]", self.len.saturating_sub(shown))
    }
}

impl Cut {
    /// Bytes kept.
    pub fn kept(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64
    }

    /// The line that stands for the missing middle, without a newline.
    pub fn marker(&self) -> String {
        format!("[... {} bytes not kept ...]", self.total.saturating_sub(self.kept()))
    }

    /// The `too_large` error of operations that need all bytes.
    pub fn refusal(&self) -> ErrorValue {
        ErrorValue::too_large(format!("output was cut: {} of {} bytes were kept", self.kept(), self.total))
            .with_hint("`.display()` shows what was kept")
    }
}

impl Bytes {
    /// No bytes.
    pub fn empty() -> Self {
        Self::Held(Arc::from([]))
    }

    /// Length: of all bytes, or of those kept if cut.
    pub fn len(&self) -> u64 {
        match self {
            Self::Held(held) => held.len() as u64,
            Self::Stored(stored) => stored.len,
            Self::Cut(cut) => cut.kept(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if all of them are in memory.
    pub fn held(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Held(held) => Some(held),
            Self::Stored(_) | Self::Cut(_) => None,
        }
    }

    /// Bytes `start` up to `end` of those in memory, both clamped: all of them, or those kept of cut ones; none if the
    /// store has them.
    pub fn slice(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let clamp = |n: u64| usize::try_from(n.min(self.len())).unwrap_or(usize::MAX);
        let (start, end) = (clamp(start).min(clamp(end)), clamp(end));
        match self {
            Self::Held(held) => Some(held[start..end].to_vec()),
            Self::Cut(cut) => {
                Some(cut.head.iter().chain(cut.tail.iter()).skip(start).take(end - start).copied().collect())
            }
            Self::Stored(_) => None,
        }
    }

    /// `val:blake3:HASH` of stored bytes.
    pub fn stored_ref(&self) -> Option<String> {
        match self {
            Self::Stored(stored) => Some(format!("val:blake3:{}", stored.hash)),
            Self::Held(_) | Self::Cut(_) => None,
        }
    }

    /// Text for people: invalid UTF-8 replaced; of stored bytes beginning and end as far as they are in memory, of cut bytes
    /// head and tail, with a marker line between them. A character that the gap splits is left out.
    pub fn to_text_lossy(&self) -> Cow<'_, str> {
        match self {
            Self::Held(held) => String::from_utf8_lossy(held),
            Self::Stored(stored) if stored.tail.is_empty() => String::from_utf8_lossy(&stored.preview),
            Self::Stored(stored) => Cow::Owned(around(&stored.preview, &stored.marker(), &stored.tail)),
            Self::Cut(cut) => Cow::Owned(around(&cut.head, &cut.marker(), &cut.tail)),
        }
    }

    /// Whether text made of what is in memory replaces bytes that are not UTF-8.
    pub fn is_lossy(&self) -> bool {
        let bad = |bytes: &[u8]| std::str::from_utf8(bytes).is_err();
        match self {
            Self::Held(held) => bad(held),
            Self::Stored(stored) => bad(before_gap(&stored.preview)) || bad(behind_gap(&stored.tail)),
            Self::Cut(cut) => bad(before_gap(&cut.head)) || bad(behind_gap(&cut.tail)),
        }
    }
}

/// Text before and behind a gap, with a line for the gap.
fn around(head: &[u8], marker: &str, tail: &[u8]) -> String {
    let (head, tail) = (String::from_utf8_lossy(before_gap(head)), String::from_utf8_lossy(behind_gap(tail)));
    let newline = if head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{newline}{marker}\n{tail}")
}

/// Bytes without the character they end in the middle of.
fn before_gap(bytes: &[u8]) -> &[u8] {
    let from = bytes.len().saturating_sub(3);
    let last = bytes[from..].iter().rposition(|byte| !is_continuation(*byte)).map(|at| from + at);
    match last {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err_and(|e| e.error_len().is_none()) => &bytes[..at],
        Some(_) | None => bytes,
    }
}

/// Bytes without the character they begin in the middle of.
fn behind_gap(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(4).take_while(|byte| is_continuation(**byte)).count();
    // Four of them are no character's rest.
    &bytes[if rest < 4 { rest } else { 0 }..]
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Held(bytes.into())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self::Held(bytes.into())
    }
}

impl From<Arc<[u8]>> for Bytes {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::Held(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(head: &[u8], tail: &[u8]) -> Bytes {
        Bytes::Cut(Arc::new(Cut { head: head.into(), tail: tail.into(), total: 100 }))
    }

    #[test]
    fn a_gap_splits_no_character() {
        let text = "aé€😀".as_bytes();
        for at in 0..=text.len() {
            let (head, tail) = text.split_at(at);
            let bytes = cut(head, tail);
            assert!(!bytes.to_text_lossy().contains('\u{fffd}'), "{at}: {}", bytes.to_text_lossy());
            assert!(!bytes.is_lossy(), "{at}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_said_to_be() {
        let bytes = cut(b"a\xff", b"\xffb");
        assert_eq!(bytes.to_text_lossy(), "a\u{fffd}\n[... 96 bytes not kept ...]\n\u{fffd}b");
        assert!(bytes.is_lossy());
    }

    #[test]
    fn stored_bytes_show_both_ends() {
        let stored = Stored {
            hash: "".into(),
            len: 20,
            preview: (*b"head\n").into(),
            tail: (*b"tail").into(),
            truncated: false,
        };
        assert_eq!(Bytes::Stored(Arc::new(stored)).to_text_lossy(), "head\n[... 11 bytes between ...]\ntail");
    }
}
