//! What a hostile role says to the sides above it: messages no honest one sends.

mod frames;
mod launcher;
mod words;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub use launcher::{by_launcher, launcher};
use shoal_chan::{Chan, Receiver};
use shoal_proto::broker_worker::{Ending, Finished, Prepared, ToBroker, ToWorker, WorkerHello};
use shoal_proto::{Bytes, EDGE_VERSION, Header, Hello, List, Message, Text, broker_ptyd, launcher_worker};

/// Violations by a worker's messages to the broker, each of which ends the session's processes.
pub const TO_BROKER: &[&str] = &[
    "magic",
    "version",
    "reserved",
    "flag",
    "type-unknown",
    "type-zero",
    "length-more",
    "length-less",
    "length-huge",
    "no-body",
    "trailing-byte",
    "short-header",
    "one-byte",
    "random",
    "sequence-again",
    "sequence-gap",
    "descriptor-announced",
    "descriptor-smuggled",
    "descriptor-undeclared",
    "descriptors-nine",
    "descriptors-253",
    "memfd-missing",
    "memfd-open",
    "memfd-short",
    "memfd-pipe",
    "memfd-directory",
    "text-not-utf8",
    "list-bomb",
    "bytes-bomb",
    "bad-variant",
    "hello-again",
    "claim-not-json",
    "claim-again",
    "end-before-run",
    "statement-before-run",
    "end-number-skipped",
    "end-number-zero",
    "end-without-its-descriptors",
    "end-detail-not-json",
    "end-value-not-json",
    "end-with-calls-open",
    "call-outside-a-run",
    "calls-too-many",
    "progress-not-json",
    "capture-of-a-memfd",
    "capture-by-write-end",
    "answers-to-everybody",
];

/// Violations by a worker's messages to its launcher: it is ended, and nobody else.
pub const TO_LAUNCHER: &[&str] = &["launcher-magic", "launcher-hello-again", "launcher-signal-zero", "launcher-type"];

/// What is allowed, and must harm nobody.
pub const NUISANCES: &[&str] =
    &["flood", "statements-too-many", "claim-for-nobody", "end-for-nobody", "answer-for-nobody"];

/// Violations by a ptyd's messages to the broker.
pub const BY_PTYD: &[&str] = &[
    "magic",
    "type-unknown",
    "length-huge",
    "random",
    "sequence-gap",
    "descriptor-smuggled",
    "trailing-byte",
    "text-not-utf8",
];

/// The hello of this build.
pub fn hello() -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(shoal_proto::hello::BUILD), generation: 0 }
}

/// An edge whose frames can be anything.
pub struct Raw<Tx, Rx> {
    fd: OwnedFd,
    receiver: Receiver<Rx>,
    seq: u32,
    sends: std::marker::PhantomData<fn(Tx)>,
}

impl<Tx: Message, Rx: Message> Raw<Tx, Rx> {
    /// Takes an end.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let (_sender, receiver) = Chan::<Tx, Rx>::from_fd(fd.try_clone()?)?.split();
        Ok(Self { fd, receiver, seq: 0, sends: std::marker::PhantomData })
    }

    /// The next message.
    pub fn recv(&mut self) -> io::Result<Rx> {
        self.recv_with_fds().map(|received| received.msg)
    }

    /// The next message and its descriptors.
    pub fn recv_with_fds(&mut self) -> io::Result<shoal_chan::Received<Rx>> {
        self.receiver.recv().map_err(|error| io::Error::other(error.to_string()))
    }

    /// Sends a message as it should be.
    pub fn send(&mut self, message: &Tx) -> io::Result<()> {
        self.send_with(message, &[])
    }

    /// Sends a message with any descriptors.
    pub fn send_with(&mut self, message: &Tx, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let body = message.encode_body().map_err(|violation| io::Error::other(violation.to_string()))?;
        let header = self.header(message.kind(), &body, fds.len());
        self.frame(&header.encode(), &body, fds)
    }

    /// The header a message would have.
    pub fn header(&self, kind: u8, body: &[u8], fds: usize) -> Header {
        let nfds = u8::try_from(fds).unwrap_or(u8::MAX);
        Header { kind, flags: 0, nfds, len: u32::try_from(body.len()).unwrap_or(u32::MAX), seq: self.seq }
    }

    /// Sends bytes.
    pub fn frame(&mut self, header: &[u8], body: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let parts = [io::IoSlice::new(header), io::IoSlice::new(body)];
        self.seq = self.seq.wrapping_add(1);
        shoal_sys::attack::send(&self.fd, &parts, fds, true)
    }
}

