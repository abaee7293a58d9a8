//! The process port: programs run by the launcher, their pipes read here.

mod chain;
mod failure;
mod leftovers;
mod pump;
mod redirect;
mod signals;
mod spill;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Chain, Finished, Processes, RunError};
use shoal_proto::launcher_worker::CommandId;

use crate::launcher_edge::LauncherEdge;
use crate::runs::Runs;
use leftovers::Leftovers;
pub(crate) use spill::Depot;

/// Bytes kept of one stream in a host without a store.
pub(crate) const KEPT_WITHOUT_STORE: usize = 64 * 1024 * 1024;

/// Programs by way of the launcher.
pub(crate) struct Commands {
    edge: Arc<LauncherEdge>,
    runs: Arc<Runs>,
    leftovers: Leftovers,
    /// Commands of language tasks, for suspend and resume.
    tasks: Mutex<HashMap<u64, Vec<CommandId>>>,
    /// Bytes kept of one stream in memory.
    kept: usize,
    /// Where the rest goes.
    depot: Option<Arc<dyn Depot>>,
}

impl Commands {
    /// Programs over this edge; at most `kept` bytes of each stream stay in memory.
    pub(crate) fn new(edge: Arc<LauncherEdge>, runs: Arc<Runs>, kept: usize) -> std::io::Result<Self> {
        Ok(Self { edge, runs, leftovers: Leftovers::start()?, tasks: Mutex::default(), kept, depot: None })
    }

    /// The same, with a store for what does not stay in memory.
    pub(crate) fn over(mut self, depot: Arc<dyn Depot>) -> Self {
        self.depot = Some(depot);
        self
    }

    fn depot(&self) -> Option<&dyn Depot> {
        self.depot.as_deref()
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<u64, Vec<CommandId>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals the commands of a task. One that ended meanwhile needs none.
    fn signal_task(&self, task: u64, signal: libc::c_int) {
        let commands = self.tasks().get(&task).cloned().unwrap_or_default();
        let signal = u8::try_from(signal).unwrap_or_default();
        for id in commands {
            if self.edge.signal(id, signal).is_err() {
                return;
            }
        }
    }
}

impl Processes for Commands {
    fn run(&self, chain: Chain<'_>, cancel: &CancelToken) -> Result<Finished, RunError> {
        chain::run(self, chain, cancel)
    }

    fn suspend(&self, task: u64) {
        self.signal_task(task, libc::SIGSTOP);
    }

    fn resume(&self, task: u64) {
        self.signal_task(task, libc::SIGCONT);
    }
}
