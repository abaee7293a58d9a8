//! A stream that outgrew the worker's memory: read from its pipe on a thread, compressed and stored while it comes.
//!
//! The first quarter and the last three quarters of the limit are kept; what is between is counted and dropped.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use serde_json::json;
use shoal_journal::{BlobWriter, JournalError, Output, OutputData};
use shoal_proto::broker_worker::Capture;

use crate::broker::Broker;
use crate::sessions::Sid;
use crate::wake::Wake;

/// Bytes of one read.
const READ: usize = 256 * 1024;
/// Kept of a stream when neither policy nor session says less.
const LIMIT: u64 = 1 << 30;
/// Bytes the worker hands over at most.
const HEAD: usize = 64 * 1024 * 1024;
/// zstd level of captures: as fast as the producer.
const LEVEL: i32 = 1;

/// A stream that is read to its end.
pub(crate) struct Stored {
    run: u64,
    stderr: bool,
    result: Result<Kept, JournalError>,
}

/// What was kept of it.
struct Kept {
    writer: BlobWriter,
    seen: u64,
    kept: u64,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").field("run", &self.run).field("stderr", &self.stderr).finish_non_exhaustive()
    }
}

/// The tail that may still be kept: blocks, the oldest dropped when they outgrow their share.
struct Tail {
    blocks: VecDeque<Vec<u8>>,
    len: u64,
    room: u64,
}

/// Memory the tail of one capture may take; beyond it a longer tail is kept less, never more memory.
const TAIL_MEMORY: u64 = 64 * 1024 * 1024;

impl Broker {
    /// A worker hands a stream over.
    pub(crate) fn on_capture(&mut self, sid: Sid, capture: &Capture, fds: Vec<OwnedFd>) -> Result<(), &'static str> {
        let mut fds = fds.into_iter();
        let (Some(pipe), Some(head)) = (fds.next(), fds.next()) else { return Err("a capture without descriptors") };
        let Some(run) = self.runs.of(sid, capture.run) else { return Ok(()) };
        run.capturing += 1;
        let (n, stderr) = (run.n, capture.stderr);
        let limit = self.sessions.at(sid).and_then(|session| session.output_cap).unwrap_or(LIMIT).min(LIMIT);
        let limit = self.policy_output(sid).map_or(limit, |policy| policy.min(limit));
        let dir = self.journal.dir().to_owned();
        let wakes = self.wakes.clone();
        let started = std::thread::Builder::new().name("capture".to_owned()).spawn(move || {
            let result = store(&dir, pipe, &head, limit);
            // The loop may be over; then the row is closed by the next broker.
            wakes.blocking_send(Wake::Captured(Stored { run: n, stderr, result })).ok();
        });
        if let Err(error) = started {
            crate::log::line(format_args!("capture thread: {error}"));
            if let Some(run) = self.runs.at_mut(n) {
                run.capturing -= 1;
            }
        }
        Ok(())
    }

    fn policy_output(&self, sid: Sid) -> Option<u64> {
        self.sessions.at(sid).and_then(|session| self.policy.of_session(session)).and_then(|s| s.limits.output)
    }

    /// A stream is read to its end: its blob is adopted, then the run may close.
    pub(crate) fn on_captured(&mut self, stored: Stored) {
        let Stored { run, stderr, result } = stored;
        let kind = if stderr { "stderr" } else { "stdout" };
        let kept = match result {
            Ok(kept) => kept,
            Err(error) => {
                crate::log::line(format_args!("capture of run {run} not stored: {error}"));
                return self.capture_over(run, None);
            }
        };
        let meta = (kept.kept < kept.seen)
            .then(|| json!({"truncated": true, "original_len": kept.seen, "stored_len": kept.kept}));
        let mut writer = Some(kept.writer);
        self.write(
            move |store| match writer.take() {
                Some(writer) => store.adopt_blob(writer),
                None => Err(JournalError::Invalid("the capture was adopted before".to_owned())),
            },
            move |broker, adopted| {
                let output = match adopted {
                    Ok((hash, len)) => {
                        Some(Output { kind: kind.to_owned(), data: OutputData::Stored { hash, len }, meta })
                    }
                    Err(error) => {
                        crate::log::line(format_args!("capture of run {run} not stored: {error}"));
                        None
                    }
                };
                broker.capture_over(run, output);
            },
        );
    }

    fn capture_over(&mut self, n: u64, output: Option<Output>) {
        if let Some(run) = self.runs.at_mut(n) {
            run.captured.extend(output);
            run.capturing = run.capturing.saturating_sub(1);
        }
        self.finish_if_complete(n);
    }
}

