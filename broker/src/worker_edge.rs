//! The edge to a session's worker: set-up, calls, and what is checked of everything that comes up.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::Duration;

use serde_json::json;
use shoal_proto::broker_worker::{Answer, Call, Method, Progress, Setup, ToBroker, ToWorker, UpCall, WorkerHello};
use shoal_proto::hello::SessionRole;
use shoal_proto::{Bytes, List, Text};
use shoal_wire::RpcError;

use crate::broker::Broker;
use crate::edge::{Arrived, hello};
use crate::pending::Pending;
use crate::sessions::{Sid, Stage};
use crate::wake::Wake;

/// A role that is being replaced delays answers by at most this.
const REPLACED_WITHIN: Duration = Duration::from_secs(10);
/// The exit report of a worker follows its hang-up; without one this is long enough to tell the clients.
pub(crate) const EXIT_REPORT: Duration = Duration::from_millis(200);
/// Why a session fails whose worker died too often.
pub(crate) const KEEPS_DYING: &str = "it keeps dying";
/// Calls and runs of one worker that wait; above it the worker does not answer.
const MAX_CALLS: usize = 1024;

impl Broker {
    /// Takes a fresh worker end and tells it what it is for.
    pub(crate) fn connect_worker(&mut self, sid: Sid, fd: OwnedFd, restarted: bool) {
        let failed = self.sessions.at(sid).is_none_or(|s| s.stage == Stage::Failed || s.stage == Stage::Ending);
        if failed {
            return;
        }
        if restarted {
            // The exit of the one before may be reported later than its successor.
            self.lose_worker(sid, "it was replaced");
        }
        self.open_worker(sid, fd, false);
    }

    /// Takes the end of a worker that went on without a broker.
    pub(crate) fn connect_adopted_worker(&mut self, sid: Sid, fd: OwnedFd) {
        self.open_worker(sid, fd, true);
    }

    fn open_worker(&mut self, sid: Sid, fd: OwnedFd, adopted: bool) {
        let Some(peer) = self.open_end(fd, move |epoch, arrived| Wake::Worker(sid, epoch, arrived)) else { return };
        let Some(setup) = self.setup(sid, adopted) else { return };
        let epoch = peer.epoch;
        peer.send(ToWorker::Setup(setup));
        if let Some(session) = self.sessions.at_mut(sid) {
            session.worker = Some(peer);
            session.went_on = adopted;
        }
        self.expect_hello(sid, epoch);
    }

    /// A worker says hello in time, unless it is stopped.
    fn expect_hello(&mut self, sid: Sid, epoch: u64) {
        self.after(REPLACED_WITHIN, move |broker| {
            let waiting = broker.sessions.at(sid).filter(|session| {
                session.stage != Stage::Up && session.worker.as_ref().is_some_and(|peer| peer.epoch == epoch)
            });
            match waiting {
                Some(session) if session.frozen => broker.expect_hello(sid, epoch),
                Some(_) => broker.violated(sid, SessionRole::Worker, "no hello in time"),
                None => {}
            }
        });
    }

    fn setup(&self, sid: Sid, adopted: bool) -> Option<Setup> {
        let session = self.sessions.at(sid)?;
        let section = self.policy.of_session(session);
        let watches: Vec<_> = session
            .watches
            .iter()
            .filter(|watch| watch.persist)
            .map(|w| json!({"name": w.name, "uri": w.uri, "on_event": w.on_event, "lang": w.lang}))
            .collect();
        let config: serde_json::Value =
            serde_json::from_str(self.policy.sections.settings.config.as_str()).unwrap_or_default();
        let state = json!({
            "session": &*session.name, "owner": &*session.owner, "restarts": session.restarts,
            "human": self.is_local_user(&session.owner),
            "capture_cap": self.captures.caps.memory,
            "policy": section.map(|s| json!({"env_read": s.env_read.as_slice().iter().map(|e| e.as_str()).collect::<Vec<_>>()})),
            "claims": self.start.claims, "level": self.start.level.as_str(), "watches": watches, "config": config,
        });
        Some(Setup {
            hello: hello(session.restarts),
            next_out: session.last_out + 1,
            cwd: Bytes::new(session.cwd.clone()).ok()?,
            env: env_list(&session.env)?,
            state: Bytes::new(state.to_string()).ok()?,
            restarted: session.lost_worker,
            adopted,
        })
    }

