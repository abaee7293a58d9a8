//! The edge to a session's launcher: cancel, suspend and terminals, which work with a dead or hung worker.

use std::os::fd::OwnedFd;
use std::time::Duration;

use shoal_chan::ChanError;
use shoal_proto::broker_launcher::{Cancel, Listing, PtyFailed, PtyStarted, RunOrder, SpawnPty, ToBroker, ToLauncher};
use shoal_proto::hello::SessionRole;
use shoal_proto::launcher_worker::{Receipt, Rung};
use shoal_proto::supervisor_broker::{RoleExit, SessionId, ToSupervisor};
use shoal_wire::RpcError;

use crate::broker::Broker;
use crate::edge::{Arrived, hello};
use crate::pending::Pending;
use crate::sessions::{Sid, Stage};
use crate::tasks::ReceiptRecord;
use crate::wake::Wake;
use crate::worker_edge::{EXIT_REPORT, KEEPS_DYING};

/// A launcher answers within this, ladders included (three rungs of two seconds).
const ANSWERS_WITHIN: Duration = Duration::from_secs(9);

/// Numbers of terminals stand above those of calls, so that neither is taken for the other.
const TERMINALS: u64 = 1 << 62;

/// What a launcher did.
#[derive(Debug)]
pub(crate) enum LauncherDone {
    /// A ladder or a terminal's end.
    Receipt(ReceiptRecord),
    /// A suspend or resume.
    Done,
    /// A terminal's program runs.
    Started(PtyStarted),
    /// It did not start.
    Failed(PtyFailed),
    /// What runs.
    Listed(Listing),
}

impl Broker {
    /// Takes a fresh launcher end.
    pub(crate) fn connect_launcher(&mut self, sid: Sid, fd: OwnedFd) {
        let Some(peer) = self.open_end(fd, move |epoch, arrived| Wake::Launcher(sid, epoch, arrived)) else { return };
        peer.send(ToLauncher::Hello(hello(0)));
        if let Some(session) = self.sessions.at_mut(sid) {
            session.launcher = Some(peer);
        }
    }

    /// Asks a launcher; `then` gets what it did.
    pub(crate) fn ask_launcher(
        &mut self,
        sid: Sid,
        make: impl FnOnce(u64) -> ToLauncher,
        then: impl FnOnce(&mut Self, Result<LauncherDone, RpcError>) + 'static,
    ) {
        let call = self.fresh();
        self.ask_launcher_as(sid, call, make(call), then);
    }

    /// Asks a launcher for a terminal's program, which it answers under the terminal's number.
    pub(crate) fn ask_for_program(
        &mut self,
        sid: Sid,
        spawn: SpawnPty,
        then: impl FnOnce(&mut Self, Result<LauncherDone, RpcError>) + 'static,
    ) {
        self.ask_launcher_as(sid, TERMINALS + spawn.id, ToLauncher::SpawnPty(spawn), then);
    }

    fn ask_launcher_as(
        &mut self,
        sid: Sid,
        call: u64,
        message: ToLauncher,
        then: impl FnOnce(&mut Self, Result<LauncherDone, RpcError>) + 'static,
    ) {
        let Some(peer) = self.sessions.at(sid).and_then(|session| session.launcher.as_ref()) else {
            return then(self, Err(RpcError::internal("the session's launcher is away")));
        };
        peer.send(message);
        self.launcher_calls.insert(call, Pending { sid, then: Box::new(then) });
        self.after(ANSWERS_WITHIN, move |broker| {
            if let Some(pending) = broker.launcher_calls.remove(&call) {
                (pending.then)(broker, Err(RpcError::internal("the session's launcher does not answer")));
            }
        });
    }

    /// Runs the ladder on an execution.
    pub(crate) fn climb(
        &mut self,
        sid: Sid,
        run: u64,
        rung: Rung,
        then: impl FnOnce(&mut Self, Result<LauncherDone, RpcError>) + 'static,
    ) {
        self.ask_launcher(sid, |call| ToLauncher::Cancel(Cancel { call, run, rung }), then);
    }

    /// Stops or continues the commands of an execution.
    pub(crate) fn pause(
        &mut self,
        sid: Sid,
        run: u64,
        stop: bool,
        then: impl FnOnce(&mut Self, Result<LauncherDone, RpcError>) + 'static,
    ) {
        let make = |call| {
            let order = RunOrder { call, run };
            if stop { ToLauncher::Suspend(order) } else { ToLauncher::Resume(order) }
        };
        self.ask_launcher(sid, make, then);
    }

    /// Something came from a launcher.
    pub(crate) fn on_launcher(&mut self, sid: Sid, epoch: u64, arrived: Arrived<ToBroker>) {
        let current = self.sessions.at(sid).and_then(|s| s.launcher.as_ref()).is_some_and(|peer| peer.epoch == epoch);
        if !current {
            return;
        }
        match arrived {
            Arrived::Message(message, _) => self.on_launcher_message(sid, message),
            Arrived::Gone(ChanError::Violation(violation)) => {
                self.violated(sid, SessionRole::Launcher, &violation.to_string());
            }
            // Its exit is reported by the supervisor, which reaps it; one that lives on without its edge is of no use.
            Arrived::Gone(_) => {
                self.after(EXIT_REPORT, move |broker| {
                    let session = broker.sessions.at(sid);
                    if session.and_then(|s| s.launcher.as_ref()).is_some_and(|peer| peer.epoch == epoch) {
                        broker.violated(sid, SessionRole::Launcher, "it hung up");
                    }
                });
            }
        }
    }

