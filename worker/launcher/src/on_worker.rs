//! What the worker asks for. Its word is hostile: a message that breaks the protocol ends it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use shoal_chan::{ChanError, Received};
use shoal_proto::hello::SessionRole;
use shoal_proto::launcher_worker::{End, Held, Signal, Spawn, SpawnFailed, Started, ToLauncher, ToWorker};
use shoal_proto::{Bytes, Text, Violation};

use crate::commands::Who;
use crate::edge;
use crate::ladder::{Asker, Ladder, Prey, RUNG_TIME};
use crate::launcher::{Launcher, now};
use crate::lineage;
use crate::start::Stopped;

/// The longest time per rung a worker may ask for; the default is two seconds.
const MAX_RUNG: Duration = Duration::from_secs(60);

impl Launcher {
    /// Takes what the worker sent.
    pub(crate) fn on_worker_ready(&mut self) {
        let Some(open) = self.worker.as_mut() else { return };
        let taken = edge::take(open);
        let mut end = taken.end;
        for Received { msg, fds } in taken.messages {
            if let Err(violation) = self.on_worker(msg, fds) {
                end = Some(ChanError::Violation(violation));
                break;
            }
        }
        if let Some(end) = end {
            edge::note_end("worker to launcher", &end);
            self.end_role_for(SessionRole::Worker, &end);
        }
    }

    fn on_worker(&mut self, message: ToLauncher, fds: Vec<OwnedFd>) -> Result<(), Violation> {
        let greeted = self.roles.has_greeted(SessionRole::Worker);
        match message {
            ToLauncher::Hello(hello) if !greeted => {
                edge::check_hello(&hello)?;
                self.tell_worker(&ToWorker::Hello(edge::hello(self.generation)), &[]);
                self.on_role_hello(SessionRole::Worker);
            }
            ToLauncher::Hello(_) => return Err(Violation::State { what: "Hello", state: "up" }),
            _ if !greeted => return Err(Violation::State { what: "a request", state: "awaiting the hello" }),
            ToLauncher::Spawn(spawn) => self.spawn(spawn, &fds)?,
            ToLauncher::Signal(signal) => self.signal(signal)?,
            ToLauncher::End(end) => self.end(end),
            ToLauncher::CountHolders(command) => self.count_holders(command),
        }
        Ok(())
    }

    fn spawn(&mut self, spawn: Spawn, fds: &[OwnedFd]) -> Result<(), Violation> {
        let epoch = self.roles.epoch;
        let Spawn { id, run, path, argv, env, cwd, background } = spawn;
        if self.commands.command(id, epoch).is_some() {
            return Err(Violation::Field(format!("command {id} exists")));
        }
        let who = Who::Command { id, epoch, run, background };
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        let (argv, env) = (byte_list(argv.into_vec()), byte_list(env.into_vec()));
        let is_cancelled = !background && self.cancelled.contains(&run);
        let refused = || Stopped { errno: libc::ECANCELED, ..Stopped::denied("the execution was cancelled") };
        let launched = if is_cancelled {
            Err(refused())
        } else {
            self.launch(who, path.as_slice(), argv, env, cwd.into_vec(), &fds)
        };
        let message = match launched {
            Ok(pid) => ToWorker::Started(Started { id, pid }),
            Err(stopped) => ToWorker::SpawnFailed(SpawnFailed {
                id,
                stage: stopped.stage,
                errno: stopped.errno,
                reason: Text::cut(&stopped.reason),
            }),
        };
        self.tell_worker(&message, &[]);
        Ok(())
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Violation> {
        if !(1..=64).contains(&signal.signal) {
            return Err(Violation::Field(format!("signal {}", signal.signal)));
        }
        let members = self.members_of(Prey::Target { target: signal.target, epoch: self.roles.epoch });
        crate::climb::signal_all(&members, i32::from(signal.signal));
        Ok(())
    }

    fn end(&mut self, end: End) {
        let time = match end.rung_ms {
            0 => RUNG_TIME,
            ms => Duration::from_millis(ms.into()).min(MAX_RUNG),
        };
        let prey = Prey::Target { target: end.target, epoch: self.roles.epoch };
        self.ladders.push(Ladder::new(end.call, Asker::Worker(self.roles.epoch), prey, end.rung, time, now()));
    }

    /// Only processes that have one of the command's pipes open count: one that lives on without them holds nothing up.
    fn count_holders(&mut self, command: Started) {
        let serial = self.commands.command(command.id, self.roles.epoch);
        let pipes = serial.and_then(|s| self.commands.record(s)).map(|r| r.pipes.clone()).unwrap_or_default();
        let prey =
            Prey::Target { target: shoal_proto::launcher_worker::Target::Command(command.id), epoch: self.roles.epoch };
        let members = self.members_of(prey);
        let holders = members.iter().filter(|pid| lineage::holds_pipe(**pid, &pipes)).count();
        let holders = u32::try_from(holders).unwrap_or(u32::MAX);
        self.tell_worker(&ToWorker::Held(Held { id: command.id, holders }), &[]);
    }

    /// Tells the worker; one that does not read its edge is ended.
    pub(crate) fn tell_worker(&mut self, message: &ToWorker, fds: &[BorrowedFd<'_>]) {
        if !edge::tell(&mut self.worker, message, fds) {
            self.end_role(SessionRole::Worker);
        }
    }
}

fn byte_list<const N: usize>(list: Vec<Bytes<N>>) -> Vec<Vec<u8>> {
    list.into_iter().map(Bytes::into_vec).collect()
}
