//! What a launcher says, and how its session goes on.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use shoal_chan::{ChanError, Received};
use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::supervisor_broker::{Frozen, Ping, RoleExit, RoleUp, SessionId, SessionUp, ToBroker};
use shoal_proto::supervisor_launcher::{Generation, RoleDied, RoleStarted, ToLauncher, ToSupervisor};
use shoal_proto::{EDGE_VERSION, Text, Violation};
use shoal_sys::process::Exit;

use crate::birth::{self, Failed};
use crate::edges;
use crate::kernel::{BATCH, Kernel, borrowed};
use crate::log;
use crate::session::{Phase, Session};

impl Kernel {
    /// Takes what a launcher sent. Its words are hostile input: one wrong message ends the session.
    pub(crate) fn on_launcher_ready(&mut self, id: SessionId, now: Instant) {
        for _ in 0..BATCH {
            // One that broke the edge is not listened to again.
            let Some(session) = self.sessions.get_mut(&id).filter(|session| session.fault.is_none()) else { return };
            // A peer that takes nothing more may still have said something.
            let _unsent = session.edge.flush();
            match session.edge.try_recv() {
                Ok(None) => return,
                Ok(Some(Received { msg, .. })) => {
                    if let Err(violation) = self.on_launcher(id, msg, now) {
                        self.distrust(id, &violation.to_string(), now);
                        return;
                    }
                }
                // A launcher that closed its edge is dead or as good as dead.
                Err(ChanError::Closed) => return self.kill_launcher(id, now),
                Err(e) => return self.distrust(id, &e.to_string(), now),
            }
        }
    }

    fn distrust(&mut self, id: SessionId, fault: &str, now: Instant) {
        if let Some(session) = self.sessions.get_mut(&id) {
            log::line(&format!("{}: its launcher broke the edge ({fault}): killing it", session.label()));
            session.fault = Some(fault.to_owned());
        }
        self.kill_launcher(id, now);
    }

    fn on_launcher(&mut self, id: SessionId, message: ToSupervisor, now: Instant) -> Result<(), Violation> {
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        match message {
            ToSupervisor::Ready(hello) => {
                if hello.version != EDGE_VERSION || hello.build.as_str() != shoal_proto::hello::BUILD {
                    return Err(Violation::Field(format!("another build: {}", hello.build)));
                }
                return self.on_session_up(id, now);
            }
            ToSupervisor::BirthFailed(failed) => {
                let Phase::Born { order, .. } = session.phase else {
                    return Err(Violation::State { what: "BirthFailed", state: "not born" });
                };
                let step = Failed::at(failed.step.as_str(), failed.errno);
                self.fail_birth(id, order, step, now);
            }
            ToSupervisor::RoleDied(died) => return self.on_role_died(id, died, now),
            ToSupervisor::RoleStarted(started) => return self.on_role_started(id, started),
            ToSupervisor::Ended(_ping) => {
                if !matches!(session.phase, Phase::Ending(_)) {
                    return Err(Violation::State { what: "Ended", state: "not ending" });
                }
            }
            ToSupervisor::Frozen(ping) => {
                if let Some(freeze) = session.freeze.take_if(|freeze| freeze.order == ping.n) {
                    session.frozen = freeze.want;
                    let frozen = Frozen { order: freeze.order, frozen: freeze.want };
                    self.tell_broker(&ToBroker::Frozen(frozen), &[]);
                }
            }
            ToSupervisor::Pong(ping) => session.pulse.answered(ping.n),
        }
        Ok(())
    }

    /// READY: the broker gets its ends, and never before.
    fn on_session_up(&mut self, id: SessionId, now: Instant) -> Result<(), Violation> {
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        let (order, ends) = match std::mem::replace(&mut session.phase, Phase::Up) {
            Phase::Born { order, ends, .. } => (order, ends),
            // It was ordered to end before it was up; the end goes on.
            ending @ Phase::Ending(_) => {
                session.phase = ending;
                return Ok(());
            }
            Phase::Up => return Err(Violation::State { what: "Ready", state: "up" }),
        };
        session.pulse = crate::session::Pulse::new(now);
        log::detail(&format!("{}: up", session.label()));
        if session.trial {
            drop(ends);
            self.begin_end(id, None, now);
            self.on_trial(Ok(()));
            return Ok(());
        }
        let up = SessionUp { order, session: id, generation: session.generation, launcher: session.pid };
        self.tell_broker(&ToBroker::SessionUp(up), &borrowed(&ends));
        Ok(())
    }

