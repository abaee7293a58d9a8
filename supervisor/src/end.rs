//! Ending a session and proving that it ended.

use std::collections::BTreeMap;
use std::time::Instant;

use shoal_proto::hello::HostProcess;
use shoal_proto::supervisor_broker::{Killed, SessionId, ToBroker};
use shoal_proto::supervisor_launcher::{Kill, ToLauncher};
use shoal_sys::procfs;

use crate::groups::Group;
use crate::kernel::Kernel;
use crate::log;
use crate::on_launcher::signal;
use crate::session::{
    Ending, GIVE_UP, GRACE, LAUNCHER_KILL, LOOK_AGAIN, Phase, Pulse, Session, host_process, process_list,
};

impl Session {
    /// The launcher was reaped: its edge and its pid mean nothing any more.
    pub(crate) fn launcher_is_gone(&self) -> bool {
        matches!(&self.phase, Phase::Ending(ending) if ending.look_at.is_some())
    }
}

impl Kernel {
    /// Lists the session's processes, then asks the launcher to end them all; what is left after the grace is killed
    /// with the launcher. A second order takes the place of the first.
    pub(crate) fn begin_end(&mut self, id: SessionId, order: Option<u64>, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Phase::Ending(ending) = &mut session.phase {
            ending.order = order.or(ending.order);
            return;
        }
        let mut known = BTreeMap::new();
        note_tree(session.pid, &mut known);
        let kill_at = Some(now + LAUNCHER_KILL);
        session.phase = Phase::Ending(Ending { order, began: now, known, kill_at, look_at: None });
        session.worker.restart_at = None;
        session.ptyd.restart_at = None;
        let grace_ms = u32::try_from(GRACE.as_millis()).unwrap_or(0);
        self.tell_launcher(id, &ToLauncher::Kill(Kill { grace_ms }), &[]);
    }

    /// Ends a session without asking.
    pub(crate) fn kill_launcher(&mut self, id: SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match &mut session.phase {
            Phase::Ending(ending) => {
                note_tree(session.pid, &mut ending.known);
                ending.kill_at = None;
            }
            Phase::Born { .. } | Phase::Up => {
                // The reaper tells the broker what became of it; what it leaves behind is found by this list.
                note_tree(session.pid, &mut session.seen);
            }
        }
        // The next thing to happen is the reaper's.
        session.pulse = Pulse::new(now);
        signal(session, libc::SIGKILL);
    }

    /// Timers of an end: the kill of the launcher, then looks at what is left.
    pub(crate) fn on_ending_due(&mut self, id: SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Phase::Ending(ending) = &mut session.phase else { return };
        if ending.kill_at.is_some_and(|at| at <= now) {
            self.kill_launcher(id, now);
        } else {
            self.look(id, now);
        }
    }

    /// The launcher was reaped.
    pub(crate) fn on_launcher_gone(&mut self, id: SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let seen = std::mem::take(&mut session.seen);
        if let Some(group) = session.group.as_ref().filter(|group| group.is_populated())
            && let Err(e) = group.kill()
        {
            log::line(&format!("{}: cannot end its control group: {e}", session.label()));
        }
        if let Phase::Ending(ending) = &mut session.phase {
            ending.known.extend(seen);
            ending.kill_at = None;
            ending.look_at = Some(now);
        }
        self.look(id, now);
    }

    /// Looks which of the listed processes are still there, kills them, and answers when none is or time is over.
    fn look(&mut self, id: SessionId, now: Instant) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Phase::Ending(ending) = &mut session.phase else { return };
        note_descendants(&mut ending.known);
        let (survived, ended): (Vec<_>, Vec<_>) = ending.known.iter().partition(|(key, _)| is_there(**key));
        let over = now >= ending.began + GIVE_UP;
        let is_populated = session.group.as_ref().is_some_and(Group::is_populated);
        if (is_populated || !survived.is_empty()) && !over {
            for (key, _) in &survived {
                kill_exactly(**key);
            }
            // While the launcher is there the reaper has the next word.
            ending.look_at = ending.look_at.map(|_| now + LOOK_AGAIN);
            return;
        }
        let list = |of: Vec<(&(i32, u64), &HostProcess)>| process_list(of.into_iter().map(|(_, p)| p.clone()));
        let duration = now.saturating_duration_since(ending.began).as_millis();
        let killed = ending.order.map(|order| Killed {
            order,
            session: id,
            ended: list(ended),
            survived: list(survived),
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
        });
        log::detail(&format!("{}: gone", session.label()));
        if let Some(session) = self.sessions.remove(&id)
            && let Some(Err(e)) = session.group.as_ref().map(Group::remove)
        {
            log::line(&format!("{}: cannot remove its control group: {e}", session.label()));
        }
        if let Some(groups) = &self.groups {
            groups.sweep();
        }
        if let Some(killed) = killed {
            self.tell_broker(&ToBroker::Killed(killed), &[]);
        }
    }

    /// Ends every session.
    pub(crate) fn end_all(&mut self, now: Instant) {
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            self.begin_end(id, None, now);
        }
    }
}

/// Adds every process at or below `root`.
fn note_tree(root: i32, known: &mut BTreeMap<(i32, u64), HostProcess>) {
    match procfs::tree(root) {
        Ok(tree) => known.extend(tree.iter().map(|p| ((p.pid, p.start), host_process(p)))),
        Err(e) => log::line(&format!("cannot list the processes below {root}: {e}")),
    }
}

/// Adds what was started below a listed process meanwhile.
fn note_descendants(known: &mut BTreeMap<(i32, u64), HostProcess>) {
    let roots: Vec<i32> = known.keys().filter(|key| is_there(**key)).map(|(pid, _)| *pid).collect();
    for root in roots {
        note_tree(root, known);
    }
}

/// Whether exactly this process still runs; one that only waits to be reaped does not.
fn is_there((pid, start): (i32, u64)) -> bool {
    matches!(procfs::process(pid), Ok(Some(process)) if process.start == start && process.state != 'Z')
}

/// Kills exactly this process: the handle is opened first, so the check and the signal mean the same one.
fn kill_exactly(key: (i32, u64)) {
    let Ok(handle) = shoal_sys::pidfd::Pidfd::open(key.0) else { return };
    if is_there(key)
        && let Err(e) = handle.signal(libc::SIGKILL)
    {
        log::line(&format!("cannot kill process {}: {e}", key.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_sys::spawn::{Command, Program};

    #[test]
    fn exactly_the_listed_process_is_killed() {
        let argv = ["sleep", "1000"].map(|s| std::ffi::CString::new(s).unwrap()).to_vec();
        let child = Command::new(Program::Path(c"/bin/sleep".to_owned()), argv).spawn().unwrap();
        let mut known = BTreeMap::new();
        note_tree(child.pid, &mut known);
        let key = *known.keys().next().unwrap();
        assert_eq!(key.0, child.pid);
        assert!(is_there(key));
        // Another start means another process.
        kill_exactly((key.0, key.1 + 1));
        assert!(is_there(key));
        kill_exactly(key);
        assert_eq!(shoal_sys::process::reap_pid(child.pid).unwrap(), shoal_sys::process::Exit::Signal(9));
        assert!(!is_there(key));
    }
}
