//! The two roles of a session that the launcher runs: worker and ptyd.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use shoal_chan::ChanError;
use shoal_proto::Text;
use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::supervisor_launcher::{BirthFailed, RoleDied, RoleStarted, ToSupervisor};
use shoal_sys::rlimit::{self, Limit};
use shoal_sys::spawn::{Command, Program};

use crate::children::send_signal;
use crate::edge;
use crate::ladder::{Asker, Ladder, Prey, RUNG_TIME};
use crate::launcher::{Launcher, Phase, now};

/// A role that has not said hello after this long is ended.
const HELLO_TIME: Duration = Duration::from_secs(10);
/// Address space of a ptyd, which holds what hostile programs print: many times what its largest screens take.
const PTYD_MEMORY: u64 = 2 << 30;

/// A role that runs.
#[derive(Debug)]
pub(crate) struct Role {
    /// Its pid.
    pub(crate) pid: i32,
    generation: u32,
    hello_due: Option<Instant>,
    /// What it is ended for, when it broke its edge.
    fault: Text<512>,
}

impl Role {
    fn new(pid: i32, generation: u32) -> Self {
        Self { pid, generation, hello_due: Some(now() + HELLO_TIME), fault: Text::default() }
    }
}

/// Role executables and processes.
#[derive(Debug)]
pub(crate) struct Roles {
    worker_image: OwnedFd,
    ptyd_image: Option<OwnedFd>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    pub(crate) worker: Option<Role>,
    pub(crate) ptyd: Option<Role>,
    /// Counts the workers started: numbers of an earlier worker's commands mean nothing to a later one.
    pub(crate) epoch: u32,
    ptyd_epoch: u32,
}

impl Roles {
    /// Roles by their open executables. The worker gets these arguments after its name, and this environment; a
    /// session's has neither.
    pub(crate) fn new(
        worker_image: OwnedFd,
        ptyd_image: Option<OwnedFd>,
        arguments: Vec<CString>,
        environment: Vec<CString>,
    ) -> Self {
        Self { worker_image, ptyd_image, arguments, environment, worker: None, ptyd: None, epoch: 0, ptyd_epoch: 0 }
    }

    #[cfg(target_os = "linux")]
    /// The open executables, which must stay executable whatever the launcher confines itself to.
    pub(crate) fn images(&self) -> Vec<BorrowedFd<'_>> {
        [&self.worker_image].into_iter().chain(&self.ptyd_image).map(AsFd::as_fd).collect()
    }

    /// Pids of the roles that run.
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.worker.iter().chain(&self.ptyd).map(|role| role.pid).collect()
    }

    /// When a hello is overdue.
    pub(crate) fn hello_due(&self) -> Option<Instant> {
        self.worker.iter().chain(&self.ptyd).filter_map(|role| role.hello_due).min()
    }

    /// The number of the ptyd that runs and has said hello, counted from 1.
    pub(crate) fn greeted_ptyd(&self) -> Option<u32> {
        self.ptyd.as_ref().filter(|role| role.hello_due.is_none()).map(|_| self.ptyd_epoch)
    }

    /// Whether a role runs and has said hello.
    pub(crate) fn has_greeted(&self, role: SessionRole) -> bool {
        let process = if role == SessionRole::Ptyd { &self.ptyd } else { &self.worker };
        process.as_ref().is_some_and(|p| p.hello_due.is_none())
    }

    fn of(&mut self, role: SessionRole) -> &mut Option<Role> {
        if role == SessionRole::Ptyd { &mut self.ptyd } else { &mut self.worker }
    }
}

impl Launcher {
    /// Starts the worker on a fresh edge; `broker_end` becomes its descriptor 4.
    pub(crate) fn start_worker(&mut self, broker_end: Option<OwnedFd>) -> io::Result<()> {
        let (ours, theirs) = pair_ends()?;
        let fds: Vec<BorrowedFd<'_>> =
            [Some(theirs.as_fd()), broker_end.as_ref().map(AsFd::as_fd)].into_iter().flatten().collect();
        let mut argv = vec![c"shoal-worker".to_owned()];
        argv.extend(self.roles.arguments.iter().cloned());
        let command = role(self.roles.worker_image.as_fd(), argv).env(self.roles.environment.clone());
        let pid = start_role(command, &fds)?;
        self.roles.epoch += 1;
        self.roles.worker = Some(Role::new(pid, self.generation));
        self.worker = Some(edge::open(ours)?);
        Ok(())
    }

    /// Starts the ptyd on fresh edges.
    pub(crate) fn start_ptyd(&mut self, broker_end: OwnedFd) -> io::Result<()> {
        let (ours, theirs) = pair_ends()?;
        let fds = [theirs.as_fd(), broker_end.as_fd()];
        let image = self.roles.ptyd_image.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let (_soft, hard) = rlimit::limits(Limit::AddressSpace)?;
        let memory = PTYD_MEMORY.min(hard);
        let command = role(image.as_fd(), vec![c"shoal-ptyd".to_owned()]).limit(Limit::AddressSpace, memory);
        let pid = start_role(command, &fds)?;
        self.roles.ptyd_epoch += 1;
        self.roles.ptyd = Some(Role::new(pid, self.generation));
        self.ptyd = Some(edge::open(ours)?);
        Ok(())
    }

