//! The edge to the launcher: requests go out from any thread, one thread takes what comes and hands it to the chain that
//! waits for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_chan::{Chan, ChanError, Received, Receiver, Sender};
use shoal_proto::hello::{BUILD, EDGE_VERSION, Hello};
use shoal_proto::launcher_worker::{
    CommandId, End, Exited, Receipt, RunId, Rung, Spawn, SpawnFailed, Started, Target, ToLauncher, ToWorker,
};
use shoal_proto::supervisor_launcher::Generation;
use shoal_proto::{Text, Violation};

/// What the launcher tells about one command.
#[derive(Debug)]
pub(crate) enum Event {
    /// It runs.
    Started(Started),
    /// It did not start.
    Failed(SpawnFailed),
    /// It ended.
    Exited(Exited),
    /// So many processes hold its pipes.
    Held(u32),
}

/// Where the events of one chain arrive: a queue, and a pipe that is readable while the queue is not empty.
#[derive(Debug)]
pub(crate) struct Inbox {
    events: Mutex<VecDeque<(CommandId, Event)>>,
    readable: OwnedFd,
    wake: OwnedFd,
}

impl Inbox {
    /// An empty one.
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        let (readable, wake) = shoal_sys::fd::pipe()?;
        shoal_sys::fd::set_nonblocking(&readable, true)?;
        shoal_sys::fd::set_nonblocking(&wake, true)?;
        Ok(Arc::new(Self { events: Mutex::default(), readable, wake }))
    }

    /// Wakes whoever polls it.
    pub(crate) fn wake(&self) {
        // A full pipe is readable, and that is all a wake is for.
        let _full: rustix::io::Result<usize> = rustix::io::write(&self.wake, &[0]);
    }

    /// Takes everything that arrived.
    pub(crate) fn take(&self) -> VecDeque<(CommandId, Event)> {
        let mut drained = [0; 64];
        while rustix::io::read(&self.readable, &mut drained).is_ok_and(|n| n == drained.len()) {}
        std::mem::take(&mut *self.lock())
    }

    fn put(&self, id: CommandId, event: Event) {
        self.lock().push_back((id, event));
        self.wake();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(CommandId, Event)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

/// The edge as the chains use it.
#[derive(Debug)]
pub(crate) struct LauncherEdge {
    sender: Sender<ToLauncher>,
    inboxes: Mutex<HashMap<CommandId, Arc<Inbox>>>,
    /// Runs whose ladder the broker has climb.
    climbed: Mutex<HashSet<RunId>>,
    next: AtomicU64,
}

impl LauncherEdge {
    /// Says hello and waits for the launcher's; the receiver belongs to [`LauncherEdge::listen`].
    pub(crate) fn greet(edge: OwnedFd) -> Result<(Arc<Self>, Receiver<ToWorker>), ChanError> {
        let (sender, mut receiver) = Chan::<ToLauncher, ToWorker>::from_fd(edge)?.split();
        let hello = Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation: 0 };
        sender.send(&ToLauncher::Hello(hello), &[])?;
        let Received { msg: ToWorker::Hello(hello), .. } = receiver.recv()? else {
            return Err(Violation::State { what: "a message", state: "awaiting the hello" }.into());
        };
        if hello.version != EDGE_VERSION {
            return Err(Violation::Version(hello.version).into());
        }
        let edge = Self { sender, inboxes: Mutex::default(), climbed: Mutex::default(), next: AtomicU64::new(1) };
        Ok((Arc::new(edge), receiver))
    }

    /// Takes messages until the launcher ends. `adopt` gets a fresh end to a fresh broker.
    pub(crate) fn listen(
        &self,
        mut receiver: Receiver<ToWorker>,
        mut adopt: impl FnMut(Generation, OwnedFd),
    ) -> ChanError {
        loop {
            let Received { msg, fds } = match receiver.recv() {
                Ok(received) => received,
                Err(end) => return end,
            };
            match msg {
                ToWorker::Hello(_) => return Violation::State { what: "Hello", state: "up" }.into(),
                ToWorker::Adopt(generation) => fds.into_iter().for_each(|fd| adopt(generation, fd)),
                ToWorker::Started(started) => self.put(started.id, Event::Started(started)),
                ToWorker::SpawnFailed(failed) => self.put(failed.id, Event::Failed(failed)),
                ToWorker::Exited(exited) => self.put(exited.id, Event::Exited(exited)),
                ToWorker::Held(held) => self.put(held.id, Event::Held(held.holders)),
                // The ends of its commands say the same to whoever waits.
                ToWorker::Receipt(Receipt { .. }) => {}
            }
        }
    }

    /// A number for a command whose events go to `inbox`.
    pub(crate) fn register(&self, inbox: &Arc<Inbox>) -> CommandId {
        let id = self.number();
        self.inboxes().insert(id, Arc::clone(inbox));
        id
    }

    /// Nobody waits for this command any more.
    pub(crate) fn forget(&self, id: CommandId) {
        self.inboxes().remove(&id);
    }

    /// Asks for a program.
    pub(crate) fn spawn(&self, spawn: Spawn, stdio: [BorrowedFd<'_>; 3]) -> Result<(), ChanError> {
        self.sender.send(&ToLauncher::Spawn(spawn), &stdio)
    }

    /// Runs the ladder on a command from a rung on.
    pub(crate) fn end(&self, id: CommandId, rung: Rung) -> Result<(), ChanError> {
        let end = End { call: self.number(), target: Target::Command(id), rung, rung_ms: 0 };
        self.sender.send(&ToLauncher::End(end), &[])
    }

    /// Sends a signal to a command and everything below it.
    pub(crate) fn signal(&self, id: CommandId, signal: u8) -> Result<(), ChanError> {
        let signal = shoal_proto::launcher_worker::Signal { target: Target::Command(id), signal };
        self.sender.send(&ToLauncher::Signal(signal), &[])
    }

    /// Asks how many processes hold a command's pipes.
    pub(crate) fn count_holders(&self, id: CommandId, pid: i32) -> Result<(), ChanError> {
        self.sender.send(&ToLauncher::CountHolders(Started { id, pid }), &[])
    }

    /// The broker has the launcher climb this run's ladder: its chains leave their programs to it.
    pub(crate) fn mark_climbed(&self, run: RunId) {
        self.climbed.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
    }

    /// Whether somebody else climbs for this run.
    pub(crate) fn is_climbed(&self, run: RunId) -> bool {
        self.climbed.lock().unwrap_or_else(PoisonError::into_inner).contains(&run)
    }

    /// The run is over.
    pub(crate) fn forget_run(&self, run: RunId) {
        self.climbed.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    fn put(&self, id: CommandId, event: Event) {
        let inbox = self.inboxes().get(&id).cloned();
        if let Some(inbox) = inbox {
            inbox.put(id, event);
        }
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn inboxes(&self) -> MutexGuard<'_, HashMap<CommandId, Arc<Inbox>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
