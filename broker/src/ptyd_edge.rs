//! The edge to a session's ptyd, made at the first terminal: screens up, keys down, ticks on the bus.

use std::os::fd::OwnedFd;
use std::time::Duration;

use shoal_proto::broker_launcher::{PtyId, PtyOrder, ToLauncher};
use shoal_proto::broker_ptyd::{Expect, Hosted, PtyCall, Refusal, Refused, Screen, Sent, ToBroker, ToPtyd};
use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::supervisor_broker::ToSupervisor;
use shoal_wire::{Code, RpcError};

use crate::broker::Broker;
use crate::edge::{Arrived, hello};
use crate::json::{tagged_bool, tagged_int, tagged_record};
use crate::pending::Pending;
use crate::sessions::Sid;
use crate::wake::Wake;

/// Longest wait of a read (45 s) and room for the answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(55);
/// A ptyd is there within this.
const UP_WITHIN: Duration = Duration::from_secs(10);
/// Why it may not be.
const NO_PTYD: &str = "the session's terminal host did not start in 10 s; a session with as many processes as its limit \
                       `pids` allows has no room for it: end some, then try again";
/// Changes of a terminal are told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// What a ptyd answered.
#[derive(Debug)]
pub(crate) enum PtydDone {
    /// Written.
    Sent(Sent),
    /// A screen.
    Screen(Box<Screen>),
    /// Resized or forgotten.
    Done,
    /// Refused.
    Refused(Refusal),
}

impl Broker {
    /// Takes a fresh ptyd end and names the terminals it will get.
    pub(crate) fn connect_ptyd(&mut self, sid: Sid, fd: OwnedFd) {
        let Some(peer) = self.open_end(fd, move |epoch, arrived| Wake::Ptyd(sid, epoch, arrived)) else { return };
        peer.send(ToPtyd::Hello(hello(0)));
        for pty in self.ptys.of_session(sid) {
            peer.send(ToPtyd::Expect(Expect { id: pty.n, cols: pty.cols, rows: pty.rows }));
        }
        let lost = self.sessions.at_mut(sid).map(|session| {
            session.ptyd = Some(peer);
            ptyd_lost(&session.name)
        });
        if let Some(error) = lost {
            self.fail_ptyd_calls(sid, &error);
        }
        self.ptyd_is_there(sid, &Ok(()));
    }

    /// Resolves everybody who waits for a session's ptyd.
    fn ptyd_is_there(&mut self, sid: Sid, there: &Result<(), RpcError>) {
        self.resolve(|broker| &mut broker.until_ptyd, sid, there);
    }

    /// Calls `then` once the session has its ptyd.
    pub(crate) fn when_ptyd(&mut self, sid: Sid, then: impl FnOnce(&mut Self, Result<(), RpcError>) + 'static) {
        let Some(session) = self.sessions.at(sid) else {
            return then(self, Err(RpcError::internal("the session is gone")));
        };
        if session.ptyd.is_some() {
            return then(self, Ok(()));
        }
        let Some(id) = session.id else { return then(self, Err(RpcError::internal("the session is not up"))) };
        let first = !self.until_ptyd.iter().any(|(_, pending)| pending.sid == sid);
        let n = self.fresh();
        self.until_ptyd.push((n, Pending { sid, then: Box::new(then) }));
        if first && self.ptys.of_session(sid).all(|pty| pty.pid == 0) {
            let order = self.fresh();
            self.supervisor.send(ToSupervisor::NeedPtyd(Self::order_about(id)(order)));
        }
        self.after(UP_WITHIN, move |broker| {
            if let Some(at) = broker.until_ptyd.iter().position(|(waiting, _)| *waiting == n) {
                let (_, pending) = broker.until_ptyd.swap_remove(at);
                (pending.then)(broker, Err(RpcError::internal(NO_PTYD)));
            }
        });
    }

    /// Asks a ptyd.
    pub(crate) fn ask_ptyd(
        &mut self,
        sid: Sid,
        make: impl FnOnce(u64) -> ToPtyd + 'static,
        then: impl FnOnce(&mut Self, Result<PtydDone, RpcError>) + 'static,
    ) {
        self.when_ptyd(sid, move |broker, there| {
            if let Err(error) = there {
                return then(broker, Err(error));
            }
            let call = broker.fresh();
            broker.tell_ptyd(sid, make(call));
            broker.ptyd_calls.insert(call, Pending { sid, then: Box::new(then) });
            broker.after(ANSWERS_WITHIN, move |broker| {
                if let Some(pending) = broker.ptyd_calls.remove(&call) {
                    (pending.then)(broker, Err(RpcError::internal("the session's ptyd does not answer")));
                }
            });
        });
    }

    /// Asks a ptyd what it may be asked twice: when it dies on the call, its successor is asked.
    pub(crate) fn ask_any_ptyd(
        &mut self,
        sid: Sid,
        make: impl Fn(u64) -> ToPtyd + Clone + 'static,
        then: impl FnOnce(&mut Self, Result<PtydDone, RpcError>) + 'static,
    ) {
        let again = make.clone();
        self.ask_ptyd(sid, make, move |broker, done| match done {
            Err(error)
                if error.is(Code::WorkerLost) && broker.sessions.at(sid).is_some_and(|s| s.launcher.is_some()) =>
            {
                broker.ask_ptyd(sid, again, then);
            }
            other => then(broker, other),
        });
    }

    /// Sends to a ptyd.
    pub(crate) fn tell_ptyd(&self, sid: Sid, message: ToPtyd) {
        if let Some(peer) = self.sessions.at(sid).and_then(|session| session.ptyd.as_ref()) {
            peer.send(message);
        }
    }