    /// A birth that failed: the broker is told why, and what was made is ended.
    pub(crate) fn fail_birth(&mut self, id: SessionId, order: u64, failed: Failed, now: Instant) {
        let trial = self.sessions.get(&id).is_some_and(|session| session.trial);
        self.begin_end(id, None, now);
        if trial { self.on_trial(Err(failed)) } else { self.tell_failed(order, failed) }
    }

    fn on_role_died(&mut self, id: SessionId, died: RoleDied, now: Instant) -> Result<(), Violation> {
        let RoleDied { role, status, fault } = died;
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        if let Phase::Born { order, .. } = session.phase {
            let failed = Failed::at(format!("start the {role:?} ({status:?})"), 0);
            self.fail_birth(id, order, failed, now);
            return Ok(());
        }
        if !session.is_up() {
            return Ok(());
        }
        // The broker is told of each: what was never started must not fill its queue.
        let state = "it does not run";
        let slot = session.role(role).filter(|slot| slot.inner_pid.is_some() || slot.pending.is_some());
        let slot = slot.ok_or(Violation::State { what: "RoleDied", state })?;
        let delay = slot.died(now);
        let restart_in_ms = delay.map(|delay| u32::try_from(delay.as_millis()).unwrap_or(u32::MAX));
        log::line(&format!("{}: {role:?} ended with {status:?}; restart in {restart_in_ms:?} ms", session.label()));
        let exit = RoleExit { session: id, role, status, restart_in_ms, fault };
        self.tell_broker(&ToBroker::RoleExit(exit), &[]);
        if delay.is_some_and(|delay| delay.is_zero()) {
            self.start_role(id, role, now);
        }
        Ok(())
    }

    fn on_role_started(&mut self, id: SessionId, started: RoleStarted) -> Result<(), Violation> {
        let Some(session) = self.sessions.get_mut(&id) else { return Ok(()) };
        let is_born = matches!(session.phase, Phase::Born { .. });
        if !is_born && !session.is_up() {
            return Ok(());
        }
        let state = "it was not to be started";
        let slot = session.role(started.role);
        let slot = slot.filter(|slot| slot.pending.is_some() || (is_born && slot.inner_pid.is_none()));
        let slot = slot.ok_or(Violation::State { what: "RoleStarted", state })?;
        slot.inner_pid = Some(started.pid);
        let pending = slot.pending.take();
        let generation = session.generation;
        if let Some(end) = pending {
            let up = RoleUp { session: id, role: started.role, generation };
            self.tell_broker(&ToBroker::RoleUp(up), &[end.as_fd()]);
        }
        Ok(())
    }

    /// Starts a role (again) with a fresh end; the broker gets the other one when the role runs.
    pub(crate) fn start_role(&mut self, id: SessionId, role: SessionRole, now: Instant) {
        let edge = match role {
            SessionRole::Launcher => return,
            SessionRole::Worker => edges::BROKER_WORKER,
            SessionRole::Ptyd => edges::BROKER_PTYD,
        };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let (upper, lower) = match edges::ends(edge) {
            Ok(ends) => ends,
            Err(e) => {
                log::line(&format!("{}: no edge for its {role:?} yet: {e}", session.label()));
                if let Some(slot) = session.role(role) {
                    slot.try_later(now);
                }
                return;
            }
        };
        session.generation += 1;
        let generation = Generation { generation: session.generation };
        let Some(slot) = session.role(role) else { return };
        slot.restart_at = None;
        slot.restarts += 1;
        slot.pending = Some(upper);
        let message = if role == SessionRole::Worker {
            ToLauncher::StartWorker(generation)
        } else {
            ToLauncher::StartPtyd(generation)
        };
        self.tell_launcher(id, &message, &[lower.as_fd()]);
    }

