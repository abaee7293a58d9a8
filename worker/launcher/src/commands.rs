//! The programs the launcher started and has not yet seen the end of, descendants included.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use shoal_proto::broker_launcher::PtyId;
use shoal_proto::launcher_worker::{CommandId, RunId, Target};

use crate::ladder::Prey;
use crate::lineage::{Serial, Tree};

/// For whom a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A command of the worker of an epoch.
    Command {
        /// The worker's number.
        id: CommandId,
        /// Counts the workers of this launcher.
        epoch: u32,
        /// The execution.
        run: RunId,
        /// It outlives its execution.
        background: bool,
    },
    /// A terminal's program.
    Terminal(PtyId),
}

/// A started program.
#[derive(Debug)]
pub(crate) struct Record {
    /// For whom.
    pub(crate) who: Who,
    /// Its pid, process group and session.
    pub(crate) pid: i32,
    /// The program itself has not been reaped.
    pub(crate) running: bool,
    /// Inodes of the pipes it got as output and error.
    pub(crate) pipes: Vec<u64>,
    /// Processes of the session that had been ended for want of memory when it started.
    pub(crate) memory_kills: u64,
}

/// All of them, by serial.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    records: BTreeMap<Serial, Record>,
    leaders: HashMap<i32, Serial>,
    last: Serial,
}

impl Commands {
    /// The serial of the next program; never used twice.
    pub(crate) fn next_serial(&mut self) -> Serial {
        self.last += 1;
        self.last
    }

    /// Enters a started program.
    pub(crate) fn enter(&mut self, serial: Serial, who: Who, pid: i32, pipes: Vec<u64>, memory_kills: u64) {
        self.leaders.insert(pid, serial);
        self.records.insert(serial, Record { who, pid, running: true, pipes, memory_kills });
    }

    /// A reaped pid: the program whose end that was. Its record stays while descendants are there.
    pub(crate) fn reaped(&mut self, pid: i32) -> Option<(Serial, &Record)> {
        let serial = *self.leaders.get(&pid)?;
        let record = self.records.get_mut(&serial)?;
        if !record.running {
            return None;
        }
        record.running = false;
        // The pid may be used again at once, and a session of that number may not be ours: from here on only marks count.
        self.leaders.remove(&pid);
        Some((serial, record))
    }

    /// Forgets a program that left nothing.
    pub(crate) fn forget(&mut self, serial: Serial) {
        if let Some(record) = self.records.remove(&serial)
            && record.running
        {
            self.leaders.remove(&record.pid);
        }
    }

    /// Serials of programs that ended and left something when they were last looked at.
    pub(crate) fn left_behind(&self) -> Vec<Serial> {
        self.records.iter().filter(|(_, record)| !record.running).map(|(serial, _)| *serial).collect()
    }

    /// A record.
    pub(crate) fn record(&self, serial: Serial) -> Option<&Record> {
        self.records.get(&serial)
    }

    /// Serial of a worker's command.
    pub(crate) fn command(&self, wanted: CommandId, at: u32) -> Option<Serial> {
        self.records.iter().find_map(|(serial, record)| match record.who {
            Who::Command { id, epoch, .. } if id == wanted && epoch == at => Some(*serial),
            Who::Command { .. } | Who::Terminal(_) => None,
        })
    }

    /// Pids of running programs.
    pub(crate) fn leaders(&self) -> &HashMap<i32, Serial> {
        &self.leaders
    }

    /// Every record.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Serial, &Record)> {
        self.records.iter().map(|(serial, record)| (*serial, record))
    }

    /// Serials that a ladder means.
    pub(crate) fn serials(&self, prey: Prey) -> BTreeSet<Serial> {
        self.iter().filter(|(_, record)| is_meant(record.who, prey)).map(|(serial, _)| serial).collect()
    }

    /// Live pids that belong to these programs, the programs themselves included.
    pub(crate) fn members(&self, serials: &BTreeSet<Serial>, tree: &Tree) -> BTreeSet<i32> {
        let owners = tree.owners(&self.leaders);
        let below = serials.iter().filter_map(|serial| owners.get(serial)).flatten().copied();
        let leaders = serials.iter().filter_map(|s| self.records.get(s)).filter(|r| r.running).map(|r| r.pid);
        below.chain(leaders).collect()
    }
}

fn is_meant(who: Who, prey: Prey) -> bool {
    match (who, prey) {
        (Who::Command { id, epoch, .. }, Prey::Target { target: Target::Command(wanted), epoch: at }) => {
            id == wanted && epoch == at
        }
        // A background command belongs to the session, not to the execution that started it.
        (Who::Command { run, background, .. }, Prey::Target { target: Target::Run(wanted), .. }) => {
            run == wanted && !background
        }
        (Who::Command { epoch, .. }, Prey::Epoch(at)) => epoch == at,
        (Who::Terminal(id), Prey::Terminal(wanted)) => id == wanted,
        (_, Prey::Everything) => true,
        (Who::Terminal(_), Prey::Target { .. } | Prey::Epoch(_)) | (Who::Command { .. }, Prey::Terminal(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lineage::Process;

    fn command(id: CommandId, run: RunId, background: bool) -> Who {
        Who::Command { id, epoch: 1, run, background }
    }

    #[test]
    fn a_run_means_its_foreground_commands_of_any_age() {
        let mut commands = Commands::default();
        for (id, run, background) in [(1, 7, false), (2, 7, true), (3, 8, false)] {
            let serial = commands.next_serial();
            commands.enter(
                serial,
                command(id, run, background),
                100 + i32::try_from(serial).expect("small"),
                vec![],
                0,
            );
        }
        let run = Prey::Target { target: Target::Run(7), epoch: 1 };
        assert_eq!(commands.serials(run), BTreeSet::from([1]));
        assert_eq!(commands.serials(Prey::Epoch(1)).len(), 3);
        assert_eq!(commands.serials(Prey::Epoch(2)).len(), 0);
        assert_eq!(commands.command(3, 1), Some(3));
    }

    #[test]
    fn a_program_that_ended_keeps_its_descendants() {
        let mut commands = Commands::default();
        let serial = commands.next_serial();
        commands.enter(serial, command(1, 7, false), 50, vec![], 0);
        assert!(commands.reaped(50).is_some());
        assert!(commands.reaped(50).is_none(), "an end is told once");
        let child = Process { pid: 60, parent: 1, session: 60, zombie: false, serial: Some(serial) };
        let tree = Tree::below(1, vec![child]);
        assert_eq!(commands.members(&BTreeSet::from([serial]), &tree), BTreeSet::from([60]));
        assert_eq!(commands.left_behind(), [serial]);
        commands.forget(serial);
        assert!(commands.left_behind().is_empty());
    }
}
