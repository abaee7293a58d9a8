//! A stream beyond the memory it may take: written on into the broker's content store while it comes.
//!
//! The worker goes on reading the program's pipe and writes what it reads into a pipe of its own, whose read end the broker
//! has. So the log, the counts and the drain after the program's end stay here, and a broker that dies costs the store's
//! copy alone: no program is ended by a broken pipe.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use shoal_proto::launcher_worker::RunId;
use shoal_sys::poll::{self, Ready};
use shoal_value::ErrorValue;

use crate::broker_edge::Told;
use crate::output::Stream;

/// How long the broker may leave the pipe full. Beyond that the stream is kept in memory alone.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long storing may take after the stream's end: three quarters of a gigabyte are written again at most.
const STORING: Duration = Duration::from_secs(60);

/// The content store as commands use it.
pub(crate) trait Depot: Send + Sync {
    /// Announces a stream that is written into the pipe whose read end is given. What is told about it comes later;
    /// nothing when there is no store.
    fn announce(&self, run: RunId, stream: Stream, pipe: OwnedFd) -> Option<Receiver<Told>>;

    /// A part of stored bytes, for an execution.
    fn part(&self, run: RunId, hash: &str, offset: u64) -> Result<Vec<u8>, ErrorValue>;
}

/// A stream on its way into the store.
pub(super) struct Spill {
    pipe: OwnedFd,
    told: Receiver<Told>,
}

/// Where a stream was stored.
pub(super) struct Place {
    /// BLAKE3 of what was kept, hexadecimal.
    pub(super) hash: String,
    /// Bytes kept.
    pub(super) kept: u64,
}

impl Spill {
    /// Begins with what was read so far. Nothing without a store.
    pub(super) fn begin(depot: &dyn Depot, run: RunId, stream: Stream, so_far: &[u8]) -> Option<Self> {
        let (theirs, pipe) = shoal_sys::fd::pipe().ok()?;
        shoal_sys::fd::set_nonblocking(&pipe, true).ok()?;
        shoal_sys::fd::widen_pipe(&pipe);
        let told = depot.announce(run, stream, theirs)?;
        let spill = Self { pipe, told };
        spill.write(so_far).then_some(spill)
    }

    /// Writes more of the stream; `false` when nobody reads it.
    pub(super) fn write(&self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::io::write(&self.pipe, rest) {
                Ok(n) => rest = &rest[n..],
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => match poll::wait(self.pipe.as_fd(), Ready::WRITE, Some(PATIENCE)) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return false,
                },
                Err(_) => return false,
            }
        }
        true
    }

    /// The stream is at its end: what is told of it comes here.
    pub(super) fn close(self) -> Closed {
        Closed(self.told)
    }
}

/// A stream that is written and not told of yet.
pub(super) struct Closed(Receiver<Told>);

impl Closed {
    /// Where it was stored; nothing if it was not, or its broker died.
    pub(super) fn place(self) -> Option<Place> {
        let (answer, _) = self.0.recv_timeout(STORING).ok()?;
        if answer.code != 0 {
            return None;
        }
        let told: serde_json::Value = serde_json::from_slice(answer.body.as_slice()).ok()?;
        Some(Place { hash: told["hash"].as_str()?.to_owned(), kept: told["kept"].as_u64()? })
    }
}
