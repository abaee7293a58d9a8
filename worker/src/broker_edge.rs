//! The edge to the broker: what goes up, and the answers to up-calls.
//!
//! A broker may die and be replaced: the edge then gets a fresh end. Up-calls that were open fail, results that were
//! not acknowledged are told again.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shoal_chan::{ChanError, Sender};
use shoal_proto::Bytes;
use shoal_proto::broker_worker::{
    Answer, Capture, Finished, Json, MAX_UP_CALLS, Numbered, Progress, Statement, ToBroker, UpCall, UpMethod,
};
use shoal_proto::launcher_worker::RunId;
use shoal_value::{ErrorValue, code};
use shoal_wire::RpcError;

use crate::clock;

/// A broker is replaced within ten seconds, or the kernel is in trouble that a request must tell.
const REPLACED_WITHIN: Duration = Duration::from_secs(30);

/// What a watch asks for is answered from memory or the journal.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unanswered {
    /// The broker was not there or went away.
    Gone,
    /// It took too long.
    Late,
}

/// An answer with its bytes.
pub(crate) type Told = (Answer, Option<OwnedFd>);

/// A result until the broker has recorded it.
pub(crate) struct Unrecorded {
    /// The message.
    pub(crate) finished: Finished,
    /// What is attached to it.
    pub(crate) fds: Vec<OwnedFd>,
    /// Everything there was to attach is.
    pub(crate) whole: bool,
}

/// The edge as runs and ports use it.
#[derive(Default)]
pub(crate) struct BrokerEdge {
    sender: Mutex<Option<Sender<ToBroker>>>,
    calls: Mutex<HashMap<u64, SyncSender<Told>>>,
    /// Streams the broker stores; they wait as long as their programs print, and hold up no call.
    captures: Mutex<HashMap<u64, SyncSender<Told>>>,
    fewer: Condvar,
    connected: Condvar,
    /// Counts the ends.
    epoch: AtomicU64,
    unrecorded: Mutex<BTreeMap<u64, Unrecorded>>,
    next: AtomicU64,
}

impl BrokerEdge {
    /// Takes a fresh end and ends what waited for the old one. The number names this end.
    pub(crate) fn connect(&self, sender: Sender<ToBroker>) -> u64 {
        let mut current = lock(&self.sender);
        *current = Some(sender);
        let epoch = self.epoch.fetch_add(1, Ordering::Relaxed) + 1;
        self.forget_calls();
        drop(current);
        self.connected.notify_all();
        epoch
    }

    /// The broker behind an end is gone; a fresh end may come. False if one has come already.
    pub(crate) fn disconnect(&self, epoch: u64) -> bool {
        let mut current = lock(&self.sender);
        if self.epoch.load(Ordering::Relaxed) != epoch {
            return false;
        }
        *current = None;
        self.forget_calls();
        true
    }

    /// Whoever waits for an answer asks again.
    fn forget_calls(&self) {
        lock(&self.calls).clear();
        lock(&self.captures).clear();
        self.fewer.notify_all();
    }

    /// Sends, if there is a broker. One that is gone is noticed by the thread that reads from it.
    pub(crate) fn send(&self, message: &ToBroker, fds: &[OwnedFd]) -> Result<(), ChanError> {
        let sender = lock(&self.sender).clone().ok_or(ChanError::Closed)?;
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        sender.send(message, &fds)
    }

    /// Answers what came over an end. Nobody is told if another has come meanwhile: every broker counts its calls from the
    /// beginning, and the next one has asked something else under the same number.
    pub(crate) fn answer(&self, epoch: u64, message: &ToBroker) -> Result<(), ChanError> {
        let current = lock(&self.sender);
        let sender = current.clone().filter(|_| self.epoch.load(Ordering::Relaxed) == epoch);
        drop(current);
        sender.ok_or(ChanError::Closed)?.send(message, &[])
    }

    /// Tells a result, and keeps it until it is recorded. Results are told in the order of their numbers: the caller
    /// holds the session's lock.
    pub(crate) fn finish(&self, result: Unrecorded) {
        let message = ToBroker::Finished(result.finished.clone());
        let mut unrecorded = lock(&self.unrecorded);
        let result = unrecorded.entry(result.finished.n).insert_entry(result);
        // Without a broker it is told to the next one.
        let _told_later: Result<(), ChanError> = self.send(&message, &result.get().fds);
    }

    /// Runs whose results are not recorded yet.
    pub(crate) fn unrecorded(&self) -> Vec<RunId> {
        lock(&self.unrecorded).values().map(|result| result.finished.run).collect()
    }