    fn on_launcher_message(&mut self, sid: Sid, message: ToBroker) {
        match message {
            ToBroker::Hello(_) => {}
            ToBroker::PtyStarted(started) => {
                self.launcher_done(sid, TERMINALS.saturating_add(started.id), LauncherDone::Started(started));
            }
            ToBroker::PtyFailed(failed) => {
                self.launcher_done(sid, TERMINALS.saturating_add(failed.id), LauncherDone::Failed(failed));
            }
            ToBroker::PtyExited(exited) => self.on_pty_exited(sid, exited.id, exited.status),
            ToBroker::Receipt(receipt) => {
                self.launcher_done(sid, receipt.call, LauncherDone::Receipt(receipt_record(&receipt)));
            }
            ToBroker::Done(done) => self.launcher_done(sid, done.call, LauncherDone::Done),
            ToBroker::Listing(listing) => self.launcher_done(sid, listing.call, LauncherDone::Listed(listing)),
        }
    }

    fn launcher_done(&mut self, sid: Sid, call: u64, done: LauncherDone) {
        match self.launcher_calls.remove(&call) {
            Some(pending) if pending.sid == sid => (pending.then)(self, Ok(done)),
            Some(pending) => {
                self.launcher_calls.insert(call, pending);
                self.violated(sid, SessionRole::Launcher, "an answer to somebody else's call");
            }
            // It was given up meanwhile.
            None => {}
        }
    }

    /// A role ended, as the supervisor saw it.
    pub(crate) fn on_role_exit(&mut self, exit: &RoleExit) {
        let Some(sid) = self.sessions.of_id(exit.session) else { return };
        if self.sessions.at(sid).is_some_and(|session| session.stage == Stage::Ending) {
            return;
        }
        let how = match (exit.fault.as_str(), exit.status.signal, exit.status.code) {
            ("", Some(signal), _) => format!("signal {}", signal_name(signal)),
            ("", None, code) => format!("exit status {}", code.unwrap_or(0)),
            (fault, ..) => broke_the_protocol(exit.role, fault),
        };
        match exit.role {
            SessionRole::Worker => {
                self.lose_worker(sid, &how);
                if exit.restart_in_ms.is_none() {
                    self.fail_session(sid, KEEPS_DYING);
                }
            }
            SessionRole::Ptyd => {
                if let Some(session) = self.sessions.at_mut(sid) {
                    session.ptyd = None;
                }
                self.kernel_event("restarted", Some("ptyd"), Some(&how));
            }
            SessionRole::Launcher => self.lose_launcher(sid, &how),
        }
    }

    /// A launcher took the whole session with it: it starts anew, as after a lost worker.
    fn lose_launcher(&mut self, sid: Sid, how: &str) {
        self.lose_processes(sid, how);
        self.start_anew(sid);
    }

    /// A role broke the protocol: the session's processes end and it starts anew.
    pub(crate) fn violated(&mut self, sid: Sid, by: SessionRole, what: &str) {
        let Some(session) = self.sessions.at(sid) else { return };
        let (label, had_worker) = (session.label(), session.worker.is_some());
        let why = broke_the_protocol(by, what);
        crate::log::line(format_args!("session {label}: {why}; its processes are ended"));
        let id = self.lose_processes(sid, &why);
        if !had_worker {
            self.note_session(sid, "worker_lost", Some(&why), None);
        }
        let Some(id) = id else { return };
        let kill = |order| ToSupervisor::KillSession(Self::order_about(id)(order));
        self.order(kill, move |broker, _| broker.start_anew(sid));
    }

    /// Everything a session had that lives in a process is gone. Hands back the supervisor's number of those processes.
    fn lose_processes(&mut self, sid: Sid, why: &str) -> Option<SessionId> {
        self.lose_worker(sid, why);
        let id = self.sessions.unbind(sid);
        if let Some(id) = &id {
            self.ancestors.remove(id);
        }
        let session = self.sessions.at_mut(sid)?;
        session.launcher = None;
        session.ptyd = None;
        session.frozen = false;
        let error = RpcError::worker_lost(&session.name, None, false, why);
        self.fail_launcher_calls(sid, &error);
        self.lose_ptys(sid, &error);
        id
    }

    fn start_anew(&mut self, sid: Sid) {
        if self.sessions.at(sid).is_some_and(|session| session.stage == Stage::Restarting) {
            self.order_session(sid);
        }
    }

    /// Answers every call to a launcher that will not answer.
    pub(crate) fn fail_launcher_calls(&mut self, sid: Sid, error: &RpcError) {
        self.fail_calls(|broker| &mut broker.launcher_calls, sid, error);
    }
}

/// What a row and a person are told of a role that was ended for what it said.
fn broke_the_protocol(by: SessionRole, what: &str) -> String {
    let who = match by {
        SessionRole::Worker => "it",
        SessionRole::Launcher => "its launcher",
        SessionRole::Ptyd => "its ptyd",
    };
    crate::json::one_line(&format!("{who} broke the protocol: {what}"), 512)
}

fn receipt_record(receipt: &Receipt) -> ReceiptRecord {
    ReceiptRecord {
        ended: receipt.ended.as_slice().to_vec(),
        survived: receipt.survived.as_slice().to_vec(),
        escalated: receipt.escalated.map(rung_name),
    }
}

/// Name of a rung on the wire.
pub(crate) fn rung_name(rung: Rung) -> &'static str {
    match rung {
        Rung::Int => "int",
        Rung::Term => "term",
        Rung::Kill | Rung::Sweep => "kill",
    }
}

/// Name of a signal, for people and wire.
pub(crate) fn signal_name(signal: u8) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        other => return format!("SIG{other}"),
    };
    name.to_owned()
}
