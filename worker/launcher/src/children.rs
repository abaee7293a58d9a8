//! Reaping: every descendant that loses its parent becomes a child of the launcher.

use std::io;
use std::time::Duration;

use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::launcher_worker::{Exited, ToWorker};
use shoal_sys::process::{self, Exit, Reaped};

use crate::commands::Who;
use crate::launcher::Launcher;
use crate::lineage::Serial;

/// The limit is met by time counted in ticks of the kernel's clock, which runs ahead of what a program is told it used by
/// about this much.
const TICK: Duration = Duration::from_millis(250);

impl Launcher {
    /// Reaps whatever ended.
    pub(crate) fn reap(&mut self) -> io::Result<()> {
        while let Some(reaped) = process::reap()? {
            self.on_reaped(reaped);
        }
        Ok(())
    }

    fn on_reaped(&mut self, reaped: Reaped) {
        let status = status_of(reaped.exit);
        let is = |role: &Option<crate::roles::Role>| role.as_ref().is_some_and(|r| r.pid == reaped.pid);
        if is(&self.roles.worker) {
            return self.on_role_end(SessionRole::Worker, status);
        }
        if is(&self.roles.ptyd) {
            return self.on_role_end(SessionRole::Ptyd, status);
        }
        let Some((serial, record)) = self.commands.reaped(reaped.pid) else {
            return self.orphans.reaped(reaped.pid);
        };
        let (who, memory_kills) = (record.who, record.memory_kills);
        let left = self.left_of(serial);
        match who {
            Who::Terminal(id) => self.on_terminal_end(id, status),
            Who::Command { id, epoch, .. } if epoch == self.roles.epoch => {
                let cpu_us = u64::try_from(reaped.cpu.as_micros()).unwrap_or(u64::MAX);
                let cpu_limited = self.is_cpu_limited(status, reaped.cpu);
                let memory_limited = !cpu_limited && self.is_memory_limited(status, memory_kills);
                let peak_kib = reaped.peak_kib;
                let exited = Exited { id, status, cpu_us, peak_kib, left, cpu_limited, memory_limited };
                self.tell_worker(&ToWorker::Exited(exited), &[]);
            }
            Who::Command { .. } => {}
        }
    }

    /// Whether the kernel of the machine ended a program at its CPU limit. It sends SIGKILL, where soft and hard limit are
    /// one, at a tick of its clock.
    fn is_cpu_limited(&self, status: ExitStatus, cpu: Duration) -> bool {
        let by = status.signal.map(i32::from);
        let is_spent = |limit: u64| cpu + TICK >= Duration::from_secs(limit);
        by == Some(libc::SIGXCPU) || by == Some(libc::SIGKILL) && self.cpu_limit().is_some_and(is_spent)
    }

    /// Whether the machine's kernel ended a program because its session had used up its memory: it sends SIGKILL, and counts.
    fn is_memory_limited(&self, status: ExitStatus, kills_before: u64) -> bool {
        status.signal.map(i32::from) == Some(libc::SIGKILL)
            && self.memory.as_ref().is_some_and(|memory| memory.kills() > kills_before)
    }

    /// How many processes a program that ended left; its record goes when there are none.
    fn left_of(&mut self, serial: Serial) -> u32 {
        if !self.orphans.may_have_left(serial, &self.commands, &self.roles.pids()) {
            self.commands.forget(serial);
            return 0;
        }
        let tree = self.look();
        let left = self.commands.members(&[serial].into(), &tree).len();
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}

fn status_of(exit: Exit) -> ExitStatus {
    match exit {
        Exit::Code(code) => ExitStatus { code: Some(code), signal: None },
        Exit::Signal(signal) => ExitStatus { code: None, signal: Some(signal) },
    }
}

/// Signals a child or descendant. One that is gone needs no signal; one that refuses it is named in the receipt.
pub(crate) fn send_signal(pid: i32, number: i32) {
    let _sent: io::Result<bool> = process::kill(pid, number);
}
