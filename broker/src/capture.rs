//! Streams that outgrew their worker's memory: read from a pipe on a thread, compressed and stored while they come.
//!
//! What is kept of one is its first quarter and its last three quarters of a limit; between them bytes are counted and
//! dropped. The limit of a stream, of an execution, of a session and of the content store are counted where the bytes are
//! written. Whatever they say, the end of a stream is kept.

mod allowance;
mod writer;

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use serde_json::json;
use shoal_journal::{JournalError, Output, OutputData};
use shoal_proto::broker_worker::{Capture, ToWorker};
use shoal_proto::launcher_worker::RunId;
use shoal_wire::RpcError;

pub(crate) use allowance::{Allowance, Allowed};
use writer::Kept;

use crate::broker::Broker;
use crate::runs::Stage;
use crate::sessions::Sid;
use crate::wake::Wake;
use crate::worker_edge::told;

/// Captures of one session at a time: two streams of each execution. Every one is a thread.
const MAX_CAPTURES: usize = 32;
/// Stored streams of one execution; each is an output of its row.
const MAX_STORED: usize = 1024;

/// How much is kept, in bytes. Each is a setting of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    /// In a worker's memory, of one stream.
    pub(crate) memory: u64,
    /// In the store, of one stream.
    pub(crate) stream: u64,
    /// In the store, of all captures of a session, as they lie there.
    pub(crate) session: u64,
    /// In the content store: above it captures keep only the end of their streams.
    pub(crate) total: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { memory: 8 << 20, stream: 1 << 30, session: 8 << 30, total: 64 << 30 }
    }
}

impl Caps {
    /// Changes a cap by the name of its setting; `false` for another name.
    pub(crate) fn set(&mut self, name: &str, value: u64) -> bool {
        let cap = match name {
            "capture_cap_bytes" => &mut self.memory,
            "capture_store_cap_bytes" => &mut self.stream,
            "capture_session_cap_bytes" => &mut self.session,
            "capture_total_cap_bytes" => &mut self.total,
            _ => return false,
        };
        *cap = value;
        true
    }
}

/// What captures have taken, and how many are open.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    /// The limits.
    pub(crate) caps: Caps,
    store: Allowance,
    sessions: HashMap<Sid, (Allowance, usize)>,
}

impl Captures {
    /// Captures within `caps`, in a content store of this size.
    pub(crate) fn new(caps: Caps, stored: u64) -> Self {
        let store = Allowance::new(caps.total);
        store.set_taken(stored);
        Self { caps, store, sessions: HashMap::new() }
    }

    /// The content store was collected down to so many bytes.
    pub(crate) fn collected(&self, remaining: u64) {
        self.store.set_taken(remaining);
    }

    /// A session is gone.
    pub(crate) fn forget(&mut self, sid: Sid) {
        self.sessions.remove(&sid);
    }

    fn of(&mut self, sid: Sid) -> &mut (Allowance, usize) {
        let cap = self.caps.session;
        self.sessions.entry(sid).or_insert_with(|| (Allowance::new(cap), 0))
    }

    /// One more capture of a session; its allowance.
    fn open(&mut self, sid: Sid) -> Option<Allowance> {
        let (allowance, open) = self.of(sid);
        if *open >= MAX_CAPTURES {
            return None;
        }
        *open += 1;
        Some(allowance.clone())
    }

    fn closed(&mut self, sid: Sid) {
        if let Some((_, open)) = self.sessions.get_mut(&sid) {
            *open = open.saturating_sub(1);
        }
    }
}

/// A stream that was read to its end.
#[derive(Debug)]
pub(crate) struct Stored {
    sid: Sid,
    capture: Capture,
    result: Result<Kept, JournalError>,
}

impl Broker {
    /// What a running execution may still store.
    fn run_allowance(&mut self, sid: Sid, run: RunId) -> Option<Allowance> {
        let per_run = self.output_limit(sid);
        let run = self.runs.of(sid, run).filter(|run| matches!(run.stage, Stage::Running { .. }))?;
        Some(run.kept_output.get_or_insert_with(|| Allowance::new(per_run)).clone())
    }

    /// What one blob of a running execution counts in: it takes room like what the execution prints.
    pub(crate) fn blob_allowance(&mut self, sid: Sid, run: RunId) -> Option<Allowed> {
        let run = self.run_allowance(sid, run)?;
        let session = self.captures.of(sid).0.clone();
        Some(Allowed::new(vec![run, session, self.captures.store.clone()]))
    }