    /// A role confined itself and said hello.
    pub(crate) fn on_role_hello(&mut self, role: SessionRole) {
        let generation = self.generation;
        let Some(process) = self.roles.of(role).as_mut() else { return };
        process.hello_due = None;
        let started = RoleStarted { role, pid: process.pid, generation: process.generation };
        self.tell_supervisor(&ToSupervisor::RoleStarted(started));
        if self.phase == Phase::Birth && role == SessionRole::Worker {
            self.phase = Phase::Up;
            self.tell_supervisor(&ToSupervisor::Ready(edge::hello(generation)));
        }
    }

    /// Ends roles that started and never said hello.
    pub(crate) fn end_silent_roles(&mut self, now: Instant) {
        for role in [SessionRole::Worker, SessionRole::Ptyd] {
            if self.roles.of(role).as_ref().is_some_and(|r| r.hello_due.is_some_and(|due| due <= now)) {
                self.end_role(role);
            }
        }
    }

    /// Ends a role whose edge is over; what it broke, if that is why, is told with its end.
    pub(crate) fn end_role_for(&mut self, role: SessionRole, end: &ChanError) {
        if let (ChanError::Violation(violation), Some(process)) = (end, self.roles.of(role).as_mut()) {
            process.fault = Text::cut(&violation.to_string());
        }
        self.end_role(role);
    }

    /// Kills a role that broke its edge or does not read it; its end is told when it is reaped.
    pub(crate) fn end_role(&mut self, role: SessionRole) {
        match role {
            SessionRole::Ptyd => self.ptyd = None,
            SessionRole::Worker | SessionRole::Launcher => self.worker = None,
        }
        if let Some(process) = self.roles.of(role).as_mut() {
            process.hello_due = None;
            send_signal(process.pid, libc::SIGKILL);
        }
    }

    /// A role was reaped.
    pub(crate) fn on_role_end(&mut self, role: SessionRole, status: ExitStatus) {
        let fault = self.roles.of(role).take().map(|process| process.fault).unwrap_or_default();
        match role {
            SessionRole::Ptyd => self.ptyd = None,
            SessionRole::Worker | SessionRole::Launcher => self.on_worker_end(status),
        }
        if self.phase == Phase::Birth {
            let step = Text::cut("the worker ended before its hello");
            self.tell_supervisor(&ToSupervisor::BirthFailed(BirthFailed { step, errno: 0 }));
        } else if self.phase != Phase::EndRoles {
            self.tell_supervisor(&ToSupervisor::RoleDied(RoleDied { role, status, fault }));
        }
        if self.supervisor.is_none() {
            self.begin_end(Duration::ZERO);
        }
    }

    /// Its commands have nobody to report to: TERM, then KILL.
    fn on_worker_end(&mut self, status: ExitStatus) {
        self.worker = None;
        self.worker_end = Some(status);
        let prey = Prey::Epoch(self.roles.epoch);
        self.ladders.retain(|ladder| !matches!(ladder.asker, Asker::Worker(_)));
        self.ladders.push(Ladder::new(
            0,
            Asker::Nobody,
            prey,
            shoal_proto::launcher_worker::Rung::Term,
            RUNG_TIME,
            now(),
        ));
    }

    /// Tells the supervisor. Without it the session ends; a local launcher never had one.
    pub(crate) fn tell_supervisor(&mut self, message: &ToSupervisor) {
        if !edge::tell(&mut self.supervisor, message, &[]) {
            self.abandon();
        }
    }

    /// Ends the session, whose supervisor is gone. The roles go first: to a broker that still runs they would tell the end
    /// of what is killed now as one of its own, and it is interrupted.
    pub(crate) fn abandon(&mut self) {
        self.supervisor = None;
        self.end_role(SessionRole::Worker);
        self.end_role(SessionRole::Ptyd);
        self.begin_end(Duration::ZERO);
    }
}

/// A fresh edge: our end and the end for the role.
fn pair_ends() -> io::Result<(OwnedFd, OwnedFd)> {
    shoal_sys::socket::pair(shoal_sys::socket::Carrier::NATIVE)
}

fn role(image: BorrowedFd<'_>, argv: Vec<CString>) -> Command<'_> {
    Command::new(Program::Fd(image), argv)
}

/// Starts a role with the launcher's own standard descriptors and the edges from 3 on.
fn start_role<'a>(command: Command<'a>, edges: &[BorrowedFd<'a>]) -> io::Result<i32> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let mut fds = vec![stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    fds.extend_from_slice(edges);
    command.fds(fds).spawn().map(|child| child.pid).map_err(|failed| io::Error::from_raw_os_error(failed.errno))
}
