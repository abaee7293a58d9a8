//! One session as the supervisor sees it: a launcher, the edge to it, and what was ordered.
//!
//! A session is *born* when its launcher was made, *up* when the launcher said READY (it is confined, and so is its
//! worker), and *ending* when it was ordered to end or something went wrong. It is gone when the launcher was reaped
//! and every process that was ever listed below it is verified to be gone, or when the time for that is over.
//! Deciders, strongest first: the reaper, an order to end, a deadline, the launcher's own words.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use shoal_proto::hello::{HostProcess, SessionRole};
use shoal_proto::supervisor_broker::SessionId;
use shoal_proto::{List, Text};
use shoal_sys::pidfd::Pidfd;
use shoal_sys::procfs::Process;

use crate::backoff::Backoff;
use crate::edges::LauncherChan;
use crate::groups::Group;

/// From the fork to READY.
pub(crate) const BIRTH: Duration = Duration::from_secs(10);
/// Time commands have between TERM and KILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);
/// From the order to the launcher's KILL: the grace and a little for its own work.
pub(crate) const LAUNCHER_KILL: Duration = Duration::from_millis(2500);
/// From the order to the answer, whatever is left.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(5);
/// Between two looks at processes that should be gone; there is no event for somebody else's child.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Between two questions to a launcher.
const PING: Duration = Duration::from_secs(10);
/// Unanswered questions that make a hang.
const MISSES: u32 = 3;
/// The answer to freeze and thaw.
pub(crate) const FREEZE: Duration = Duration::from_secs(2);
/// Until a role for which there was no descriptor is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Deaths of a worker within its backoff's memory after which it is not started again.
const MAX_DEATHS: u32 = 5;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) owner: Text<128>,
    pub(crate) name: Text<64>,
    pub(crate) generation: u32,
    /// Made by the supervisor itself, to see whether sessions can be made.
    pub(crate) trial: bool,
    pub(crate) pid: i32,
    pub(crate) launcher: Pidfd,
    pub(crate) edge: LauncherChan,
    /// What the jail's set-up says when it fails before the launcher runs.
    pub(crate) report: OwnedFd,
    pub(crate) phase: Phase,
    pub(crate) worker: Role,
    pub(crate) ptyd: Role,
    pub(crate) freeze: Option<Freeze>,
    /// Its processes are stopped.
    pub(crate) frozen: bool,
    pub(crate) pulse: Pulse,
    /// Its control group, where there are any.
    pub(crate) group: Option<Group>,
    /// What its launcher did that no launcher does, if it is ended for that.
    pub(crate) fault: Option<String>,
    /// Processes listed before a kill that nobody ordered.
    pub(crate) seen: BTreeMap<(i32, u64), HostProcess>,
}

/// What is true of a session.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its launcher was made; the broker's ends wait here for READY.
    Born { order: u64, deadline: Instant, ends: Vec<OwnedFd> },
    /// It works.
    Up,
    /// It is to end.
    Ending(Ending),
}

/// A session that is to end.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The broker's order to answer, if one is waiting.
    pub(crate) order: Option<u64>,
    pub(crate) began: Instant,
    /// Every process that was seen, by pid and start.
    pub(crate) known: BTreeMap<(i32, u64), HostProcess>,
    /// When the launcher is killed; `None` when it was.
    pub(crate) kill_at: Option<Instant>,
    /// When the launcher is gone: the next look at what is left.
    pub(crate) look_at: Option<Instant>,
}

/// A role inside the jail that is started again when it dies.
#[derive(Debug)]
pub(crate) struct Role {
    /// Its pid inside the jail while it runs.
    pub(crate) inner_pid: Option<i32>,
    /// The broker's end of a start that is under way.
    pub(crate) pending: Option<OwnedFd>,
    /// When it is started again.
    pub(crate) restart_at: Option<Instant>,
    /// Starts after the first.
    pub(crate) restarts: u32,
    backoff: Backoff,
}

impl Role {
    pub(crate) fn new() -> Self {
        Self { inner_pid: None, pending: None, restart_at: None, restarts: 0, backoff: Backoff::SESSION_ROLE }
    }

    /// Counts a death; says when it is started again, or `None` after too many.
    pub(crate) fn died(&mut self, now: Instant) -> Option<Duration> {
        self.inner_pid = None;
        self.pending = None;
        let delay = self.backoff.failed(now);
        if self.backoff.failures() >= MAX_DEATHS {
            self.restart_at = None;
            return None;
        }
        self.restart_at = Some(now + delay);
        Some(delay)
    }

