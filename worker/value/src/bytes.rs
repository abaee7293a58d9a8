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

    /// Text for people: invalid UTF-8 replaced; of stored bytes the preview; of cut bytes head, marker line, tail.
    pub fn to_text_lossy(&self) -> Cow<'_, str> {
        match self {
            Self::Held(held) => String::from_utf8_lossy(held),
            Self::Stored(stored) => String::from_utf8_lossy(&stored.preview),
            Self::Cut(cut) => {
                let (head, tail) = (String::from_utf8_lossy(&cut.head), String::from_utf8_lossy(&cut.tail));
                let gap = if head.ends_with('\n') { "" } else { "\n" };
                Cow::Owned(format!("{head}{gap}{}\n{tail}", cut.marker()))
            }
        }
    }

    /// Whether text made of what is in memory replaces bytes that are not UTF-8.
    pub fn is_lossy(&self) -> bool {
        let bad = |bytes: &[u8]| std::str::from_utf8(bytes).is_err();
        match self {
            Self::Held(held) => bad(held),
            Self::Stored(stored) => std::str::from_utf8(&stored.preview).is_err_and(|e| e.error_len().is_some()),
            Self::Cut(cut) => bad(&cut.head) || bad(&cut.tail),
        }
    }
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