    /// A worker hands a stream over.
    pub(crate) fn on_capture(&mut self, sid: Sid, capture: Capture, fds: Vec<OwnedFd>) -> Result<(), &'static str> {
        let pipe = fds.into_iter().next().ok_or("a capture without its pipe")?;
        let per_run = self.output_limit(sid);
        let has_room = self.runs.of(sid, capture.run).is_some_and(|run| run.captured.len() < MAX_STORED);
        let running = self.run_allowance(sid, capture.run).filter(|_| has_room);
        // A language task may outlive the execution that began it: nothing owns what it prints then.
        let Some(run) = running else { return self.refuse_capture(sid, capture, "the run takes no more output") };
        let Some(session) = self.captures.open(sid) else {
            return self.refuse_capture(sid, capture, "too many captures at a time");
        };
        let allowed = Allowed::new(vec![run, session, self.captures.store.clone()]);
        let limit = self.captures.caps.stream.min(per_run);
        let dir = self.journal.dir().to_owned();
        let wakes = self.wakes.clone();
        let started = std::thread::Builder::new().name("capture".to_owned()).spawn(move || {
            let result = writer::store(&dir, pipe, limit, allowed);
            // The loop may be over; then the row is closed by the next broker.
            wakes.blocking_send(Wake::Captured(Stored { sid, capture, result })).ok();
        });
        if let Err(error) = started {
            self.captures.closed(sid);
            return self.refuse_capture(sid, capture, &error.to_string());
        }
        Ok(())
    }

    /// The pipe closes unread: the worker goes on with what fits into its memory.
    fn refuse_capture(&self, sid: Sid, capture: Capture, why: &str) -> Result<(), &'static str> {
        self.tell_worker(sid, ToWorker::Told(told(capture.call, Err(RpcError::internal(why)))));
        Ok(())
    }

    /// Bytes of output that may be stored of one execution.
    pub(crate) fn output_limit(&self, sid: Sid) -> u64 {
        let session = self.sessions.at(sid);
        let policy = session.and_then(|session| self.policy.of_session(session)).and_then(|s| s.limits.output);
        let asked = session.and_then(|session| session.output_cap);
        [policy, asked].into_iter().flatten().min().unwrap_or(1 << 30)
    }

    /// A stream was read to its end: its blob is adopted, then the worker is told where it lies.
    pub(crate) fn on_captured(&mut self, stored: Stored) {
        let Stored { sid, capture, result } = stored;
        self.captures.closed(sid);
        let Kept { writer, seen, allowed } = match result {
            Ok(kept) => kept,
            Err(error) => return self.capture_failed(sid, capture, &error),
        };
        let mut writer = Some(writer);
        self.write(
            move |store| match writer.take() {
                Some(writer) => store.adopt_blob(writer),
                None => Err(JournalError::Invalid("the capture was adopted before".to_owned())),
            },
            move |broker, adopted| match adopted {
                Ok(blob) => {
                    allowed.settle(blob.stored);
                    broker.captured(sid, capture, seen, blob.hash, blob.len);
                }
                Err(error) => broker.capture_failed(sid, capture, &error),
            },
        );
    }

    fn captured(&mut self, sid: Sid, capture: Capture, seen: u64, hash: [u8; 32], len: u64) {
        // A run that is over, which a language task may outlive, leaves the blob to collection.
        let Some(run) = self.runs.of(sid, capture.run) else {
            let late = RpcError::internal("its execution is over");
            return self.tell_worker(sid, ToWorker::Told(told(capture.call, Err(late))));
        };
        let kind = if capture.stderr { "stderr" } else { "stdout" }.to_owned();
        let meta = (len < seen).then(|| json!({"truncated": true, "original_len": seen, "stored_len": len}));
        run.captured.push(Output { kind, data: OutputData::Stored { hash, len }, meta });
        let body = json!({"hash": blake3::Hash::from(hash).to_hex().as_str(), "kept": len, "seen": seen});
        self.tell_worker(sid, ToWorker::Told(told(capture.call, Ok(body.to_string()))));
    }

    fn capture_failed(&mut self, sid: Sid, capture: Capture, error: &JournalError) {
        let run = capture.run;
        crate::log::line(format_args!("capture of run {run} not stored: {error}"));
        self.tell_worker(sid, ToWorker::Told(told(capture.call, Err(RpcError::internal(error.to_string())))));
    }

    /// Whether an execution of this session that still runs has stored these bytes.
    pub(crate) fn has_captured(&self, sid: Sid, hash: &[u8; 32]) -> bool {
        let is_it = |output: &Output| matches!(&output.data, OutputData::Stored { hash: of, .. } if of == hash);
        self.runs.in_session(sid).into_iter().filter_map(|n| self.runs.at(n)).any(|run| run.captured.iter().any(is_it))
    }
}
