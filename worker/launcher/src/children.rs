//! Reaping: every descendant that loses its parent becomes a child of the launcher.

use std::io;

use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::launcher_worker::{Exited, ToWorker};
use shoal_sys::process::{self, Exit, Reaped};

use crate::commands::Who;
use crate::launcher::Launcher;
use crate::lineage::Serial;

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
                let limit = self.limit_of(status, reaped.cpu, memory_kills);
                let exited = Exited { id, status, cpu_us, peak_kib: reaped.peak_kib, left, limit };
                self.tell_worker(&ToWorker::Exited(exited), &[]);
            }
            Who::Command { .. } => {}
        }
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