    /// Something came from a ptyd.
    pub(crate) fn on_ptyd(&mut self, sid: Sid, epoch: u64, arrived: Arrived<ToBroker>) {
        let current = self.sessions.at(sid).and_then(|s| s.ptyd.as_ref()).is_some_and(|peer| peer.epoch == epoch);
        if !current {
            return;
        }
        let message = match arrived {
            Arrived::Message(message, _) => message,
            Arrived::Gone(error) => {
                if let shoal_chan::ChanError::Violation(violation) = &error {
                    return self.violated(sid, SessionRole::Ptyd, &violation.to_string());
                }
                let Some(session) = self.sessions.at_mut(sid) else { return };
                session.ptyd = None;
                let error = ptyd_lost(&session.name);
                return self.fail_ptyd_calls(sid, &error);
            }
        };
        match message {
            ToBroker::Hello(_) => {}
            ToBroker::Sent(sent) => self.ptyd_done(sid, sent.call, PtydDone::Sent(sent)),
            ToBroker::Screen(screen) => self.ptyd_done(sid, screen.call, PtydDone::Screen(Box::new(screen))),
            ToBroker::Done(done) => self.ptyd_done(sid, done.call, PtydDone::Done),
            ToBroker::Refused(Refused { call, why }) => self.ptyd_done(sid, call, PtydDone::Refused(why)),
            ToBroker::Tick(tick) => self.pty_changed(sid, tick.id),
            ToBroker::Exited(exited) => self.on_pty_exited(sid, exited.id, exited.status),
            ToBroker::Hosted(hosted) => self.on_pty_hosted(sid, hosted),
        }
    }

    fn ptyd_done(&mut self, sid: Sid, call: u64, done: PtydDone) {
        match self.ptyd_calls.remove(&call) {
            Some(pending) if pending.sid == sid => (pending.then)(self, Ok(done)),
            Some(pending) => {
                self.ptyd_calls.insert(call, pending);
                self.violated(sid, SessionRole::Ptyd, "an answer to somebody else's call");
            }
            // It was given up meanwhile.
            None => {}
        }
    }

    fn fail_ptyd_calls(&mut self, sid: Sid, error: &RpcError) {
        self.fail_calls(|broker| &mut broker.ptyd_calls, sid, error);
    }

    /// A terminal's program ended; ptyd and launcher both say so.
    pub(crate) fn on_pty_exited(&mut self, sid: Sid, id: PtyId, status: ExitStatus) {
        if let Some(pty) = self.ptys.of_mut(sid, id) {
            pty.exit.get_or_insert(status);
            self.pty_changed(sid, id);
            self.arm_idle(sid);
        }
    }

    /// A terminal of an earlier broker. One that was never told open is ended: nobody could reach it.
    fn on_pty_hosted(&mut self, sid: Sid, hosted: Hosted) {
        let Some(session) = self.sessions.at(sid) else { return };
        let (owner, name) = (session.owner.clone(), session.name.clone());
        if self.ptys.reopen(sid, &owner, &name, hosted) || self.ptys.of(sid, hosted.id).is_some() {
            return;
        }
        let id = hosted.id;
        self.ask_launcher(
            sid,
            |call| ToLauncher::KillPty(PtyOrder { call, id }),
            move |broker, _ended| {
                let call = broker.fresh();
                broker.tell_ptyd(sid, ToPtyd::Close(PtyCall { call, id }));
            },
        );
    }

    /// Something changed on a terminal: told at once, then at most every 50 ms.
    pub(crate) fn pty_changed(&mut self, sid: Sid, id: PtyId) {
        let now = self.now.mono;
        let Some(pty) = self.ptys.of_mut(sid, id) else { return };
        match pty.told.map(|told| now.saturating_sub(told)) {
            Some(since) if since < TELL_EVERY => {
                if !std::mem::replace(&mut pty.due, true) {
                    self.after(TELL_EVERY - since, move |broker| broker.tell_pty(sid, id));
                }
            }
            Some(_) | None => self.tell_pty(sid, id),
        }
    }

    fn tell_pty(&mut self, sid: Sid, id: PtyId) {
        let now = self.now.mono;
        let Some(pty) = self.ptys.of_mut(sid, id) else { return };
        pty.told = Some(now);
        pty.due = false;
        let owner = pty.owner.clone();
        let payload = tagged_record(&[
            ("changed", tagged_bool(true)),
            ("alive", tagged_bool(pty.exit.is_none())),
            ("rows_changed", tagged_int(i64::from(pty.rows))),
        ]);
        self.publish(&owner, &format!("pty.{id}"), &payload);
    }

    /// The terminals of a session are gone with its launcher.
    pub(crate) fn lose_ptys(&mut self, sid: Sid, error: &RpcError) {
        self.fail_ptyd_calls(sid, error);
        self.ptyd_is_there(sid, &Err(error.clone()));
        let gone: Vec<u64> = self.ptys.of_session(sid).map(|pty| pty.n).collect();
        for n in gone {
            self.forget_pty(n);
        }
    }

    /// Forgets a terminal and its channel.
    pub(crate) fn forget_pty(&mut self, n: u64) {
        if let Some(pty) = self.ptys.remove(n) {
            self.drop_channel(&pty.owner, &format!("pty.{n}"));
        }
    }
}

/// What a call is told that the ptyd died on: typed input may have been written in part.
fn ptyd_lost(session: &str) -> RpcError {
    RpcError::worker_lost(session, None, false, "its terminal host died during this call; read the screen")
}
