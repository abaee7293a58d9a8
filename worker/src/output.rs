//! The output log of a run: one byte sequence in order of arrival, its head and tail kept, everything counted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use serde_json::{Value as Json, json};

/// Bytes kept from the start.
const HEAD: u64 = 256 * 1024;
/// Bytes kept of the end.
const TAIL: u64 = 768 * 1024;
/// A piece grows up to this: a program that prints byte by byte must not cost an allocation for each.
const PIECE: usize = 16 * 1024;

/// Which stream a chunk came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// A piece of the sequence from one stream.
#[derive(Debug)]
struct Chunk {
    stream: Stream,
    offset: u64,
    bytes: Vec<u8>,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

#[derive(Debug, Default)]
struct Log {
    head: Vec<Chunk>,
    tail: VecDeque<Chunk>,
    seen: u64,
    per_stream: [u64; 2],
    ended: bool,
    /// Nothing is kept any more, only counted.
    emptied: bool,
}

/// The log; shared by the chains of a run.
#[derive(Debug, Default)]
pub(crate) struct OutputLog(Mutex<Log>);

/// What part of the log is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    /// Only this stream.
    pub(crate) stream: Option<Stream>,
    /// Position in the sequence; negative counts from the end.
    pub(crate) offset: i64,
    /// Content bytes at most.
    pub(crate) max: usize,
}

impl OutputLog {
    /// Adds bytes.
    pub(crate) fn append(&self, stream: Stream, bytes: &[u8]) {
        let mut log = self.lock();
        log.per_stream[stream as usize] += bytes.len() as u64;
        if log.emptied {
            log.seen += bytes.len() as u64;
            return;
        }
        let room = usize::try_from(HEAD.saturating_sub(log.seen)).unwrap_or(usize::MAX).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        log.push_head(stream, first);
        log.push_tail(stream, rest);
    }

    /// Bytes of standard output and of standard error so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let log = self.lock();
        (log.per_stream[0], log.per_stream[1])
    }

    /// Bytes that are kept.
    pub(crate) fn held(&self) -> usize {
        let log = self.lock();
        log.head.iter().chain(&log.tail).map(|chunk| chunk.bytes.len()).sum()
    }

    /// Keeps nothing any more; everything is still counted.
    pub(crate) fn empty(&self) {
        let mut log = self.lock();
        (log.head, log.tail, log.emptied) = (Vec::new(), VecDeque::new(), true);
    }

    /// The run is over and its pipes are drained.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
    }

    /// Chunks from a position on, in the form of `task.output` without its task.
    pub(crate) fn read(&self, query: Query) -> Json {
        self.lock().read(query)
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    fn push_head(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let offset = self.seen;
        self.seen += bytes.len() as u64;
        match self.head.last_mut() {
            Some(last) if last.stream == stream => last.bytes.extend_from_slice(bytes),
            _ => self.head.push(Chunk { stream, offset, bytes: bytes.to_vec() }),
        }
    }

    fn push_tail(&mut self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let offset = self.seen;
        self.seen += bytes.len() as u64;
        match self.tail.back_mut() {
            Some(last) if last.stream == stream && last.bytes.len() + bytes.len() <= PIECE => {
                last.bytes.extend_from_slice(bytes);
            }
            _ => self.tail.push_back(Chunk { stream, offset, bytes: bytes.to_vec() }),
        }
        let from = self.seen.saturating_sub(TAIL);
        while self.tail.front().is_some_and(|chunk| chunk.end() <= from) {
            self.tail.pop_front();
        }
        if let Some(front) = self.tail.front_mut()
            && front.offset < from
        {
            let cut = usize::try_from(from - front.offset).unwrap_or_default();
            front.bytes.drain(..cut);
            front.offset = from;
        }
    }

    /// Start of the kept tail; 0 while nothing was dropped.
    fn kept_from(&self) -> u64 {
        if self.emptied {
            return self.seen;
        }
        let tail = self.tail.front().map_or(self.seen, |chunk| chunk.offset);
        if tail <= HEAD { 0 } else { tail }
    }

    fn read(&self, query: Query) -> Json {
        let kept_from = self.kept_from();
        let mut at = match u64::try_from(query.offset) {
            Ok(offset) => offset.min(self.seen),
            Err(_) => self.seen.saturating_sub(query.offset.unsigned_abs()),
        };
        let head_end = HEAD.min(self.seen);
        let mut lossy = false;
        let mut room = query.max;
        let mut chunks = Vec::new();
        let mut blocked = false;
        for chunk in self.head.iter().chain(&self.tail) {
            if kept_from > 0 && at >= head_end && at < kept_from {
                (at, lossy) = (kept_from, true);
            }
            if blocked || chunk.end() <= at {
                continue;
            }
            if query.stream.is_some_and(|wanted| wanted != chunk.stream) {
                at = chunk.end();
                continue;
            }
            let start = usize::try_from(at - chunk.offset).unwrap_or_default();
            let available = &chunk.bytes[start..];
            let is_last = chunk.end() == self.seen;
            let taken = whole_characters(available, room, is_last && !self.ended);
            if taken > 0 {
                chunks.push(chunk_json(chunk.stream, at, &available[..taken]));
            }
            at += taken as u64;
            room -= taken;
            blocked = taken < available.len();
        }
        if self.emptied && at < self.seen {
            (at, lossy) = (self.seen, true);
        }
        json!({
            "chunks": chunks, "next_offset": at, "eof": self.ended && at == self.seen, "total_seen": self.seen,
            "kept_from": kept_from, "lossy": lossy,
        })
    }
}

