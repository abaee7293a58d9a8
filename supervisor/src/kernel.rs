//! The supervisor's state, its loop, and everything that can wake it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shoal_jail::plan::Protected;
use shoal_jail::probe::Host;
use shoal_place::Vars;
use shoal_proto::supervisor_broker::SessionId;
use shoal_sys::pidfd::Pidfd;
use shoal_sys::poll::{Ready, poll};
use shoal_sys::process::{Exit, reap};
use shoal_sys::signal::SignalFd;

use crate::drain::Drain;
use crate::edges::BrokerChan;
use crate::groups::Groups;
use crate::lifecycle::{Act, Life};
use crate::listener::Listener;
use crate::means::Means;
use crate::options::Options;
use crate::policy::{Files, Policy, Run};
use crate::refuse::{PATIENCE, refuse_all};
use crate::roles::Roles;
use crate::session::Session;
use crate::state::StateDir;
use crate::trial::FirstStart;
use crate::watch::Watch;
use crate::{log, notify};

/// Messages taken from one peer before the others are looked at.
pub(crate) const BATCH: usize = 32;

/// A broker process.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) pid: i32,
    pub(crate) process: Pidfd,
    pub(crate) edge: BrokerChan,
    /// It introduced itself.
    pub(crate) greeted: bool,
}

/// Everything the supervisor holds.
pub(crate) struct Kernel {
    pub(crate) options: Options,
    pub(crate) vars: Vars,
    pub(crate) means: Means,
    pub(crate) state: StateDir,
    pub(crate) listener: Listener,
    pub(crate) roles: Roles,
    /// The part of the host's control groups that is this kernel's own, if one is.
    pub(crate) groups: Option<Groups>,
    /// What the host offers, found by trial at start.
    pub(crate) host: Host,
    /// Places of this kernel that no session sees or changes.
    pub(crate) protected: Protected,
    pub(crate) files: Files,
    pub(crate) policy: Policy,
    /// Counts up with each accepted policy.
    pub(crate) policy_generation: u32,
    pub(crate) compiler: Option<Run>,
    /// A reload was asked for while a compiler was at work.
    pub(crate) reload_again: bool,
    pub(crate) life: Life,
    pub(crate) broker: Option<Broker>,
    pub(crate) broker_starts: u32,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) next_session: SessionId,
    pub(crate) start_dir: String,
    pub(crate) started_ns: i64,
    pub(crate) first_start: FirstStart,
    pub(crate) drain: Option<Drain>,
    /// A client asked for the end: nobody is to come after this kernel.
    pub(crate) asked_to_end: bool,
    pub(crate) watchdog: Option<(Duration, Instant)>,
    pub(crate) signals: SignalFd,
    /// The policy files; `None` when they cannot be watched.
    pub(crate) watch: Option<Watch>,
}

/// What can wake the supervisor; what is due by time is looked at after every wake.
#[derive(Clone, Copy, Debug)]
enum Wake {
    Signals,
    /// Something happened to the policy files.
    Files,
    Broker,
    Session(SessionId),
    /// Clients wait and nobody serves.
    Listener,
}

impl Kernel {
    /// Works until the kernel is drained.
    pub(crate) fn serve(&mut self) -> std::io::Result<()> {
        while !self.is_drained() {
            let now = clock();
            self.on_time(now);
            let (wakes, interests) = self.interests(now);
            let timeout = self.due().map(|due| due.saturating_duration_since(clock()));
            // Rounded up: a timer that is not quite due would make a loop of empty waits.
            let ready = poll(&interests, timeout.map(|t| t + Duration::from_millis(1)))?;
            let woken: Vec<Wake> =
                wakes.into_iter().zip(ready).filter(|(_, r)| r.any()).map(|(wake, _)| wake).collect();
            for wake in woken {
                self.on_wake(wake, clock())?;
            }
        }
        Ok(())
    }

