//! The broker: starting it with everything it borrows, and telling it what happens.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use shoal_chan::ChanError;
use shoal_place::is_session_var;
use shoal_proto::supervisor_broker::{Adopted, Isolation, Ping, Sections, Start, ToBroker};
use shoal_proto::supervisor_launcher::{Generation, ToLauncher};
use shoal_proto::{List, Text};
use shoal_sys::process::Exit;

use crate::birth::{Ends, hello};
use crate::edges::{self, BrokerChan};
use crate::kernel::{Broker, Kernel, borrowed};
use crate::lifecycle::Event;
use crate::session::Phase;
use crate::{log, roles};

impl Kernel {
    /// Starts a broker and hands it listener, state directory, sections and every session that lives.
    pub(crate) fn start_broker(&mut self, now: Instant) {
        if let Err(why) = self.try_start_broker() {
            log::line(&format!("cannot start the broker: {why}"));
            let act = self.life.on(Event::Exited, now);
            return self.act(act, now);
        }
        self.begin_trial(now);
    }

    fn try_start_broker(&mut self) -> Result<(), String> {
        if !self.state.is_in_place() {
            return Err(format!("{} is no longer the directory this kernel opened", self.state.path.display()));
        }
        let (upper, lower) = edges::ends(edges::SUPERVISOR_BROKER).map_err(|e| e.to_string())?;
        let null = shoal_sys::fd::null().map_err(|e| e.to_string())?;
        let stderr = std::io::stderr();
        let command = roles::command(
            &self.roles.broker,
            vec![roles::word("shoal-broker")],
            &null,
            stderr.as_fd(),
            &[lower.as_fd()],
        );
        let child = command.setsid().die_with_parent().spawn().map_err(|e| e.to_string())?;
        drop(lower);
        let mut edge = BrokerChan::from_fd(upper).map_err(|e| e.to_string())?;
        edge.set_nonblocking(true);
        log::detail(&format!("broker {} started", child.pid));
        self.broker = Some(Broker { pid: child.pid, process: child.pidfd, edge, greeted: false });
        let start = self.start_message();
        self.broker_starts += 1;
        let listener = self.listener.fd.try_clone().map_err(|e| e.to_string())?;
        let dir = self.state.dir.try_clone().map_err(|e| e.to_string())?;
        self.tell_broker(&ToBroker::Start(start), &[listener.as_fd(), dir.as_fd()]);
        self.tell_sections();
        self.hand_over_sessions();
        Ok(())
    }

    fn start_message(&self) -> Start {
        let env = self.vars.texts().filter(|(name, _)| is_session_var(name, &[]));
        let env: Vec<_> = env.filter_map(|(n, v)| Some((Text::new(n).ok()?, Text::new(v).ok()?))).take(256).collect();
        let adopt = self.sessions.values().filter(|session| session.is_up()).count();
        Start {
            hello: hello(self.broker_starts + 1),
            started_ns: self.started_ns,
            restarts: self.broker_starts,
            session: Text::cut(&self.options.session),
            socket: Text::cut(&self.listener.path.to_string_lossy()),
            state_dir: Text::cut(if self.options.ephemeral {
                ""
            } else {
                self.state.path.to_str().unwrap_or_default()
            }),
            policy: Text::cut(&self.files.leash.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default()),
            start_dir: Text::cut(&self.start_dir),
            env: List::new(env).unwrap_or_default(),
            require_token: self.options.require_token,
            uid: shoal_sys::process::uid(),
            claims: self.host.claims,
            level: Text::cut(self.host.level()),
            isolation: Isolation {
                namespaces: self.host.namespaces,
                landlock_abi: self.host.landlock_abi,
                seccomp: self.host.seccomp,
                cgroup: self.groups.is_some(),
                missing: Text::cut(&self.host.missing),
            },
            adopt: u32::try_from(adopt).unwrap_or(u32::MAX),
        }
    }

