//! What the broker orders.

use std::time::{Duration, Instant};

use shoal_chan::{ChanError, Received};
use shoal_proto::hello::{HostProcess, SessionRole};
use shoal_proto::supervisor_broker::{
    CreateSession, Frozen, Killed, MAX_SESSIONS, Order, Processes, SessionFailed, SessionProcesses, ToBroker,
    ToSupervisor,
};
use shoal_proto::supervisor_launcher::ToLauncher;
use shoal_proto::{EDGE_VERSION, Hello, List, Text, Violation};
use shoal_sys::procfs::{self, Process};

use crate::birth::{self, Failed, Makings};
use crate::kernel::{BATCH, Kernel};
use crate::lifecycle::Event;
use crate::log;
use crate::session::{BIRTH, FREEZE, Freeze, Phase, Pulse, Role, Session, host_process, process_list};

impl Kernel {
    /// Takes what the broker sent.
    pub(crate) fn on_broker_ready(&mut self, now: Instant) {
        for _ in 0..BATCH {
            let Some(broker) = &mut self.broker else { return };
            // A peer that takes nothing more may still have said something.
            let _unsent = broker.edge.flush();
            let fault = match broker.edge.try_recv() {
                Ok(None) => return,
                Ok(Some(Received { msg, .. })) => match self.on_broker(msg, now) {
                    Ok(()) => continue,
                    Err(violation) => violation.to_string(),
                },
                // Its end is the reaper's to tell; until then there is nothing more to read.
                Err(ChanError::Closed) => return self.on_broker_hang_up(now),
                Err(e) => e.to_string(),
            };
            log::line(&format!("the broker broke its edge ({fault}): killing it"));
            self.signal_broker(libc::SIGKILL);
            return;
        }
    }

    /// A broker that closed its edge is of no use, dead or not.
    fn on_broker_hang_up(&mut self, _now: Instant) {
        self.signal_broker(libc::SIGKILL);
    }

    fn on_broker(&mut self, message: ToSupervisor, now: Instant) -> Result<(), Violation> {
        let greeted = self.broker.as_ref().is_some_and(|broker| broker.greeted);
        if !greeted && !matches!(message, ToSupervisor::Hello(_)) {
            return Err(Violation::State { what: "an order", state: "waiting for hello" });
        }
        match message {
            ToSupervisor::Hello(hello) => self.on_hello(&hello)?,
            ToSupervisor::Ready(_hello) => {
                let act = self.life.on(Event::Ready, now);
                self.act(act, now);
            }
            ToSupervisor::CreateSession(order) => {
                let number = order.order;
                if let Err(failed) = self.create(order, false, now) {
                    self.tell_failed(number, failed);
                }
            }
            ToSupervisor::KillSession(order) => self.kill_session(order, now),
            ToSupervisor::Freeze(order) => self.freeze(order, true, now),
            ToSupervisor::Thaw(order) => self.freeze(order, false, now),
            ToSupervisor::NeedPtyd(order) => self.need_ptyd(order, now),
            ToSupervisor::ListProcesses(ping) => self.list_processes(ping.n),
            ToSupervisor::Shutdown(shutdown) => {
                self.asked_to_end = true;
                self.begin_drain(Duration::from_millis(shutdown.grace_ms.into()), now);
            }
            ToSupervisor::Pong(ping) => self.life.answered(ping.n),
            ToSupervisor::Reload(_ping) => self.reload(now),
            ToSupervisor::Drained(_ping) => self.on_drained(now),
        }
        Ok(())
    }

    fn on_hello(&mut self, hello: &Hello) -> Result<(), Violation> {
        let Some(broker) = &mut self.broker else { return Ok(()) };
        if broker.greeted {
            return Err(Violation::State { what: "hello", state: "greeted" });
        }
        if hello.version != EDGE_VERSION || hello.build.as_str() != shoal_proto::hello::BUILD {
            return Err(Violation::Field(format!("the broker is of another build: {}", hello.build)));
        }
        broker.greeted = true;
        Ok(())
    }

