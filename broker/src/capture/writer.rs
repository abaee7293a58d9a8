//! One stream from its pipe into the content store.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use shoal_journal::{BlobWriter, JournalError, Tail};

use super::Allowed;

/// Bytes of one read.
const READ: usize = 256 * 1024;
/// zstd level of captures: as fast as the producer.
const LEVEL: i32 = 1;
/// Bytes of the end that are kept whatever the caps say: that is where the error stands.
const LEAST_TAIL: u64 = 8 << 20;

/// What was kept of a stream.
#[derive(Debug)]
pub(super) struct Kept {
    /// Its blob.
    pub(super) writer: BlobWriter,
    /// Bytes it had.
    pub(super) seen: u64,
    /// What it took of the caps.
    pub(super) allowed: Allowed,
}

/// Reads `pipe` to its end and keeps up to `limit` bytes of it.
pub(super) fn store(dir: &Path, pipe: OwnedFd, limit: u64, allowed: Allowed) -> Result<Kept, JournalError> {
    let mut stream = Stream {
        head: BlobWriter::new(dir, LEVEL)?,
        tail: Tail::new(dir, limit - limit / 4),
        first: limit / 4,
        room: limit - limit / 4,
        granted: 0,
        is_head_full: false,
        allowed,
    };
    let mut seen = 0_u64;
    let mut pipe = File::from(pipe);
    let mut buffer = vec![0; READ];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                stream.push(buffer.get(..n).unwrap_or_default())?;
                seen += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Whoever writes may have made the pipe non-blocking. It ends with its worker at the latest.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                shoal_sys::poll::wait(pipe.as_fd(), shoal_sys::poll::Ready::READ, None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let (writer, allowed) = stream.finish()?;
    Ok(Kept { writer, seen, allowed })
}

/// A stream that is being kept.
struct Stream {
    head: BlobWriter,
    tail: Tail,
    /// Bytes of the head at most.
    first: u64,
    /// Bytes of the tail at most.
    room: u64,
    /// Bytes the tail was allowed so far.
    granted: u64,
    is_head_full: bool,
    allowed: Allowed,
}

impl Stream {
    fn push(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let room = usize::try_from(self.first.saturating_sub(self.head.len())).unwrap_or(usize::MAX);
        let room = if self.is_head_full { 0 } else { room.min(bytes.len()) };
        let (front, rest) = bytes.split_at(room);
        if !front.is_empty() && !self.allowed.take(front.len() as u64) {
            self.is_head_full = true;
            return self.push_tail(bytes);
        }
        self.head.write(front)?;
        self.push_tail(rest)
    }

    fn push_tail(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let more = (bytes.len() as u64).min(self.room.saturating_sub(self.granted));
        if more > 0 && self.allowed.take(more) {
            self.granted += more;
        }
        if bytes.is_empty() { Ok(()) } else { self.tail.push(bytes, self.kept_tail()) }
    }

    /// Bytes of the end that are kept.
    fn kept_tail(&self) -> u64 {
        self.granted.max(LEAST_TAIL.min(self.room))
    }

    fn finish(mut self) -> Result<(BlobWriter, Allowed), JournalError> {
        let keep = self.kept_tail();
        self.tail.write_to(&mut self.head, keep)?;
        Ok((self.head, self.allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Allowance;
    use super::*;
    use std::io::Write as _;

    fn captured(bytes: Vec<u8>, limit: u64, cap: u64) -> (u64, u64) {
        let dir = tempfile::tempdir().expect("a directory");
        let (read, write) = shoal_sys::fd::pipe().expect("a pipe");
        let writer = std::thread::spawn(move || File::from(write).write_all(&bytes).expect("written"));
        let allowed = Allowed::new(vec![Allowance::new(cap)]);
        let kept = store(dir.path(), read, limit, allowed).expect("stored");
        writer.join().expect("writer");
        (kept.seen, kept.writer.len())
    }

    #[test]
    fn all_of_a_stream_below_the_limit_is_kept() {
        assert_eq!(captured(vec![b'x'; 20_000_000], 20_000_000, u64::MAX), (20_000_000, 20_000_000));
    }

    #[test]
    fn a_longer_stream_keeps_exactly_its_limit() {
        assert_eq!(captured(vec![b'x'; 30_000_000], 10_000_000, u64::MAX), (30_000_000, 10_000_000));
    }

    #[test]
    fn a_cap_leaves_the_end() {
        let (seen, kept) = captured(vec![b'x'; 40_000_000], 32_000_000, 1_000_000);
        assert_eq!(seen, 40_000_000);
        assert!((LEAST_TAIL..=LEAST_TAIL + 1_000_000).contains(&kept), "{kept}");
    }
}
