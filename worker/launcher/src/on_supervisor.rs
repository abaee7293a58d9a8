//! What the supervisor orders. Its end, or a broken edge to it, ends the session.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use shoal_chan::{ChanError, Received};
use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::launcher_ptyd::ToPtyd;
use shoal_proto::launcher_worker::ToWorker;
use shoal_proto::supervisor_broker::Ping;
use shoal_proto::supervisor_launcher::{Generation, RoleDied, ToLauncher, ToSupervisor};
use shoal_proto::{Text, Violation};

use crate::climb::signal_all;
use crate::edge;
use crate::ladder::Prey;
use crate::launcher::Launcher;

/// Looks for processes that were forked while a freeze stopped others. What still forks then is as fast as we are.
const FREEZE_LOOKS: usize = 16;

impl Launcher {
    /// Takes what the supervisor sent.
    pub(crate) fn on_supervisor_ready(&mut self) {
        let Some(open) = self.supervisor.as_mut() else { return };
        let taken = edge::take(open);
        let mut end = taken.end;
        for Received { msg, fds } in taken.messages {
            if let Err(violation) = self.on_supervisor(msg, fds) {
                end = Some(ChanError::Violation(violation));
                break;
            }
        }
        if let Some(end) = end {
            edge::note_end("supervisor to launcher", &end);
            self.abandon();
        }
    }

    fn on_supervisor(&mut self, message: ToLauncher, fds: Vec<OwnedFd>) -> Result<(), Violation> {
        let mut fds = fds.into_iter();
        match message {
            ToLauncher::Birth(_) => return Err(Violation::State { what: "Birth", state: "born" }),
            ToLauncher::Adopt(generation) => self.adopt(generation, &mut fds)?,
            ToLauncher::StartWorker(generation) => {
                self.generation = generation.generation;
                if self.roles.worker.is_some() {
                    return Err(Violation::State { what: "StartWorker", state: "a worker runs" });
                }
                let started = self.start_worker(fds.next());
                self.check_start(SessionRole::Worker, started);
            }
            ToLauncher::StartPtyd(generation) => {
                self.generation = generation.generation;
                if self.roles.ptyd.is_some() {
                    return Err(Violation::State { what: "StartPtyd", state: "a ptyd runs" });
                }
                let started = fds.next().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput));
                let started = started.and_then(|end| self.start_ptyd(end));
                self.check_start(SessionRole::Ptyd, started);
            }
            ToLauncher::Kill(kill) => self.begin_end(Duration::from_millis(kill.grace_ms.into())),
            ToLauncher::Freeze(ping) => self.freeze(ping),
            ToLauncher::Thaw(ping) => self.thaw(ping),
            ToLauncher::Ping(ping) => self.tell_supervisor(&ToSupervisor::Pong(ping)),
        }
        Ok(())
    }

    /// A fresh broker came. Ends for roles that are not there are dropped: they get theirs when they start.
    fn adopt(&mut self, generation: Generation, fds: &mut impl Iterator<Item = OwnedFd>) -> Result<(), Violation> {
        self.generation = generation.generation;
        let broker = fds.next().map(edge::open).transpose().map_err(|e| Violation::Field(e.to_string()))?;
        self.broker = broker;
        self.broker_ends = self.broker_ends.wrapping_add(1);
        self.greet_broker();
        if let Some(end) = fds.next()
            && self.roles.worker.is_some()
        {
            self.tell_worker(&ToWorker::Adopt(generation), &[end.as_fd()]);
        }
        if let Some(end) = fds.next()
            && self.roles.ptyd.is_some()
            && !edge::tell(&mut self.ptyd, &ToPtyd::Adopt(generation), &[end.as_fd()])
        {
            self.end_role(SessionRole::Ptyd);
        }
        Ok(())
    }

    /// Our hello, the first message on a broker's edge.
    pub(crate) fn greet_broker(&mut self) {
        let hello = edge::hello(self.generation);
        self.tell_broker(&shoal_proto::broker_launcher::ToBroker::Hello(hello));
    }

    /// A role that could not be started is told like one that ended at once.
    fn check_start(&mut self, role: SessionRole, started: io::Result<()>) {
        if let Err(error) = started {
            edge::note_end("starting a role", &ChanError::Io(error));
            let status = ExitStatus { code: Some(127), signal: None };
            self.tell_supervisor(&ToSupervisor::RoleDied(RoleDied { role, status, fault: Text::default() }));
        }
    }

    fn freeze(&mut self, ping: Ping) {
        self.frozen = true;
        let mut stopped: BTreeSet<i32> = self.roles.worker.iter().map(|role| role.pid).collect();
        signal_all(&stopped, libc::SIGSTOP);
        // What is forked while others are stopped is found by the next look.
        for _ in 0..FREEZE_LOOKS {
            let mut fresh = self.members_of(Prey::Everything);
            fresh.retain(|pid| !stopped.contains(pid));
            if fresh.is_empty() {
                break;
            }
            signal_all(&fresh, libc::SIGSTOP);
            stopped.extend(fresh);
        }
        self.tell_supervisor(&ToSupervisor::Frozen(ping));
    }

    /// Continues everything but the runs that were suspended on their own.
    fn thaw(&mut self, ping: Ping) {
        self.frozen = false;
        let mut pids = self.members_of(Prey::Everything);
        let suspended = self.commands.iter().filter(|(_, record)| self.is_held(record.who));
        let suspended: BTreeSet<_> = suspended.map(|(serial, _)| serial).collect();
        let tree = self.look();
        for pid in self.commands.members(&suspended, &tree) {
            pids.remove(&pid);
        }
        pids.extend(self.roles.worker.iter().map(|role| role.pid));
        signal_all(&pids, libc::SIGCONT);
        self.tell_supervisor(&ToSupervisor::Frozen(ping));
    }
}