/// How many bytes to give: at most `room`, and no part of a character that goes on beyond them. At the end of what has
/// come so far (`open`) the first bytes of a character are held back.
fn whole_characters(bytes: &[u8], room: usize, open: bool) -> usize {
    let wanted = &bytes[..room.min(bytes.len())];
    let is_cut = wanted.len() < bytes.len() || open;
    match std::str::from_utf8(wanted) {
        Err(e) if is_cut && e.error_len().is_none() && e.valid_up_to() > 0 => e.valid_up_to(),
        Err(e) if open && wanted.len() == bytes.len() && e.error_len().is_none() => e.valid_up_to(),
        Ok(_) | Err(_) => wanted.len(),
    }
}

fn chunk_json(stream: Stream, offset: u64, bytes: &[u8]) -> Json {
    let stream = stream.name();
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({"stream": stream, "offset": offset, "data": text}),
        Err(_) => {
            let data = base64::engine::general_purpose::STANDARD.encode(bytes);
            json!({"stream": stream, "offset": offset, "data_base64": data})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(offset: i64, max: usize) -> Query {
        Query { stream: None, offset, max }
    }

    #[test]
    fn streams_interleave_in_order_of_arrival() {
        let log = OutputLog::default();
        log.append(Stream::Stdout, "building…\n".as_bytes());
        log.append(Stream::Stderr, b"\xff\n");
        let read = log.read(query(0, 16_384));
        assert_eq!(read["chunks"][0], json!({"stream": "stdout", "offset": 0, "data": "building…\n"}));
        assert_eq!(read["chunks"][1], json!({"stream": "stderr", "offset": 12, "data_base64": "/wo="}));
        assert_eq!((&read["next_offset"], &read["eof"], &read["total_seen"]), (&json!(14), &json!(false), &json!(14)));
        log.end();
        assert_eq!(log.read(query(14, 1))["eof"], json!(true));
        let only = log.read(Query { stream: Some(Stream::Stderr), ..query(0, 100) });
        assert_eq!((only["chunks"].as_array().map(Vec::len), &only["next_offset"]), (Some(1), &json!(14)));
    }

    #[test]
    fn a_character_is_held_back_until_it_is_complete() {
        let log = OutputLog::default();
        log.append(Stream::Stdout, &"aé".as_bytes()[..2]);
        let read = log.read(query(0, 100));
        assert_eq!((&read["chunks"][0]["data"], &read["next_offset"]), (&json!("a"), &json!(1)));
        assert_eq!(log.read(query(1, 100))["chunks"], json!([]));
        log.append(Stream::Stdout, &"é".as_bytes()[1..]);
        assert_eq!(log.read(query(1, 100))["chunks"][0]["data"], json!("é"));
        assert_eq!(log.read(query(0, 2))["chunks"][0]["data"], json!("a"), "nor is one split by the maximum");
    }

    #[test]
    fn an_emptied_log_says_what_it_had() {
        let log = OutputLog::default();
        log.append(Stream::Stdout, b"before");
        log.end();
        log.empty();
        log.append(Stream::Stderr, b"after");
        assert_eq!((log.held(), log.counts()), (0, (6, 5)));
        let read = log.read(query(0, 100));
        let told = (&read["chunks"], &read["next_offset"], &read["kept_from"], &read["lossy"], &read["eof"]);
        assert_eq!(told, (&json!([]), &json!(11), &json!(11), &json!(true), &json!(true)));
        assert_eq!(log.read(query(11, 100))["lossy"], json!(false), "nothing is missing from there on");
    }

    #[test]
    fn a_program_that_prints_byte_by_byte_makes_few_pieces() {
        let log = OutputLog::default();
        for _ in 0..1_200_000 {
            log.append(Stream::Stdout, b"x");
        }
        let kept = log.lock();
        let pieces = kept.head.len() + kept.tail.len();
        drop(kept);
        assert!(pieces < 60, "{pieces} pieces");
        assert_eq!(log.held() as u64, HEAD + TAIL);
        assert_eq!(log.read(query(-3, 100))["chunks"][0]["data"], json!("xxx"));
    }

    #[test]
    fn head_and_tail_are_kept_and_the_middle_is_counted() {
        let log = OutputLog::default();
        let line = [b'x'; 1024];
        for _ in 0..4096 {
            log.append(Stream::Stdout, &line);
        }
        log.append(Stream::Stdout, b"last");
        let total = 4096 * 1024 + 4;
        let at_gap = log.read(query(256 * 1024, 10));
        assert_eq!((&at_gap["total_seen"], &at_gap["lossy"]), (&json!(total), &json!(true)));
        assert_eq!(at_gap["kept_from"], json!(total - 768 * 1024));
        assert_eq!(at_gap["chunks"][0]["offset"], at_gap["kept_from"]);
        let across = log.read(query(256 * 1024 - 4, 8));
        assert_eq!((&across["lossy"], across["chunks"].as_array().map(Vec::len)), (&json!(true), Some(2)));
        let end = log.read(query(-4, 100));
        assert_eq!((&end["chunks"][0]["data"], &end["lossy"]), (&json!("last"), &json!(false)));
    }
}