/// Reads `head` and then `pipe` to its end.
fn store(dir: &Path, pipe: OwnedFd, head: &OwnedFd, limit: u64) -> Result<Kept, JournalError> {
    let mut writer = BlobWriter::new(dir, LEVEL)?;
    let first = limit / 4;
    let mut tail = Tail { blocks: VecDeque::new(), len: 0, room: limit - first };
    let mut seen = 0_u64;
    let mut take = |bytes: &[u8], writer: &mut BlobWriter| -> Result<(), JournalError> {
        let room = usize::try_from(first.saturating_sub(writer.len())).unwrap_or(usize::MAX);
        let (front, rest) = bytes.split_at(room.min(bytes.len()));
        writer.write(front)?;
        tail.push(rest, writer, limit)?;
        seen += bytes.len() as u64;
        Ok(())
    };
    take(&shoal_sys::memfd::read_sealed(head, HEAD)?, &mut writer)?;
    let mut pipe = File::from(pipe);
    let mut buffer = vec![0; READ];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => take(buffer.get(..n).unwrap_or_default(), &mut writer)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The pipe may have been made non-blocking by whoever writes to it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                shoal_sys::poll::wait(pipe.as_fd(), shoal_sys::poll::Ready::READ, None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    for block in tail.blocks {
        writer.write(&block)?;
    }
    let kept = writer.len();
    Ok(Kept { writer, seen, kept })
}

impl Tail {
    /// Adds to the tail. While everything still fits below the limit, what the memory has no room for is written through.
    fn push(&mut self, bytes: &[u8], writer: &mut BlobWriter, limit: u64) -> Result<(), JournalError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.blocks.push_back(bytes.to_vec());
        self.len += bytes.len() as u64;
        let memory = self.room.min(TAIL_MEMORY);
        while self.len > memory {
            let Some(block) = self.blocks.pop_front() else { break };
            self.len -= block.len() as u64;
            // Below the limit nothing has to be dropped: the block leaves memory for the file. Above it the file is
            // full but for the tail in memory, and the oldest block of the tail is what goes.
            if writer.len() + block.len() as u64 + memory <= limit {
                writer.write(&block)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn captured(head: &[u8], rest: Vec<u8>, limit: u64) -> (u64, u64) {
        let dir = tempfile::tempdir().expect("a directory");
        let (read, write) = shoal_sys::fd::pipe().expect("a pipe");
        let head = shoal_sys::memfd::sealed("head", head).expect("a memfd");
        let writer = std::thread::spawn(move || File::from(write).write_all(&rest).expect("written"));
        let kept = store(dir.path(), read, &head, limit).expect("stored");
        writer.join().expect("writer");
        (kept.seen, kept.kept)
    }

    #[test]
    fn all_of_a_stream_below_the_limit_is_kept() {
        assert_eq!(captured(b"head", vec![b'x'; 1_000_000], LIMIT), (1_000_004, 1_000_004));
    }

    #[test]
    fn a_longer_stream_keeps_no_more_than_its_limit() {
        let (seen, kept) = captured(b"head", vec![b'x'; 3_000_000], 1_000_000);
        assert_eq!(seen, 3_000_004);
        assert!(kept <= 1_000_000 && kept > 500_000, "{kept}");
    }
}