    fn interests(&self, now: Instant) -> (Vec<Wake>, Vec<(BorrowedFd<'_>, Ready)>) {
        let mut wakes = vec![Wake::Signals];
        let mut interests = vec![(self.signals.as_fd(), Ready::READ)];
        if let Some(watch) = &self.watch {
            wakes.push(Wake::Files);
            interests.push((watch.as_fd(), Ready::READ));
        }
        if let Some(broker) = &self.broker {
            wakes.push(Wake::Broker);
            interests.push((broker.edge.as_fd(), Ready { write: broker.edge.has_queued(), ..Ready::READ }));
        }
        for (id, session) in self.sessions.iter().filter(|(_, session)| !session.launcher_is_gone()) {
            wakes.push(Wake::Session(*id));
            interests.push((session.edge.as_fd(), Ready { write: session.edge.has_queued(), ..Ready::READ }));
        }
        if self.refuses(now) {
            wakes.push(Wake::Listener);
            interests.push((self.listener.fd.as_fd(), Ready::READ));
        }
        (wakes, interests)
    }

    fn on_wake(&mut self, wake: Wake, now: Instant) -> std::io::Result<()> {
        match wake {
            Wake::Signals => self.on_signals(now)?,
            Wake::Files => {
                if let Some(Err(e)) = self.watch.as_mut().map(|watch| watch.on_ready(now)) {
                    log::line(&format!("the policy files are no longer watched: {e}"));
                    self.watch = None;
                }
            }
            Wake::Broker => self.on_broker_ready(now),
            Wake::Session(id) => self.on_launcher_ready(id, now),
            Wake::Listener => {
                let retry = self.life.due().map_or(PATIENCE, |due| due.saturating_duration_since(now));
                refuse_all(self.listener.fd.as_fd(), retry);
            }
        }
        Ok(())
    }

    fn on_signals(&mut self, now: Instant) -> std::io::Result<()> {
        while let Some(signal) = self.signals.read()? {
            match signal {
                libc::SIGCHLD => self.reap_all(now)?,
                libc::SIGHUP => self.reload(now),
                other => {
                    log::line(&format!("signal {other}: draining"));
                    self.begin_drain(crate::drain::GRACE, now);
                }
            }
        }
        Ok(())
    }

    /// Equal signals that came together count once, so this takes every child that has ended.
    fn reap_all(&mut self, now: Instant) -> std::io::Result<()> {
        while let Some(reaped) = reap()? {
            let session = self.sessions.values().find(|s| s.pid == reaped.pid && !s.launcher_is_gone()).map(|s| s.id);
            if self.broker.as_ref().is_some_and(|broker| broker.pid == reaped.pid) {
                self.on_broker_exit(reaped.exit, now);
            } else if self.compiler.as_ref().is_some_and(|run| run.pid == reaped.pid) {
                self.on_compiled(reaped.exit, now);
            } else if let Some(id) = session {
                self.on_launcher_exit(id, reaped.exit, now);
            }
            // Anyone else was adopted from a session whose launcher had died.
        }
        Ok(())
    }

    fn due(&self) -> Option<Instant> {
        let away = self.life.away_since().map(|since| since + PATIENCE).filter(|_| !self.refuses(clock()));
        let sessions = self.sessions.values().map(Session::due);
        let drain = self.drain.as_ref().map(|drain| drain.due());
        let changed = self.watch.as_ref().and_then(|watch| watch.due);
        let fixed = [self.life.due(), away, drain, changed, self.compiler.as_ref().map(|run| run.deadline)];
        sessions.chain(fixed.into_iter().flatten()).chain(self.watchdog.map(|(_, due)| due)).min()
    }

    fn on_time(&mut self, now: Instant) {
        let act = self.life.tick(now);
        self.act(act, now);
        if let Some(run) = self.compiler.as_mut().filter(|run| run.deadline <= now) {
            run.kill();
            run.deadline = now + Duration::from_secs(1);
        }
        if self.watch.as_mut().and_then(|watch| watch.due.take_if(|due| *due <= now)).is_some() {
            self.reload(now);
        }
        let due: Vec<SessionId> = self.sessions.values().filter(|s| s.due() <= now).map(|s| s.id).collect();
        for id in due {
            self.on_session_due(id, now);
        }
        if let Some((period, due)) = &mut self.watchdog
            && *due <= now
        {
            *due = now + *period;
            notify::alive();
        }
        self.on_drain_due(now);
    }

    /// Does what the broker's life asks for.
    pub(crate) fn act(&mut self, act: Act, now: Instant) {
        match act {
            Act::Nothing | Act::BackOff => {}
            Act::Start => self.start_broker(now),
            Act::Serve => self.on_broker_serves(),
            Act::Ping => self.ping_broker(),
            Act::Abort => {
                log::line("the broker does not answer: aborting it");
                self.signal_broker(libc::SIGABRT);
            }
            Act::Kill => {
                log::line("the broker is stuck: killing it");
                self.signal_broker(libc::SIGKILL);
            }
        }
    }

    /// Clients are answered here when nobody has served them for longer than they wait.
    fn refuses(&self, now: Instant) -> bool {
        self.drain.is_none() && self.life.away_since().is_some_and(|since| now >= since + PATIENCE)
    }

    /// Starts the compiler; the policy in force stays until it is done.
    pub(crate) fn reload(&mut self, now: Instant) {
        if self.compiler.is_some() {
            self.reload_again = true;
            return;
        }
        match Run::start(&self.files, &self.roles, now) {
            Ok(run) => self.compiler = Some(run),
            Err(why) => self.reject_policy(&why),
        }
    }

    fn on_compiled(&mut self, exit: Exit, now: Instant) {
        let Some(run) = self.compiler.take() else { return };
        match run.finish(exit, &self.options) {
            Ok(policy) => {
                self.policy = policy;
                self.policy_generation += 1;
                log::line("policy loaded again");
                self.tell_sections();
            }
            Err(why) => self.reject_policy(&why),
        }
        if std::mem::take(&mut self.reload_again) {
            self.reload(now);
        }
    }

    fn reject_policy(&mut self, why: &str) {
        log::line(&format!("policy rejected, the one in force stays: {why}"));
        self.tell_rejected(why);
    }
}

/// The time by which deadlines are set: it does not jump, and does not count a machine's sleep.
// The loop is where the clock is read; everything below is handed the time.
#[allow(clippy::disallowed_methods)]
pub(crate) fn clock() -> Instant {
    Instant::now()
}

/// Nanoseconds since the epoch, for display.
#[allow(clippy::disallowed_methods)]
pub(crate) fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Borrows a list of owned descriptors.
pub(crate) fn borrowed(fds: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    fds.iter().map(AsFd::as_fd).collect()
}