    /// Fresh ends of every edge between a new broker and the sessions that live, with a new generation each.
    fn hand_over_sessions(&mut self) {
        let ids: Vec<_> = self.sessions.values().filter(|s| s.is_up()).map(|s| s.id).collect();
        for id in ids {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let ptyd = session.ptyd.inner_pid.is_some();
            let all = [edges::BROKER_LAUNCHER, edges::BROKER_WORKER, edges::BROKER_PTYD];
            let wanted = if ptyd { &all[..] } else { &all[..2] };
            let ends = match Ends::make(wanted) {
                Ok(ends) => ends,
                Err(e) => {
                    log::line(&format!("{}: no edges for the new broker: {e}", session.label()));
                    continue;
                }
            };
            session.generation += 1;
            let generation = session.generation;
            let adopted = Adopted {
                session: id,
                owner: session.owner.clone(),
                name: session.name.clone(),
                generation,
                ptyd,
                // What the broker before ordered will have happened.
                frozen: session.freeze.map_or(session.frozen, |freeze| freeze.want),
            };
            self.tell_launcher(id, &ToLauncher::Adopt(Generation { generation }), &borrowed(&ends.session));
            self.tell_broker(&ToBroker::Adopt(adopted), &borrowed(&ends.broker));
        }
    }

    /// Sends to the broker, if there is one. A broker whose queue is full does not read: it is ended, and the next one
    /// is told everything again.
    pub(crate) fn tell_broker(&mut self, message: &ToBroker, fds: &[BorrowedFd<'_>]) {
        let Some(broker) = &mut self.broker else { return };
        match broker.edge.send(message, fds) {
            // A dead broker is the reaper's.
            Ok(()) | Err(ChanError::Closed) => {}
            Err(e) => {
                log::line(&format!("cannot tell the broker: {e}; killing it"));
                self.signal_broker(libc::SIGKILL);
            }
        }
    }

    /// The policy in force.
    pub(crate) fn tell_sections(&mut self) {
        let message = Sections { generation: self.policy_generation, rejected: Text::default() };
        match self.policy.memfd.try_clone() {
            Ok(memfd) => self.tell_broker(&ToBroker::Sections(message), &[memfd.as_fd()]),
            Err(e) => log::line(&format!("cannot copy the sections: {e}")),
        }
    }

    /// A policy that was refused; the message always carries the sections that stay in force.
    pub(crate) fn tell_rejected(&mut self, why: &str) {
        let message = Sections { generation: self.policy_generation, rejected: Text::cut(why) };
        match self.policy.memfd.try_clone() {
            Ok(memfd) => self.tell_broker(&ToBroker::Sections(message), &[memfd.as_fd()]),
            Err(e) => log::line(&format!("cannot copy the sections: {e}")),
        }
    }

    pub(crate) fn ping_broker(&mut self) {
        let ping = Ping { n: self.life.asked };
        self.tell_broker(&ToBroker::Ping(ping), &[]);
    }

    pub(crate) fn signal_broker(&self, signal: i32) {
        let Some(broker) = &self.broker else { return };
        if let Err(e) = broker.process.signal(signal) {
            log::line(&format!("cannot signal the broker: {e}"));
        }
    }

    /// The broker was reaped. Its orders die with it: sessions that were being born for it end, and nobody is told of
    /// ends that were ordered.
    pub(crate) fn on_broker_exit(&mut self, exit: Exit, now: Instant) {
        self.broker = None;
        let drained = self.drain.is_some();
        if !drained {
            log::line(&format!("the broker ended with {exit}"));
        }
        let act = self.life.on(Event::Exited, now);
        let mut unborn = Vec::new();
        for session in self.sessions.values_mut() {
            session.freeze = None;
            match &mut session.phase {
                Phase::Born { .. } if !session.trial => unborn.push(session.id),
                Phase::Ending(ending) => ending.order = None,
                Phase::Born { .. } | Phase::Up => {}
            }
        }
        for id in unborn {
            self.begin_end(id, None, now);
        }
        self.act(act, now);
        if drained {
            self.end_all(now);
        }
    }
}