    /// The number of the oldest unrecorded result.
    pub(crate) fn first_unrecorded(&self) -> Option<u64> {
        lock(&self.unrecorded).keys().next().copied()
    }

    /// Tells the unrecorded results to a fresh broker, oldest first, and that the numbers between and after them are given,
    /// up to `next`.
    pub(crate) fn tell_again(&self, next: u64) -> Result<(), ChanError> {
        let unrecorded = lock(&self.unrecorded);
        let Some(first) = unrecorded.keys().next().copied() else { return Ok(()) };
        for n in first..next {
            match unrecorded.get(&n) {
                Some(result) => self.send(&ToBroker::Finished(result.finished.clone()), &result.fds)?,
                None => self.send(&ToBroker::Numbered(Numbered { n }), &[])?,
            }
        }
        Ok(())
    }

    /// A result that no execution ended with got its number. The caller holds the session's lock. A broker that is not
    /// there learns it from the next hello.
    pub(crate) fn numbered(&self, n: u64) {
        let _told_later: Result<(), ChanError> = self.send(&ToBroker::Numbered(Numbered { n }), &[]);
    }

    /// The end of a run is recorded: the number of its result, if all of it was attached.
    pub(crate) fn recorded(&self, run: RunId) -> Option<u64> {
        let mut unrecorded = lock(&self.unrecorded);
        let n = unrecorded.iter().find(|(_, result)| result.finished.run == run).map(|(n, _)| *n)?;
        unrecorded.remove(&n).filter(|result| result.whole).map(|_| n)
    }

