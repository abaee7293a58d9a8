//! The end of a stream whose length is not known: compressed pieces in files without a name, the oldest dropped.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::cas::{self, Writer};
use crate::error::JournalError;

/// zstd level: as fast as who prints.
const LEVEL: i32 = 1;
/// Pieces of a full tail: each holds a descriptor, and one more than the tail is long may be kept.
const PIECES: u64 = 12;
/// Plain bytes of the smallest piece.
const LEAST_PIECE: u64 = 1024 * 1024;

/// A finished piece.
struct Piece {
    file: File,
    len: u64,
}

/// The last bytes of a stream. Usable on any thread; it leaves no file behind, whenever its process ends.
pub struct Tail {
    dir: PathBuf,
    piece: u64,
    open: Option<(zstd::stream::write::Encoder<'static, File>, u64)>,
    done: VecDeque<Piece>,
    len: u64,
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail").field("pieces", &self.done.len()).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Tail {
    /// An empty tail of about `room` plain bytes, beside the content store of a state directory.
    pub fn new(dir: &Path, room: u64) -> Self {
        let piece = (room / PIECES).max(LEAST_PIECE);
        Self { dir: dir.to_owned(), piece, open: None, done: VecDeque::new(), len: 0 }
    }

    /// Plain bytes it holds.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends bytes, then drops the oldest piece as long as at least `keep` bytes remain.
    pub fn push(&mut self, bytes: &[u8], keep: u64) -> Result<(), JournalError> {
        let (encoder, len) = match &mut self.open {
            Some(open) => open,
            none => none.insert((zstd::stream::write::Encoder::new(cas::nameless(&self.dir)?, LEVEL)?, 0)),
        };
        encoder.write_all(bytes)?;
        *len += bytes.len() as u64;
        self.len += bytes.len() as u64;
        if *len >= self.piece {
            self.close_piece()?;
        }
        while self.done.front().is_some_and(|oldest| self.len - oldest.len >= keep) {
            self.len -= self.done.pop_front().map_or(0, |oldest| oldest.len);
        }
        Ok(())
    }

    fn close_piece(&mut self) -> Result<(), JournalError> {
        if let Some((encoder, len)) = self.open.take() {
            self.done.push_back(Piece { file: encoder.finish()?, len });
        }
        Ok(())
    }

    /// Appends its last `keep` bytes, or all if it has fewer, to a blob.
    pub fn write_to(mut self, writer: &mut Writer, keep: u64) -> Result<(), JournalError> {
        self.close_piece()?;
        let mut skip = self.len.saturating_sub(keep);
        let mut chunk = vec![0; 128 * 1024];
        for Piece { mut file, len } in self.done {
            if skip >= len {
                skip -= len;
                continue;
            }
            file.seek(SeekFrom::Start(0))?;
            let mut decoder = zstd::stream::read::Decoder::new(file)?;
            loop {
                let got = decoder.read(&mut chunk)?;
                if got == 0 {
                    break;
                }
                let from = usize::try_from(skip).unwrap_or(usize::MAX).min(got);
                skip -= from as u64;
                writer.write(chunk.get(from..got).unwrap_or_default())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_there_whatever_the_pieces() {
        let dir = tempfile::tempdir().expect("a directory");
        let bytes: Vec<u8> = (0..5_000_000_u32).flat_map(|n| (n % 251).to_le_bytes()).collect();
        let keep = 3_000_001;
        let mut tail = Tail::new(dir.path(), keep);
        for chunk in bytes.chunks(77_777) {
            tail.push(chunk, keep).expect("pushed");
            assert!(tail.len() <= keep + LEAST_PIECE + 77_777, "bounded: {tail:?}");
        }
        let mut writer = Writer::new(dir.path(), LEVEL).expect("a writer");
        tail.write_to(&mut writer, keep).expect("written");
        assert_eq!(writer.len(), keep);
        let whole = blake3::hash(&bytes[bytes.len() - usize::try_from(keep).expect("fits")..]);
        assert_eq!(writer.hash(), *whole.as_bytes());
        drop(writer);
        let left = std::fs::read_dir(dir.path().join("cas/tmp")).expect("a directory").count();
        assert_eq!(left, 0, "no file has a name");
    }

    #[test]
    fn a_short_tail_is_all_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut tail = Tail::new(dir.path(), 100);
        tail.push(b"abc", 100).expect("pushed");
        let mut writer = Writer::new(dir.path(), LEVEL).expect("a writer");
        tail.write_to(&mut writer, 100).expect("written");
        assert_eq!(writer.hash(), *blake3::hash(b"abc").as_bytes());
    }
}
