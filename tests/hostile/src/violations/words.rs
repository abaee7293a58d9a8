//! Well-formed messages that no honest role would send: the wrong moment, somebody else's number, another shape.

use std::io;
use std::os::fd::AsFd as _;

use shoal_proto::broker_worker::{
    Answer, Capture, Finished, MAX_UP_CALLS, Prepared, Progress, Statement, ToBroker, UpCall, UpMethod,
};
use shoal_proto::launcher_worker::{RunId, Signal, Target, ToLauncher};
use shoal_proto::{Bytes, Text};

use super::{Worker, hello};

/// Up-calls beyond what may be open.
const CALLS: u64 = 500;
/// Events of a flood.
const FLOOD: u64 = 20_000;
/// Numbers of calls that others may have open.
const GUESSES: u64 = 20_000;

pub(super) fn to_broker(worker: &mut Worker, name: &str, run: RunId) -> io::Result<()> {
    let end = worker.end(run, "end");
    let mut tell = |message: ToBroker| worker.broker.send(&message);
    match name {
        "hello-again" => {
            let hello = worker.hello();
            worker.broker.send(&ToBroker::Hello(hello))
        }
        "claim-again" => tell(ToBroker::Prepared(Worker::claim(run))),
        "end-number-skipped" => tell(ToBroker::Finished(Finished { n: end.n + 1, ..end })),
        "end-number-zero" => tell(ToBroker::Finished(Finished { n: 0, ..end })),
        "end-without-its-descriptors" => tell(ToBroker::Finished(Finished { stdout: true, ..end })),
        "end-detail-not-json" => tell(ToBroker::Finished(Finished { detail: json("[[["), ..end })),
        "end-value-not-json" => tell(ToBroker::Finished(Finished { value: json("{\"$\""), ..end })),
        "end-with-calls-open" => {
            // As many as may be open: a few would be answered before the end is read.
            for n in 0..MAX_UP_CALLS as u64 {
                tell(call(n, run, UpMethod::Journal))?;
            }
            tell(ToBroker::Finished(end))
        }
        "call-outside-a-run" => tell(call(1, 0, UpMethod::Journal)),
        "calls-too-many" => (0..CALLS).try_for_each(|n| tell(call(n, run, UpMethod::Journal))),
        "progress-not-json" => tell(ToBroker::Progress(Progress { run, seen: 1, note: json("no") })),
        "capture-of-a-memfd" => {
            let memfd = shoal_sys::memfd::sealed("x", b"x")?;
            capture(worker, run, memfd.as_fd())
        }
        "capture-by-write-end" => {
            let (_read, write) = shoal_sys::fd::pipe()?;
            capture(worker, run, write.as_fd())
        }
        "answers-to-everybody" => (0..GUESSES).try_for_each(|n| tell(answer(n))),
        "flood" => {
            let note = json(r#"{"stdout_bytes":1,"stderr_bytes":0}"#);
            for seen in 0..FLOOD {
                tell(ToBroker::Progress(Progress { run, seen, note: note.clone() }))?;
            }
            worker.finish(run, name)
        }
        "statements-too-many" => {
            (0..FLOOD).try_for_each(|_| tell(statement(run)))?;
            worker.finish(run, name)
        }
        "claim-for-nobody" => {
            tell(ToBroker::Prepared(Prepared { run: 1 << 40, ..Worker::claim(run) }))?;
            worker.finish(run, name)
        }
        "end-for-nobody" => {
            tell(ToBroker::Finished(Finished { run: 1 << 40, ..end }))?;
            worker.finish(run, name)
        }
        "answer-for-nobody" => {
            tell(answer(1 << 40))?;
            worker.finish(run, name)
        }
        "hang" => Ok(()),
        other => worker.finish(run, &format!("no violation {other}")),
    }
}

pub(super) fn to_launcher(worker: &mut Worker, name: &str) -> io::Result<()> {
    let launcher = &mut worker.launcher;
    let signal = ToLauncher::Signal(Signal { target: Target::Run(1), signal: 0 });
    match name {
        "magic" => launcher.frame(&[0xFF; 16], &[], &[]),
        "type" => {
            let header = launcher.header(0xEE, &[], 0).encode();
            launcher.frame(&header, &[], &[])
        }
        "hello-again" => launcher.send(&ToLauncher::Hello(hello())),
        _ => launcher.send(&signal),
    }
}

fn json<const N: usize>(text: &str) -> Bytes<N> {
    Bytes::new(text).unwrap_or_default()
}

fn call(call: u64, run: RunId, method: UpMethod) -> ToBroker {
    ToBroker::UpCall(UpCall { call, run, method, params: json("{}") })
}

pub(super) fn statement(run: RunId) -> ToBroker {
    ToBroker::Statement(Statement { run, src: Text::cut("1"), ok: true, status: None, dur_ns: 1 })
}

fn answer(call: u64) -> ToBroker {
    ToBroker::Answer(Answer { call, code: 0, message: Text::default(), body: json("{}") })
}

fn capture(worker: &mut Worker, run: RunId, fd: std::os::fd::BorrowedFd<'_>) -> io::Result<()> {
    worker.broker.send_with(&ToBroker::Capture(Capture { call: 1, run, stderr: false }), &[fd])
}
