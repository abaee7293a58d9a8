//! Driving the ladders, and the end of the session as the last ladder.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use shoal_proto::broker_launcher::ToBroker;
use shoal_proto::hello::SessionRole;
use shoal_proto::launcher_worker::{Receipt, Rung, ToWorker};
use shoal_proto::supervisor_broker::Ping;
use shoal_proto::supervisor_launcher::ToSupervisor;

use crate::children::send_signal;
use crate::ladder::{Asker, Ladder, Prey, Step};
use crate::launcher::{Launcher, Phase, now};
use crate::lineage::Tree;

impl Launcher {
    /// Lets every ladder take its next step.
    pub(crate) fn climb(&mut self, now: Instant) {
        if self.ladders.is_empty() {
            if self.orphans.is_stale() && !self.commands.left_behind().is_empty() {
                self.look();
            }
            return;
        }
        let tree = self.look();
        let mut ladders = std::mem::take(&mut self.ladders);
        let mut done = Vec::new();
        ladders.retain_mut(|ladder| {
            let members = self.commands.members(&self.commands.serials(ladder.prey), &tree);
            match ladder.step(&members, now) {
                Step::Wait => true,
                Step::Signal(rung) => {
                    signal_rung(&members, rung);
                    true
                }
                Step::Done => {
                    done.push((ladder.asker, ladder.prey, ladder.receipt(&members)));
                    false
                }
            }
        });
        self.ladders.append(&mut ladders);
        for (asker, prey, receipt) in done {
            self.on_ladder_done(asker, prey, receipt);
        }
    }

    fn on_ladder_done(&mut self, asker: Asker, prey: Prey, receipt: Receipt) {
        if let Prey::Terminal(id) = prey {
            self.terminals.remove(&id);
        }
        match asker {
            Asker::Broker(end) if end == self.broker_ends => self.tell_broker(&ToBroker::Receipt(receipt)),
            Asker::Worker(epoch) if epoch == self.roles.epoch => self.tell_worker(&ToWorker::Receipt(receipt), &[]),
            Asker::Broker(_) | Asker::Worker(_) | Asker::Nobody => {}
        }
    }

    /// Reads the process table.
    pub(crate) fn look(&mut self) -> Tree {
        self.orphans.look(&mut self.commands, &self.roles.pids())
    }

    /// Live pids that a prey means.
    pub(crate) fn members_of(&mut self, prey: Prey) -> BTreeSet<i32> {
        let tree = self.look();
        self.commands.members(&self.commands.serials(prey), &tree)
    }

    /// Starts to end the session: TERM, `grace`, KILL for every program; none is started any more.
    pub(crate) fn begin_end(&mut self, grace: Duration) {
        if matches!(self.phase, Phase::Birth | Phase::Up) {
            self.phase = Phase::EndCommands;
            let first = if grace.is_zero() { Rung::Kill } else { Rung::Term };
            self.ladders.push(Ladder::new(0, Asker::Nobody, Prey::Everything, first, grace, now()));
        }
    }

    /// Goes on with the end once its ladder is done, then once the roles are reaped.
    pub(crate) fn end_step(&mut self) {
        if self.phase == Phase::EndCommands && !self.ladders.iter().any(|l| l.prey == Prey::Everything) {
            self.phase = Phase::EndRoles;
            self.end_role(SessionRole::Worker);
            self.end_role(SessionRole::Ptyd);
        }
        if self.phase == Phase::EndRoles && self.roles.pids().is_empty() {
            self.phase = Phase::Over;
            self.tell_supervisor(&ToSupervisor::Ended(Ping { n: 0 }));
        }
    }
}

/// Sends a rung's signal. Stopped processes are continued first, or they would act on nothing but KILL.
fn signal_rung(members: &BTreeSet<i32>, rung: Rung) {
    match rung {
        Rung::Int => {
            signal_all(members, libc::SIGCONT);
            signal_all(members, libc::SIGINT);
        }
        Rung::Term => {
            signal_all(members, libc::SIGCONT);
            signal_all(members, libc::SIGTERM);
        }
        Rung::Kill | Rung::Sweep => signal_all(members, libc::SIGKILL),
    }
}

/// Signals every process. One that ended meanwhile is what we want.
pub(crate) fn signal_all(pids: &BTreeSet<i32>, number: i32) {
    for pid in pids {
        send_signal(*pid, number);
    }
}
