//! What is kept of a stream a program prints.

use std::collections::VecDeque;
use std::sync::Arc;

use shoal_value::bytes::{Cut, Stored};
use shoal_value::{Bytes, Str};

/// Bytes of each end that stay in memory of a stream that is stored.
const SHOWN: usize = 8 * 1024;

/// Bytes of one stream: all of them up to a limit; beyond it the first quarter and the last three quarters of the limit.
#[derive(Debug)]
pub(crate) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    seen: u64,
    limit: usize,
}

impl Kept {
    /// Nothing yet, of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), seen: 0, limit }
    }

    /// Takes more bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        let mut bytes = bytes;
        if self.tail.is_empty() {
            let room = self.limit.saturating_sub(self.head.len()).min(bytes.len());
            let (fits, rest) = bytes.split_at(room);
            self.head.extend_from_slice(fits);
            if rest.is_empty() {
                return;
            }
            self.split();
            bytes = rest;
        }
        let keep = self.limit - self.limit / 4;
        let fresh = &bytes[bytes.len().saturating_sub(keep)..];
        let surplus = (self.tail.len() + fresh.len()).saturating_sub(keep);
        self.tail.drain(..surplus);
        self.tail.extend(fresh);
    }

    /// What is full so far becomes the kept head and the first part of the tail.
    fn split(&mut self) {
        let tail = self.head.split_off((self.limit / 4).min(self.head.len()));
        self.tail = tail.into();
    }

    /// Everything so far, while all of it is there.
    pub(crate) fn all(&self) -> &[u8] {
        &self.head
    }

    /// Whether `more` bytes would not fit beside what is kept.
    pub(crate) fn overflows(&self, more: usize) -> bool {
        self.tail.is_empty() && self.head.len().saturating_add(more) > self.limit
    }

    /// The bytes as a value, when the content store has them under this hash: both ends stay here.
    pub(crate) fn into_stored(self, hash: Str, kept: u64) -> Bytes {
        let (first, last) = (self.head.len().min(SHOWN), self.tail.len().min(SHOWN));
        let tail: Arc<[u8]> = self.tail.range(self.tail.len() - last..).copied().collect();
        let preview = self.head[..first].into();
        Bytes::Stored(Arc::new(Stored { hash, len: kept, preview, tail, truncated: kept < self.seen }))
    }

    /// Every byte printed.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// The bytes as a value.
    pub(crate) fn into_bytes(self) -> Bytes {
        let kept = (self.head.len() + self.tail.len()) as u64;
        if self.tail.is_empty() {
            return Bytes::from(self.head);
        }
        if kept == self.seen {
            let mut all = self.head;
            all.extend(self.tail);
            return Bytes::from(all);
        }
        let tail: Vec<u8> = self.tail.into();
        Bytes::Cut(Arc::new(Cut { head: self.head.into(), tail: tail.into(), total: self.seen }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: usize, chunks: &[&[u8]]) -> Bytes {
        let mut kept = Kept::new(limit);
        for chunk in chunks {
            kept.push(chunk);
        }
        assert_eq!(kept.seen(), chunks.iter().map(|c| c.len() as u64).sum::<u64>());
        kept.into_bytes()
    }

    #[test]
    fn up_to_the_limit_everything_is_there() {
        let bytes = kept(8, &[b"abc", b"", b"defgh"]);
        assert_eq!(bytes.held().map(|b| b.to_vec()), Some(b"abcdefgh".to_vec()));
    }

    #[test]
    fn beyond_it_a_quarter_and_three_quarters() {
        for chunks in [&[&b"abcdefghij"[..]][..], &[b"ab", b"cdefgh", b"i", b"j"], &[b"abcdefgh", b"ij"]] {
            let Bytes::Cut(cut) = kept(8, chunks) else { panic!("not cut: {chunks:?}") };
            assert_eq!((&*cut.head, &*cut.tail, cut.total), (&b"ab"[..], &b"efghij"[..], 10), "{chunks:?}");
        }
    }

    #[test]
    fn both_ends_of_a_stored_stream_stay() {
        let mut kept = Kept::new(40_000);
        kept.push(&[b'a'; 40_000]);
        assert!(kept.overflows(1) && kept.all().len() == 40_000);
        kept.push(&[b'b'; 20_000]);
        let Bytes::Stored(stored) = kept.into_stored("00".into(), 30_000) else { panic!("not stored") };
        assert_eq!((stored.preview.len(), stored.tail.len()), (SHOWN, SHOWN));
        assert!(stored.preview.iter().all(|b| *b == b'a') && stored.tail.iter().all(|b| *b == b'b'));
        assert!(stored.truncated, "30,000 of 60,000");
    }

    #[test]
    fn a_chunk_far_above_the_limit_keeps_its_end() {
        let Bytes::Cut(cut) = kept(4, &[&[b'x'; 100], b"end"]) else { panic!("not cut") };
        assert_eq!((&*cut.head, &*cut.tail, cut.total), (&b"x"[..], &b"end"[..], 103));
    }
}
