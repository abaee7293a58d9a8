//! The journal as its users hold it: jobs that are queued, and answered after their commit by the owner thread.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::error::JournalError;
use crate::fs;
use crate::owner::Owner;
use crate::store::Store;
use crate::syncer::join;

/// Jobs waiting at most; beyond it callers are told the journal is unavailable instead of growing a queue.
const QUEUE: usize = 8192;

/// How a journal runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Sync every group before its answers.
    pub full: bool,
    /// No reserve: for throw-away kernels and tests of small disks.
    pub without_reserve: bool,
}

/// Whether new work can be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Writable,
    /// It cannot, and why.
    Unavailable(String),
}

/// The work of a job; it may be called twice.
pub(crate) type Run = Box<dyn FnMut(&mut Store) -> Result<(), JournalError> + Send>;
/// Who is told of its end.
pub(crate) type Done = Box<dyn FnOnce(Result<(), JournalError>) + Send>;

/// A job in the queue.
pub(crate) struct Job {
    /// What it does.
    pub(crate) run: Run,
    /// Who is told of its end.
    pub(crate) done: Done,
    /// What it is.
    pub(crate) how: How,
}

/// What a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Only reads: never the reason for a transaction's commit.
    Reads,
    /// Writes.
    Writes,
    /// Writes what new work begins with: the reserve is not for it.
    Begins,
    /// Writes, synced before the answer.
    Synced,
}

/// Handle of the owner thread. Dropping the last one drains the queue, syncs and ends the thread.
#[derive(Debug)]
pub struct Journal {
    jobs: Option<SyncSender<Job>>,
    health: Arc<Mutex<Health>>,
    thread: Option<JoinHandle<()>>,
    dir: PathBuf,
}

impl Journal {
    /// Opens the journal of a state directory and starts its thread.
    pub fn open(dir: &Path, settings: Settings) -> Result<Self, JournalError> {
        let store = Store::open(dir)?;
        store.sweep()?;
        if !settings.without_reserve {
            fs::make_reserve(dir)?;
        }
        let health = Arc::new(Mutex::new(Health::Writable));
        let (jobs, queue) = sync_channel(QUEUE);
        let owner = Owner::new(store, settings, Arc::clone(&health))?;
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || owner.serve(&queue))
            .map_err(|e| JournalError::Unavailable(format!("cannot start the journal thread: {e}")))?;
        Ok(Self { jobs: Some(jobs), health, thread: Some(thread), dir: dir.to_owned() })
    }

    /// Runs a writing job and gives its result, after the commit, to `done` on the owner thread.
    pub fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        done: impl FnOnce(Result<T, JournalError>) + Send + 'static,
    ) {
        self.submit(job, done, How::Writes);
    }

    /// As [`Journal::write`], for what new work begins with: on a full disk it is refused, while running work may still close
    /// its rows on the reserve.
    pub fn begin<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        done: impl FnOnce(Result<T, JournalError>) + Send + 'static,
    ) {
        self.submit(job, done, How::Begins);
    }

    /// As [`Journal::write`], synced to the disk before the answer.
    pub fn write_synced<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        done: impl FnOnce(Result<T, JournalError>) + Send + 'static,
    ) {
        self.submit(job, done, How::Synced);
    }

    /// Runs a reading job; it sees every job answered before.
    pub fn read<T: Send + 'static>(
        &self,
        mut job: impl FnMut(&Store) -> Result<T, JournalError> + Send + 'static,
        done: impl FnOnce(Result<T, JournalError>) + Send + 'static,
    ) {
        self.submit(move |store: &mut Store| job(store), done, How::Reads);
    }

    /// Runs a job and waits for it: for programs without a loop of their own.
    pub fn wait<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        self.write_synced(job, move |result| {
            if tell.send(result).is_err() {
                // The waiter is gone; its result has no reader.
            }
        });
        told.recv().unwrap_or_else(|_| Err(JournalError::Unavailable("the journal thread ended".to_owned())))
    }

    fn submit<T: Send + 'static>(
        &self,
        mut job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        done: impl FnOnce(Result<T, JournalError>) + Send + 'static,
        how: How,
    ) {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let run: Run = Box::new(move |store| {
            let value = job(store)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
            Ok(())
        });
        let done: Done = Box::new(move |outcome| {
            let value = filled.lock().unwrap_or_else(PoisonError::into_inner).take();
            done(
                outcome
                    .and_then(|()| value.ok_or_else(|| JournalError::Unavailable("the job left no result".to_owned()))),
            );
        });
        let job = Job { run, done, how };
        let refused = match self.jobs.as_ref().map(|jobs| jobs.try_send(job)) {
            Some(Ok(())) => return,
            Some(Err(TrySendError::Full(job))) => Some((job, "too many rows are waiting to be written")),
            Some(Err(TrySendError::Disconnected(job))) => Some((job, "the journal thread ended")),
            None => None,
        };
        if let Some((job, why)) = refused {
            (job.done)(Err(JournalError::Unavailable(why.to_owned())));
        }
    }

    /// Whether new work can be recorded now.
    pub fn health(&self) -> Health {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The state directory, for [`crate::BlobWriter::new`].
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.jobs = None;
        join(self.thread.take(), "journal");
    }
}
