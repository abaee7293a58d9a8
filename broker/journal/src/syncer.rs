//! The sync that nobody waits for: on a thread of its own, so that commits go on while the disk works.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::error::JournalError;
use crate::{cas, fs};

/// The end of a sync.
pub(crate) struct Synced {
    /// Blob files that could not be synced.
    pub(crate) left: Vec<PathBuf>,
    /// Why not.
    pub(crate) result: Result<(), JournalError>,
}

/// The thread, and whether it works.
pub(crate) struct Syncer {
    orders: Option<Sender<Vec<PathBuf>>>,
    done: Receiver<Synced>,
    is_running: bool,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread for a state directory.
    pub(crate) fn start(dir: &Path) -> Result<Self, JournalError> {
        let (orders, taken) = channel::<Vec<PathBuf>>();
        let (tell, done) = channel();
        let log = dir.join("journal.db-wal");
        let serve = move || {
            for mut files in taken {
                // Files first: a row that is durable names only what is.
                let result = cas::sync_files(&mut files).and_then(|()| fs::sync_file(&log));
                if tell.send(Synced { left: files, result }).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("sync".to_owned()).spawn(serve);
        let thread = thread.map_err(|e| JournalError::Unavailable(format!("cannot start the sync thread: {e}")))?;
        Ok(Self { orders: Some(orders), done, is_running: false, thread: Some(thread) })
    }

    /// Syncs these blob files, then the write-ahead log.
    pub(crate) fn begin(&mut self, files: Vec<PathBuf>) {
        // The thread ends only with this.
        self.is_running = self.orders.as_ref().is_some_and(|orders| orders.send(files).is_ok());
    }

    /// A sync is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    /// The end of the sync that is under way, if it has come.
    pub(crate) fn poll(&mut self) -> Option<Synced> {
        let synced = self.done.try_recv().ok();
        self.is_running &= synced.is_none();
        synced
    }

    /// Waits for the end of the sync that is under way.
    pub(crate) fn wait(&mut self) -> Option<Synced> {
        if !std::mem::take(&mut self.is_running) {
            return None;
        }
        self.done.recv().ok()
    }
}

/// Waits for a thread whose work is over.
pub(crate) fn join(thread: Option<JoinHandle<()>>, name: &str) {
    if thread.is_some_and(|thread| thread.join().is_err()) {
        eprintln!("shoal-broker: the {name} thread panicked");
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.orders = None;
        join(self.thread.take(), "sync");
    }
}