    /// Output came.
    pub(crate) fn progress(&self, run: RunId, stdout: u64, stderr: u64) {
        let note = format!(r#"{{"stdout_bytes":{stdout},"stderr_bytes":{stderr}}}"#);
        if let Ok(note) = Bytes::new(note) {
            let progress = Progress { run, seen: stdout.saturating_add(stderr), note };
            // Progress that finds no broker is of no use to a later one.
            let _dropped: Result<(), ChanError> = self.send(&ToBroker::Progress(progress), &[]);
        }
    }

    /// A statement ended.
    pub(crate) fn statement(&self, statement: Statement) {
        // A broker that is gone has lost the statements before this one too; the execution's row tells of them.
        let _lost: Result<(), ChanError> = self.send(&ToBroker::Statement(statement), &[]);
    }

    /// Asks the broker for something inside a run and waits for the answer. A broker that dies meanwhile is asked again
    /// once there is a new one; only publishing is not repeated, because the old one may have done it.
    pub(crate) fn call(
        &self,
        run: RunId,
        method: UpMethod,
        params: &serde_json::Value,
        attached: Option<OwnedFd>,
    ) -> Result<Told, ErrorValue> {
        let params: Json =
            Bytes::new(params.to_string()).map_err(|e| broken(&format!("the request is too long: {e}")))?;
        let fds: Vec<OwnedFd> = attached.into_iter().collect();
        loop {
            match self.ask(run, method, params.clone(), &fds, None) {
                Ok((answer, fd)) if answer.code == 0 => return Ok((answer, fd)),
                Ok((answer, _)) => return Err(refused(&answer)),
                Err(_) if method == UpMethod::Emit => return Err(broken("the kernel's broker was replaced")),
                Err(_) => self.await_broker()?,
            }
        }
    }

    /// Asks the broker for something outside any run: what watches and their filters need. A broker that dies meanwhile
    /// is asked again once there is a new one, also to publish: its ring is gone with it.
    pub(crate) fn request(&self, method: UpMethod, params: &serde_json::Value) -> Result<serde_json::Value, RpcError> {
        let params: Json = Bytes::new(params.to_string()).map_err(|e| RpcError::internal(e.to_string()))?;
        loop {
            match self.ask(0, method, params.clone(), &[], Some(ANSWERED_WITHIN)) {
                Ok((answer, _)) => return read_answer(&answer),
                Err(Unanswered::Late) => return Err(RpcError::internal("the kernel did not answer in time")),
                Err(Unanswered::Gone) => {
                    self.await_broker().map_err(|error| RpcError::internal(error.msg.to_string()))?;
                }
            }
        }
    }

    /// Asks once.
    fn ask(
        &self,
        run: RunId,
        method: UpMethod,
        params: Json,
        fds: &[OwnedFd],
        within: Option<Duration>,
    ) -> Result<Told, Unanswered> {
        let call = self.number();
        let (sender, receiver) = sync_channel(1);
        let mut calls = lock(&self.calls);
        while calls.len() >= MAX_UP_CALLS {
            calls = self.fewer.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
        calls.insert(call, sender);
        drop(calls);
        if self.send(&ToBroker::UpCall(UpCall { call, run, method, params }), fds).is_err() {
            lock(&self.calls).remove(&call);
            return Err(Unanswered::Gone);
        }
        let Some(within) = within else { return receiver.recv().map_err(|_| Unanswered::Gone) };
        receiver.recv_timeout(within).map_err(|error| match error {
            RecvTimeoutError::Disconnected => Unanswered::Gone,
            RecvTimeoutError::Timeout => {
                lock(&self.calls).remove(&call);
                Unanswered::Late
            }
        })
    }

    /// Announces a stream that is written into a pipe; what is told of it comes to the receiver, unless the broker dies.
    pub(crate) fn capture(&self, run: RunId, stderr: bool, pipe: OwnedFd) -> Option<Receiver<Told>> {
        let call = self.number();
        let (sender, receiver) = sync_channel(1);
        lock(&self.captures).insert(call, sender);
        if self.send(&ToBroker::Capture(Capture { call, run, stderr }), &[pipe]).is_err() {
            lock(&self.captures).remove(&call);
            return None;
        }
        Some(receiver)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits for the next broker.
    fn await_broker(&self) -> Result<(), ErrorValue> {
        let mut sender = lock(&self.sender);
        let due = clock::now() + REPLACED_WITHIN;
        while sender.is_none() {
            let rest = due.saturating_duration_since(clock::now());
            if rest.is_zero() {
                return Err(broken("its broker is not there"));
            }
            sender = self.connected.wait_timeout(sender, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// An answer came. One that nobody waits for any more is dropped.
    pub(crate) fn told(&self, answer: Answer, fd: Option<OwnedFd>) {
        let waiting = lock(&self.calls).remove(&answer.call);
        self.fewer.notify_one();
        let waiting = waiting.or_else(|| lock(&self.captures).remove(&answer.call));
        if let Some(waiting) = waiting {
            let _gone: Result<(), _> = waiting.send((answer, fd));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_answer(answer: &Answer) -> Result<serde_json::Value, RpcError> {
    let body = serde_json::from_slice(answer.body.as_slice());
    if answer.code == 0 {
        return body.map_err(|error| RpcError::internal(format!("the kernel's answer: {error}")));
    }
    Err(RpcError { code: i64::from(answer.code), message: answer.message.as_str().to_owned(), data: body.ok() })
}

fn broken(why: &str) -> ErrorValue {
    ErrorValue::new(code::IO_ERROR, format!("the kernel did not answer: {why}"))
}

/// The broker's refusal as an error of the language.
fn refused(answer: &Answer) -> ErrorValue {
    let code = match answer.code {
        -32_010 | -32_011 => code::NOT_PERMITTED,
        -32_004 => code::NOT_FOUND,
        _ => code::CUSTOM,
    };
    let data: serde_json::Value = serde_json::from_slice(answer.body.as_slice()).unwrap_or_default();
    let error = ErrorValue::new(code, answer.message.as_str());
    match data["hint"].as_str() {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use shoal_proto::broker_worker::ToWorker;

    use super::*;

    #[test]
    fn an_answer_is_for_the_broker_that_asked() {
        let edge = BrokerEdge::default();
        let (first, mut gone) = shoal_chan::pair::<ToBroker, ToWorker>().expect("a pair");
        let (second, mut next) = shoal_chan::pair::<ToBroker, ToWorker>().expect("a pair");
        let message = |call| {
            ToBroker::Answer(Answer { call, code: 0, message: shoal_proto::Text::default(), body: Bytes::default() })
        };
        let of_first = edge.connect(first.split().0);
        edge.answer(of_first, &message(1)).expect("told");
        assert!(matches!(gone.recv().expect("told").msg, ToBroker::Answer(Answer { call: 1, .. })));
        let of_second = edge.connect(second.split().0);
        assert!(matches!(edge.answer(of_first, &message(2)), Err(ChanError::Closed)));
        edge.answer(of_second, &message(3)).expect("told");
        assert!(matches!(next.recv().expect("told").msg, ToBroker::Answer(Answer { call: 3, .. })));
        assert!(edge.disconnect(of_second));
        assert!(matches!(edge.answer(of_second, &message(4)), Err(ChanError::Closed)));
    }
}