    /// Sends to a launcher. One whose queue is full does not read: its session ends.
    pub(crate) fn tell_launcher(&mut self, id: SessionId, message: &ToLauncher, fds: &[BorrowedFd<'_>]) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match session.edge.send(message, fds) {
            // A dead launcher is the reaper's.
            Ok(()) | Err(ChanError::Closed) => {}
            Err(e) => {
                log::line(&format!("{}: cannot tell its launcher: {e}; killing it", session.label()));
                signal(session, libc::SIGKILL);
            }
        }
    }

    /// Timers of a session: birth, questions, restarts, freeze, end.
    pub(crate) fn on_session_due(&mut self, id: SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(freeze) = session.freeze.take_if(|freeze| freeze.deadline <= now) {
            let frozen = Frozen { order: freeze.order, frozen: !freeze.want };
            self.tell_broker(&ToBroker::Frozen(frozen), &[]);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match &session.phase {
            Phase::Born { order, deadline, .. } if *deadline <= now => {
                let order = *order;
                self.fail_birth(id, order, Failed::at("be ready in time", libc::ETIMEDOUT), now);
            }
            Phase::Born { .. } => {}
            Phase::Up => self.on_up_due(id, now),
            Phase::Ending(_) => self.on_ending_due(id, now),
        }
    }

    fn on_up_due(&mut self, id: SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match session.pulse.ask(now) {
            Ok(None) => {}
            Ok(Some(n)) => self.tell_launcher(id, &ToLauncher::Ping(Ping { n }), &[]),
            Err(crate::session::Silent) => {
                log::line(&format!("{}: its launcher does not answer: killing it", session.label()));
                return self.kill_launcher(id, now);
            }
        }
        for role in [SessionRole::Worker, SessionRole::Ptyd] {
            let slot = self.sessions.get_mut(&id).and_then(|session| session.role(role));
            if slot.is_some_and(|slot| slot.restart_at.is_some_and(|at| at <= now)) {
                self.start_role(id, role, now);
            }
        }
    }

    /// A launcher was reaped, and with it, in a pid namespace of its own, its whole session.
    pub(crate) fn on_launcher_exit(&mut self, id: SessionId, exit: Exit, now: Instant) {
        // Its last words may still be in the socket.
        self.on_launcher_ready(id, now);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match &session.phase {
            Phase::Born { order, .. } => {
                let order = *order;
                let step = birth::read_failure(&session.report);
                let why = session.fault.take().map_or_else(|| format!("it ended with {exit}"), |fault| broke(&fault));
                let failed = step.unwrap_or_else(|| Failed::at(format!("start the launcher ({why})"), 0));
                self.fail_birth(id, order, failed, now);
            }
            Phase::Up => {
                log::line(&format!("{}: its launcher ended with {exit}", session.label()));
                let fault = session.fault.as_deref().map(Text::cut).unwrap_or_default();
                let (role, status) = (SessionRole::Launcher, status(exit));
                let exit = RoleExit { session: id, role, status, restart_in_ms: None, fault };
                self.tell_broker(&ToBroker::RoleExit(exit), &[]);
                self.begin_end(id, None, now);
            }
            Phase::Ending(_) => {}
        }
        self.on_launcher_gone(id, now);
    }
}

fn broke(fault: &str) -> String {
    format!("it broke the edge: {fault}")
}

/// Signals the launcher through its handle.
pub(crate) fn signal(session: &Session, number: i32) {
    if let Err(e) = session.launcher.signal(number) {
        log::line(&format!("{}: cannot signal its launcher: {e}", session.label()));
    }
}

fn status(exit: Exit) -> ExitStatus {
    match exit {
        Exit::Code(code) => ExitStatus { code: Some(code), signal: None },
        Exit::Signal(signal) => ExitStatus { code: None, signal: Some(signal) },
    }
}
