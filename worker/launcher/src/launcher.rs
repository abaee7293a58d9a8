//! The launcher's state and its one loop: everything that can wake it is in [`Launcher::wait`].

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use shoal_chan::Chan;
use shoal_proto::broker_launcher;
use shoal_proto::hello::ExitStatus;
use shoal_proto::launcher_ptyd;
use shoal_proto::launcher_worker;
use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::Limits;
use shoal_proto::supervisor_launcher::{self, ToSupervisor};
use shoal_sys::poll::{self, Ready};
use shoal_sys::signal::SignalFd;

use crate::commands::Commands;
use crate::ladder::Ladder;
use crate::memory::MemoryEvents;
use crate::orphans::Orphans;
use crate::roles::Roles;
use crate::terminals::Terminals;

pub(crate) type SupervisorEdge = Chan<ToSupervisor, supervisor_launcher::ToLauncher>;
pub(crate) type BrokerEdge = Chan<broker_launcher::ToBroker, broker_launcher::ToLauncher>;
pub(crate) type WorkerEdge = Chan<launcher_worker::ToWorker, launcher_worker::ToLauncher>;
pub(crate) type PtydEdge = Chan<launcher_ptyd::ToPtyd, launcher_ptyd::ToLauncher>;

/// Where the session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The first worker has not said hello.
    Birth,
    /// Commands run.
    Up,
    /// No new commands; a ladder ends those there are.
    EndCommands,
    /// Worker and ptyd were killed and are waited for.
    EndRoles,
    /// Nothing is left: the loop ends.
    Over,
}

/// Everything the launcher knows.
pub(crate) struct Launcher {
    pub(crate) section: Section,
    pub(crate) limits: Limits,
    pub(crate) phase: Phase,
    pub(crate) generation: u32,
    pub(crate) supervisor: Option<SupervisorEdge>,
    pub(crate) broker: Option<BrokerEdge>,
    /// Counts the brokers that came after the first.
    pub(crate) broker_ends: u32,
    pub(crate) worker: Option<WorkerEdge>,
    pub(crate) ptyd: Option<PtydEdge>,
    pub(crate) roles: Roles,
    pub(crate) commands: Commands,
    pub(crate) orphans: Orphans,
    pub(crate) ladders: Vec<Ladder>,
    pub(crate) terminals: Terminals,
    pub(crate) suspended: BTreeSet<launcher_worker::RunId>,
    /// The session is stopped as a whole.
    pub(crate) frozen: bool,
    /// Executions the broker cancelled: they start nothing more.
    pub(crate) cancelled: BTreeSet<launcher_worker::RunId>,
    pub(crate) signals: SignalFd,
    /// What bounds the session's memory as a whole, if anything does.
    pub(crate) memory: Option<MemoryEvents>,
    /// How the last worker ended: the exit status of a local launcher.
    pub(crate) worker_end: Option<ExitStatus>,
}

/// Who can wake the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Signals,
    Supervisor,
    Broker,
    Worker,
    Ptyd,
}

impl Launcher {
    /// A launcher without peers.
    pub(crate) fn new(section: Section, limits: Limits, roles: Roles, signals: SignalFd) -> Self {
        Self {
            section,
            limits,
            phase: Phase::Birth,
            generation: 0,
            supervisor: None,
            broker: None,
            broker_ends: 0,
            worker: None,
            ptyd: None,
            roles,
            commands: Commands::default(),
            orphans: Orphans::default(),
            ladders: Vec::new(),
            terminals: Terminals::default(),
            suspended: BTreeSet::new(),
            frozen: false,
            cancelled: BTreeSet::new(),
            signals,
            memory: None,
            worker_end: None,
        }
    }

    /// Serves until nothing is left.
    pub(crate) fn serve(&mut self) -> std::io::Result<()> {
        while self.phase != Phase::Over {
            for peer in self.wait()? {
                match peer {
                    Peer::Signals => self.on_signals()?,
                    Peer::Supervisor => self.on_supervisor_ready(),
                    Peer::Broker => self.on_broker_ready(),
                    Peer::Worker => self.on_worker_ready(),
                    Peer::Ptyd => self.on_ptyd_ready(),
                }
            }
            self.reap()?;
            let now = now();
            self.climb(now);
            self.end_silent_roles(now);
            self.end_step();
        }
        Ok(())
    }

    /// Waits for a peer, a signal or the next thing that is due.
    fn wait(&self) -> std::io::Result<Vec<Peer>> {
        let mut peers = vec![Peer::Signals];
        let mut interests = vec![(self.signals.as_fd(), Ready::READ)];
        let mut add = |peer, fd, write| {
            peers.push(peer);
            interests.push((fd, Ready { read: true, write, hang_up: false }));
        };
        if let Some(edge) = &self.supervisor {
            add(Peer::Supervisor, edge.as_fd(), edge.has_queued());
        }
        if let Some(edge) = &self.broker {
            add(Peer::Broker, edge.as_fd(), edge.has_queued());
        }
        if let Some(edge) = &self.worker {
            add(Peer::Worker, edge.as_fd(), edge.has_queued());
        }
        if let Some(edge) = &self.ptyd {
            add(Peer::Ptyd, edge.as_fd(), edge.has_queued());
        }
        let ready = poll_all(&interests, self.timeout())?;
        Ok(peers.into_iter().zip(ready).filter(|(_, ready)| ready.any()).map(|(peer, _)| peer).collect())
    }

    /// Time until a ladder or a role's hello is due; without either the loop waits for its peers alone.
    fn timeout(&self) -> Option<Duration> {
        let now = now();
        let ladders = self.ladders.iter().map(|ladder| ladder.wake(now));
        ladders.chain(self.roles.hello_due()).min().map(|due| due.saturating_duration_since(now))
    }

    /// SIGCHLD only wakes the loop; a request to end is one from whoever started us by hand.
    fn on_signals(&mut self) -> std::io::Result<()> {
        while let Some(signal) = self.signals.read()? {
            if signal != libc::SIGCHLD {
                self.begin_end(Duration::ZERO);
            }
        }
        Ok(())
    }
}

fn poll_all(interests: &[(BorrowedFd<'_>, Ready)], timeout: Option<Duration>) -> std::io::Result<Vec<Ready>> {
    poll::poll(interests, timeout)
}

/// The clock of the loop; everything below is handed the time.
#[expect(clippy::disallowed_methods, reason = "the one place where this process reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