    /// Something came from a worker.
    pub(crate) fn on_worker(&mut self, sid: Sid, epoch: u64, arrived: Arrived<ToBroker>) {
        let current = self.sessions.at(sid).and_then(|s| s.worker.as_ref()).is_some_and(|peer| peer.epoch == epoch);
        if !current {
            return;
        }
        match arrived {
            Arrived::Message(message, fds) => {
                if let Err(what) = self.on_worker_message(sid, message, fds) {
                    self.violated(sid, SessionRole::Worker, what);
                }
            }
            Arrived::Gone(shoal_chan::ChanError::Violation(violation)) => {
                self.violated(sid, SessionRole::Worker, &violation.to_string());
            }
            Arrived::Gone(_) => {
                self.after(EXIT_REPORT, move |broker| {
                    let session = broker.sessions.at(sid);
                    if session.and_then(|s| s.worker.as_ref()).is_some_and(|peer| peer.epoch == epoch) {
                        broker.lose_worker(sid, "it hung up");
                    }
                });
            }
        }
    }

    fn on_worker_message(&mut self, sid: Sid, message: ToBroker, fds: Vec<OwnedFd>) -> Result<(), &'static str> {
        let up = self.sessions.at(sid).is_some_and(|session| session.stage == Stage::Up);
        match message {
            ToBroker::Distrust(distrust) => {
                self.violated(sid, SessionRole::Launcher, distrust.what.as_str());
                Ok(())
            }
            ToBroker::Hello(_) if up => Err("a second hello"),
            ToBroker::Hello(hello) => self.on_worker_hello(sid, hello),
            _ if !up => Err("a message before the hello"),
            ToBroker::Prepared(prepared) => self.on_prepared(sid, prepared),
            ToBroker::Finished(finished) => self.on_finished(sid, finished, VecDeque::from(fds)),
            ToBroker::Answer(answer) => self.on_worker_answer(sid, answer),
            ToBroker::UpCall(call) => self.on_up_call(sid, call, fds),
            ToBroker::Progress(progress) => self.on_progress(sid, &progress),
            ToBroker::Capture(capture) => self.on_capture(sid, capture, fds),
            ToBroker::Statement(statement) => self.on_statement(sid, statement),
            ToBroker::Numbered(numbered) => self.on_numbered(sid, numbered.n),
        }
    }

    fn on_worker_hello(&mut self, sid: Sid, hello: WorkerHello) -> Result<(), &'static str> {
        let adopted = !hello.open.as_slice().is_empty() || hello.next_out > 1;
        let Some(session) = self.sessions.at_mut(sid) else { return Ok(()) };
        let restarted = session.lost_worker && session.stage == Stage::Restarting;
        session.next_out_is(hello.next_out);
        session.cwd = hello.cwd.into_vec();
        session.cwd_wanted = false;
        session.commit_env(hello.env.into_vec().into_iter().map(Bytes::into_vec).collect());
        session.stage = Stage::Up;
        if adopted {
            self.reconcile(sid, hello.open.as_slice());
        }
        if restarted {
            self.session_event(sid, "restarted", None, None);
            self.note_session(sid, "restarted", None, None);
        }
        self.session_is_up(sid, Ok(()));
        Ok(())
    }

    /// Calls `then` once the session works, or with why it does not within ten seconds.
    pub(crate) fn when_up(&mut self, sid: Sid, then: impl FnOnce(&mut Self, Result<(), RpcError>) + 'static) {
        let Some(session) = self.sessions.at(sid) else {
            return then(self, Err(RpcError::worker_lost("", None, false, "the session is gone")));
        };
        match session.stage {
            Stage::Up => then(self, Ok(())),
            Stage::Failed => {
                let error = RpcError::worker_lost(&session.name, None, true, "it is started no more; kill the session");
                then(self, Err(error));
            }
            Stage::Restarting if session.frozen => {
                let error = RpcError::session_frozen(&session.name, &session.owner);
                then(self, Err(error));
            }
            Stage::Starting | Stage::Restarting | Stage::Ending => {
                let name = session.name.clone();
                let id = self.fresh();
                self.until_up.push((id, Pending { sid, then: Box::new(then) }));
                self.after(REPLACED_WITHIN, move |broker| {
                    if let Some(at) = broker.until_up.iter().position(|(waiting, _)| *waiting == id) {
                        let (_, pending) = broker.until_up.swap_remove(at);
                        let error = RpcError::worker_lost(&name, None, false, "it was not replaced in time");
                        (pending.then)(broker, Err(error));
                    }
                });
            }
        }
    }

    /// Resolves everybody who waits for a session.
    pub(crate) fn session_is_up(&mut self, sid: Sid, result: Result<(), RpcError>) {
        self.resolve(|broker| &mut broker.until_up, sid, &result);
    }

    /// Asks a worker; `then` gets its result as JSON text that can stand inside a frame.
    pub(crate) fn ask_worker(
        &mut self,
        sid: Sid,
        method: Method,
        params: impl Into<Vec<u8>>,
        then: impl FnOnce(&mut Self, Result<String, RpcError>) + 'static,
    ) {
        let params = match Bytes::new(params) {
            Ok(params) => params,
            Err(error) => return then(self, Err(RpcError::internal(error.to_string()))),
        };
        self.when_up(sid, move |broker, up| {
            let waiting = broker.worker_calls.values().filter(|call| call.sid == sid).count();
            if let Err(error) = up.and_then(|()| broker.not_frozen(sid)) {
                return then(broker, Err(error));
            }
            if waiting >= MAX_CALLS {
                return then(broker, Err(RpcError::internal("the session's worker has too much to answer")));
            }
            let call = broker.fresh();
            broker.worker_calls.insert(call, Pending { sid, then: Box::new(then) });
            broker.tell_worker(sid, ToWorker::Call(Call { call, method, params }));
        });
    }

    /// A worker that is stopped would answer when it is thawed, and its client would wait.
    fn not_frozen(&self, sid: Sid) -> Result<(), RpcError> {
        match self.sessions.at(sid) {
            Some(session) if session.frozen => Err(RpcError::session_frozen(&session.name, &session.owner)),
            _ => Ok(()),
        }
    }

    /// Sends to a worker; one that is gone is noticed by its reader.
    pub(crate) fn tell_worker(&self, sid: Sid, message: ToWorker) {
        if let Some(peer) = self.sessions.at(sid).and_then(|session| session.worker.as_ref()) {
            peer.send(message);
        }
    }

    fn on_worker_answer(&mut self, sid: Sid, answer: Answer) -> Result<(), &'static str> {
        // An answer to a call that was given up meanwhile is dropped; one to another session's call is a violation.
        let Some(pending) = self.worker_calls.remove(&answer.call) else { return Ok(()) };
        if pending.sid != sid {
            self.worker_calls.insert(answer.call, pending);
            return Err("an answer to somebody else's call");
        }
        let result = worker_result(answer)?;
        (pending.then)(self, result);
        Ok(())
    }

    fn on_progress(&mut self, sid: Sid, progress: &Progress) -> Result<(), &'static str> {
        #[derive(serde::Deserialize)]
        struct Note {
            #[serde(default)]
            stdout_bytes: u64,
            #[serde(default)]
            stderr_bytes: u64,
        }
        let note: Note = serde_json::from_slice(progress.note.as_slice()).map_err(|_| "progress without counts")?;
        if self.runs.of(sid, progress.run).is_none() {
            return Ok(());
        }
        self.task_progress(progress.run, note.stdout_bytes, note.stderr_bytes);
        Ok(())
    }

    fn on_up_call(&mut self, sid: Sid, call: UpCall, fds: Vec<OwnedFd>) -> Result<(), &'static str> {
        self.answer_up_call(sid, call, fds)
    }

    /// The worker of a session is gone: what it did ends, the next one is awaited.
    pub(crate) fn lose_worker(&mut self, sid: Sid, why: &str) {
        let now = self.now.mono;
        let Some(session) = self.sessions.at_mut(sid) else { return };
        if session.worker.take().is_none() {
            return;
        }
        let name = session.name.clone();
        session.listens.clear();
        session.up_calls = 0;
        session.lost_worker = true;
        session.restarts += 1;
        let failed = session.on_death(now).is_none();
        session.stage = if failed { Stage::Failed } else { Stage::Restarting };
        self.close_lost_rows(sid);
        self.session_event(sid, "worker_lost", Some(why), None);
        self.note_session(sid, "worker_lost", Some(why), None);
        for n in self.runs.in_session(sid) {
            if !failed && self.may_ask_again(n) {
                self.prepare_run(n);
                continue;
            }
            let entry = self.runs.at(n).and_then(|run| run.entry);
            let error = RpcError::worker_lost(&name, entry, false, why);
            self.abort_run(n, error, shoal_journal::Ended::WorkerLost);
        }
        let error = RpcError::worker_lost(&name, None, false, why);
        self.fail_worker_calls(sid, &error);
        self.fail_plannings(sid, &error);
        if failed {
            self.fail_session(sid, KEEPS_DYING);
        }
    }

    /// Nothing of an execution ran that is not recorded: the next worker can have it. Once, since it may have been its
    /// source that the worker died of.
    fn may_ask_again(&mut self, n: u64) -> bool {
        let Some(run) = self.runs.at_mut(n).filter(|run| run.stage == crate::runs::Stage::AwaitClaim) else {
            return false;
        };
        !std::mem::replace(&mut run.asked_again, true)
    }

    /// The session stays down until it is killed.
    pub(crate) fn fail_session(&mut self, sid: Sid, why: &str) {
        let Some(session) = self.sessions.at_mut(sid) else { return };
        session.stage = Stage::Failed;
        let why = crate::json::one_line(&format!("{why}; kill the session"), 512);
        let error = RpcError::worker_lost(&session.name, None, true, &why);
        self.session_is_up(sid, Err(error));
    }

    /// Answers every call to a worker that will not answer.
    pub(crate) fn fail_worker_calls(&mut self, sid: Sid, error: &RpcError) {
        self.fail_calls(|broker| &mut broker.worker_calls, sid, error);
    }
}