    /// It could not be started for want of descriptors: they may be there again soon.
    pub(crate) fn try_later(&mut self, now: Instant) {
        self.restart_at = Some(now + AGAIN);
    }
}

/// A freeze or thaw that waits for the launcher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freeze {
    pub(crate) order: u64,
    pub(crate) want: bool,
    pub(crate) deadline: Instant,
}

/// Signs of life of a launcher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulse {
    asked: u64,
    unanswered: u32,
    due: Instant,
}

impl Pulse {
    pub(crate) fn new(now: Instant) -> Self {
        Self { asked: 0, unanswered: 0, due: now + PING }
    }

    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// The next question's number if one is due; an error when too many are unanswered.
    pub(crate) fn ask(&mut self, now: Instant) -> Result<Option<u64>, Silent> {
        if now < self.due {
            return Ok(None);
        }
        if self.unanswered >= MISSES {
            return Err(Silent);
        }
        self.unanswered += 1;
        self.asked += 1;
        self.due = now + PING;
        Ok(Some(self.asked))
    }

    pub(crate) fn answered(&mut self, number: u64) {
        if number == self.asked {
            self.unanswered = 0;
        }
    }
}

/// A launcher that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silent;

impl Session {
    /// The slot of a role inside the jail.
    pub(crate) fn role(&mut self, role: SessionRole) -> Option<&mut Role> {
        match role {
            SessionRole::Launcher => None,
            SessionRole::Worker => Some(&mut self.worker),
            SessionRole::Ptyd => Some(&mut self.ptyd),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up)
    }

    /// The earliest of the session's timers.
    pub(crate) fn due(&self) -> Instant {
        let phase = match &self.phase {
            Phase::Born { deadline, .. } => Some(*deadline),
            Phase::Up => Some(self.pulse.due()),
            Phase::Ending(ending) => ending.kill_at.or(ending.look_at).or(Some(ending.began + GIVE_UP)),
        };
        let rest = [phase, self.worker.restart_at, self.ptyd.restart_at, self.freeze.map(|f| f.deadline)];
        rest.into_iter().flatten().min().unwrap_or_else(|| self.pulse.due())
    }

    /// For log lines.
    pub(crate) fn label(&self) -> String {
        if self.trial { "trial session".to_owned() } else { format!("session {} of {}", self.name, self.owner) }
    }
}

/// A process as the broker is told of it.
pub(crate) fn host_process(process: &Process) -> HostProcess {
    HostProcess { pid: process.pid, ppid: process.ppid, comm: Text::cut(&process.comm), rss: process.rss }
}

/// A list of processes, cut at the bound of its message.
pub(crate) fn process_list<const N: usize>(processes: impl IntoIterator<Item = HostProcess>) -> List<HostProcess, N> {
    let processes: Vec<HostProcess> = processes.into_iter().take(N).collect();
    List::new(processes).unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_dies_five_times_stays_dead() {
        let now = Instant::now();
        let mut role = Role::new();
        let delays: Vec<Option<u64>> = (0..6).map(|_| role.died(now).map(|d| d.as_secs())).collect();
        assert_eq!(delays, [Some(0), Some(1), Some(2), Some(4), None, None]);
        assert_eq!(role.restart_at, None);
        // Five quiet minutes later the count starts again.
        assert_eq!(role.died(now + Duration::from_secs(301)), Some(Duration::ZERO));
    }

    #[test]
    fn a_role_that_cannot_be_started_now_is_started_later_and_loses_none_of_its_lives() {
        let now = Instant::now();
        let mut role = Role::new();
        for _ in 0..MAX_DEATHS {
            role.try_later(now);
            assert_eq!(role.restart_at, Some(now + AGAIN));
        }
        assert_eq!(role.died(now), Some(Duration::ZERO));
    }

    #[test]
    fn a_launcher_is_asked_and_found_silent() {
        let start = Instant::now();
        let mut pulse = Pulse::new(start);
        let at = |n: u64| start + PING * u32::try_from(n).unwrap();
        assert_eq!(pulse.ask(start), Ok(None));
        assert_eq!(pulse.ask(at(1)), Ok(Some(1)));
        pulse.answered(1);
        for n in 2..5 {
            assert_eq!(pulse.ask(at(n)), Ok(Some(n)));
            pulse.answered(n - 1);
        }
        assert_eq!(pulse.ask(at(5)), Err(Silent));
    }

    #[test]
    fn lists_are_cut() {
        let one = HostProcess { pid: 1, ppid: 0, comm: Text::cut("x"), rss: 0 };
        assert_eq!(process_list::<2>(vec![one; 5]).as_slice().len(), 2);
    }
}