impl<Tx, Rx> AsFd for Raw<Tx, Rx> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A worker that speaks well until it does not.
pub struct Worker {
    pub(crate) broker: Raw<ToBroker, ToWorker>,
    pub(crate) launcher: Raw<launcher_worker::ToLauncher, launcher_worker::ToWorker>,
    cwd: Bytes<4096>,
    pub(crate) next_out: u64,
}

impl Worker {
    /// Says both hellos.
    pub fn greet(launcher: OwnedFd, broker: OwnedFd) -> io::Result<Self> {
        let mut launcher = Raw::new(launcher)?;
        let mut broker = Raw::new(broker)?;
        launcher.send(&launcher_worker::ToLauncher::Hello(hello()))?;
        let ToWorker::Setup(setup) = broker.recv()? else { return Err(io::Error::other("no setup")) };
        let worker = Self { broker, launcher, cwd: setup.cwd, next_out: setup.next_out };
        let hello = worker.hello();
        let mut worker = worker;
        worker.broker.send(&ToBroker::Hello(hello))?;
        Ok(worker)
    }

    /// The next message of the broker.
    pub fn recv(&mut self) -> io::Result<ToWorker> {
        self.broker.recv()
    }

    pub(crate) fn hello(&self) -> WorkerHello {
        WorkerHello {
            hello: hello(),
            open: List::default(),
            next_out: self.next_out,
            cwd: self.cwd.clone(),
            env: List::default(),
        }
    }

    /// The claim of a source that does nothing.
    pub(crate) fn claim(run: u64) -> Prepared {
        let claim = r#"{"effects":[],"reversibility":"reversible","head":"","names":[],"programs":[],"scripts":[],"ast":{"stmts":[]}}"#;
        Prepared { run, claim: Bytes::new(claim).unwrap_or_default(), parsed: true }
    }

    /// The end of a run with a text.
    pub(crate) fn end(&self, run: u64, text: &str) -> Finished {
        let value = serde_json::json!({"$": "str", "v": text}).to_string();
        Finished {
            run,
            n: self.next_out,
            ending: Ending::Value,
            value: Bytes::new(value).unwrap_or_default(),
            render: Text::cut(text),
            detail: Bytes::new(r#"{"status":0,"ok":true,"summary":{"type":"str"}}"#).unwrap_or_default(),
            elapsed_ms: 1,
            cwd: self.cwd.clone(),
            env_changed: false,
            env: List::default(),
            session_cwd: self.cwd.clone(),
            stdout: false,
            stderr: false,
            full: false,
        }
    }

    /// Ends a run with a text.
    pub fn finish(&mut self, run: u64, text: &str) -> io::Result<()> {
        let end = self.end(run, text);
        self.next_out += 1;
        self.broker.send(&ToBroker::Finished(end))
    }
}

/// Answers a source with an honest claim, or violates at this moment.
pub fn on_prepare(worker: &mut Worker, source: &str, run: u64) -> io::Result<()> {
    match source.strip_prefix("violate ") {
        Some("claim-not-json") => {
            let claim = Prepared { claim: Bytes::new("{").unwrap_or_default(), ..Worker::claim(run) };
            worker.broker.send(&ToBroker::Prepared(claim))
        }
        Some("statement-before-run") => worker.broker.send(&words::statement(run)),
        Some("end-before-run") => {
            let end = worker.end(run, "early");
            worker.broker.send(&ToBroker::Finished(end))
        }
        _ => worker.broker.send(&ToBroker::Prepared(Worker::claim(run))),
    }
}

/// Does what a source names while it runs.
pub fn on_run(worker: &mut Worker, source: &str, run: u64) -> io::Result<()> {
    let Some(name) = source.strip_prefix("violate ") else { return worker.finish(run, source) };
    if let Some(name) = name.strip_prefix("launcher-") {
        return words::to_launcher(worker, name);
    }
    if frames::send(&mut worker.broker, name, || Worker::claim(run))? {
        return Ok(());
    }
    words::to_broker(worker, name, run)
}

/// A call of a client's, which it never answers.
pub fn on_call(_worker: &mut Worker, _call: u64) -> io::Result<()> {
    Ok(())
}

/// Does what a ptyd was told by what was typed.
pub fn ptyd_violation(
    broker: &mut Raw<broker_ptyd::ToBroker, broker_ptyd::ToPtyd>,
    name: &str,
    call: u64,
) -> io::Result<()> {
    let done = broker_ptyd::Sent { call, sent: 0, complete: true };
    frames::send_as(broker, name, &broker_ptyd::ToBroker::Sent(done)).map(drop)
}