/// Result or error of a worker's answer; what it says of errors is bounded and made one line.
fn worker_result(answer: Answer) -> Result<Result<String, RpcError>, &'static str> {
    if answer.code == 0 {
        return crate::json::relayable(answer.body.into_vec()).map(Ok);
    }
    let data = match answer.body.as_slice() {
        [] => None,
        body => Some(serde_json::from_slice(body).map_err(|_| "error data that is not JSON")?),
    };
    let message = crate::json::one_line(answer.message.as_str(), 4096);
    Ok(Err(RpcError { code: i64::from(answer.code), message, data }))
}

/// An environment as a message carries it.
pub(crate) fn env_list(env: &[Vec<u8>]) -> Option<List<Bytes<131_072>, 65_536>> {
    let items = env.iter().map(|entry| Bytes::new(entry.clone())).collect::<Result<Vec<_>, _>>().ok()?;
    List::new(items).ok()
}

/// An answer to an up-call.
pub(crate) fn told(call: u64, result: Result<String, RpcError>) -> Answer {
    let (code, message, body) = match result {
        Ok(body) => (0, String::new(), body),
        Err(error) => {
            let code = i32::try_from(error.code).unwrap_or(-32603);
            (code, error.message, error.data.map_or(String::new(), |data| data.to_string()))
        }
    };
    Answer { call, code, message: Text::cut(&message), body: Bytes::new(body).unwrap_or_default() }
}