    /// Makes a session; what comes of it is told later.
    pub(crate) fn create(&mut self, order: CreateSession, trial: bool, now: Instant) -> Result<(), Failed> {
        if self.drain.is_some() {
            return Err(Failed::at("start while the kernel drains", 0));
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(Failed::at(format!("have more than {MAX_SESSIONS} sessions"), 0));
        }
        let no_section = || Failed::at(format!("find a section of the policy for {}", order.owner), 0);
        let section = self.policy.sections.serving(order.owner.as_str()).ok_or_else(no_section)?;
        let id = self.next_session;
        let null = shoal_sys::fd::null().map_err(|e| Failed::at("open /dev/null", e.raw_os_error().unwrap_or(0)))?;
        let stderr = std::io::stderr();
        let stderr = if self.options.verbose && !std::io::IsTerminal::is_terminal(&stderr) {
            std::os::fd::AsFd::as_fd(&stderr)
        } else {
            std::os::fd::AsFd::as_fd(&null)
        };
        let makings = Makings {
            means: self.means,
            roles: &self.roles,
            kernel: &self.protected,
            host: &self.host,
            groups: self.groups.as_ref(),
            stderr,
        };
        let newborn = birth::launch(&makings, section, &order, id)?;
        self.next_session += 1;
        let session = Session {
            id,
            owner: order.owner,
            name: order.name,
            generation: 1,
            trial,
            pid: newborn.pid,
            launcher: newborn.launcher,
            edge: newborn.edge,
            report: newborn.report,
            phase: Phase::Born { order: order.order, deadline: now + BIRTH, ends: newborn.ends },
            worker: Role::new(),
            ptyd: Role::new(),
            freeze: None,
            frozen: false,
            pulse: Pulse::new(now),
            fault: None,
            group: newborn.group,
            seen: std::collections::BTreeMap::new(),
        };
        log::detail(&format!("{}: launcher {}", session.label(), session.pid));
        self.sessions.insert(id, session);
        Ok(())
    }

    pub(crate) fn tell_failed(&mut self, order: u64, failed: Failed) {
        let message = SessionFailed {
            order,
            step: Text::cut(&failed.step),
            errno: failed.errno,
            remedy: Text::cut(failed.remedy),
            no_such_dir: failed.no_such_dir,
        };
        self.tell_broker(&ToBroker::SessionFailed(message), &[]);
    }

    fn kill_session(&mut self, Order { order, session }: Order, now: Instant) {
        if self.sessions.contains_key(&session) {
            self.begin_end(session, Some(order), now);
            return;
        }
        let (ended, survived) = (List::default(), List::default());
        self.tell_broker(&ToBroker::Killed(Killed { order, session, ended, survived, duration_ms: 0 }), &[]);
    }

    fn freeze(&mut self, Order { order, session: id }: Order, want: bool, now: Instant) {
        let up = self.sessions.get_mut(&id).filter(|session| session.is_up() && session.freeze.is_none());
        let Some(session) = up else {
            self.tell_broker(&ToBroker::Frozen(Frozen { order, frozen: false }), &[]);
            return;
        };
        session.freeze = Some(Freeze { order, want, deadline: now + FREEZE });
        let ping = shoal_proto::supervisor_broker::Ping { n: order };
        let message = if want { ToLauncher::Freeze(ping) } else { ToLauncher::Thaw(ping) };
        self.tell_launcher(id, &message, &[]);
    }

    fn need_ptyd(&mut self, Order { session: id, .. }: Order, now: Instant) {
        let idle = |session: &&mut Session| {
            session.is_up() && session.ptyd.inner_pid.is_none() && session.ptyd.pending.is_none()
        };
        if self.sessions.get_mut(&id).filter(idle).is_some() {
            self.start_role(id, SessionRole::Ptyd, now);
        }
    }

    fn list_processes(&mut self, order: u64) {
        let all = procfs::processes().unwrap_or_else(|e| {
            log::line(&format!("cannot list processes: {e}"));
            Vec::new()
        });
        let one = |pid: i32| {
            let none = || HostProcess { pid, ppid: 0, comm: Text::default(), rss: 0 };
            all.iter().find(|process| process.pid == pid).map_or_else(none, host_process)
        };
        let sessions: Vec<SessionProcesses> =
            self.sessions.values().filter(|s| !s.trial).map(|session| processes_of(session, &all)).collect();
        let message = Processes {
            order,
            supervisor: one(shoal_sys::process::pid()),
            broker: one(self.broker.as_ref().map_or(0, |broker| broker.pid)),
            sessions: List::new(sessions).unwrap_or_default(),
        };
        self.tell_broker(&ToBroker::Processes(message), &[]);
    }
}

fn processes_of(session: &Session, all: &[Process]) -> SessionProcesses {
    let tree = procfs::below(session.pid, all.to_vec());
    let host_pid = |inner: Option<i32>| {
        let same = |process: &&Process| procfs::inner_pid(process.pid).ok().flatten() == inner;
        let direct = tree.iter().filter(|process| process.ppid == session.pid);
        inner.and_then(|_| direct.clone().find(same)).map_or(0, |process| process.pid)
    };
    SessionProcesses {
        session: session.id,
        launcher: session.pid,
        worker: host_pid(session.worker.inner_pid),
        ptyd: host_pid(session.ptyd.inner_pid),
        restarts: session.worker.restarts,
        all: process_list(tree.iter().map(host_process)),
    }
}
