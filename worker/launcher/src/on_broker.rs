//! What the broker asks for; all of it works with a worker that hangs or is gone.

use shoal_chan::{ChanError, Received};
use shoal_proto::broker_launcher::{Cancel, Listing, PtyOrder, RunOrder, Running, ToBroker, ToLauncher};
use shoal_proto::launcher_worker::{Rung, Target};
use shoal_proto::{List, Violation};

use crate::climb::signal_all;
use crate::commands::Who;
use crate::edge;
use crate::ladder::{Asker, Ladder, Prey, RUNG_TIME};
use crate::launcher::{Launcher, now};

/// Entries of a listing.
const MAX_LISTED: usize = 4096;

/// Cancelled executions that are remembered; their numbers only grow, and far fewer run at a time.
const MAX_CANCELLED: usize = 1024;

impl Launcher {
    /// Takes what the broker sent. A broker that ends is replaced; a broken edge is dropped and a fresh one awaited.
    pub(crate) fn on_broker_ready(&mut self) {
        let Some(open) = self.broker.as_mut() else { return };
        let taken = edge::take(open);
        let mut end = taken.end;
        for Received { msg, .. } in taken.messages {
            if let Err(violation) = self.on_broker(msg) {
                end = Some(ChanError::Violation(violation));
                break;
            }
        }
        if let Some(end) = end {
            edge::note_end("broker to launcher", &end);
            self.broker = None;
        }
    }

    fn on_broker(&mut self, message: ToLauncher) -> Result<(), Violation> {
        match message {
            ToLauncher::Hello(hello) => return edge::check_hello(&hello),
            ToLauncher::SpawnPty(order) => self.spawn_pty(order),
            ToLauncher::Cancel(cancel) => self.cancel(cancel),
            ToLauncher::Suspend(order) => self.suspend(order),
            ToLauncher::Resume(order) => self.resume(order),
            ToLauncher::KillPty(order) => self.kill_pty(order),
            ToLauncher::List(order) => self.list(order),
        }
        Ok(())
    }

    fn run_prey(&self, run: u64) -> Prey {
        Prey::Target { target: Target::Run(run), epoch: self.roles.epoch }
    }

    fn cancel(&mut self, cancel: Cancel) {
        self.suspended.remove(&cancel.run);
        // A start that is on its way would come too late for the ladder: it is refused.
        self.cancelled.insert(cancel.run);
        if self.cancelled.len() > MAX_CANCELLED {
            self.cancelled.pop_first();
        }
        let prey = self.run_prey(cancel.run);
        self.ladders.push(Ladder::new(
            cancel.call,
            Asker::Broker(self.broker_ends),
            prey,
            cancel.rung,
            RUNG_TIME,
            now(),
        ));
    }

    fn suspend(&mut self, order: RunOrder) {
        let members = self.members_of(self.run_prey(order.run));
        signal_all(&members, libc::SIGSTOP);
        self.suspended.insert(order.run);
        self.tell_broker(&ToBroker::Done(order));
    }

    fn resume(&mut self, order: RunOrder) {
        let members = self.members_of(self.run_prey(order.run));
        signal_all(&members, libc::SIGCONT);
        self.suspended.remove(&order.run);
        self.tell_broker(&ToBroker::Done(order));
    }

    /// The terminal is forgotten with its receipt.
    fn kill_pty(&mut self, order: PtyOrder) {
        let prey = Prey::Terminal(order.id);
        self.ladders.push(Ladder::new(order.call, Asker::Broker(self.broker_ends), prey, Rung::Kill, RUNG_TIME, now()));
    }

    fn list(&mut self, order: RunOrder) {
        let tree = self.look();
        let running = self.commands.iter().filter(|(_, record)| record.running).map(|(_, record)| match record.who {
            Who::Command { run, .. } => Running { run, pty: 0, pid: record.pid },
            Who::Terminal(pty) => Running { run: 0, pty, pid: record.pid },
        });
        let running = List::new(running.take(MAX_LISTED).collect::<Vec<_>>()).unwrap_or_default();
        // The launcher itself is not below itself.
        let processes = u32::try_from(tree.len() + 1).unwrap_or(u32::MAX);
        self.tell_broker(&ToBroker::Listing(Listing { call: order.call, running, processes }));
    }

    /// Tells the broker; without one the news is lost with it, and the next one asks anew.
    pub(crate) fn tell_broker(&mut self, message: &ToBroker) {
        if !edge::tell(&mut self.broker, message, &[]) {
            self.broker = None;
        }
    }
}
