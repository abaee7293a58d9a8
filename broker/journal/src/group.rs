//! The owner thread: queues jobs, runs a group of them in one transaction, answers after the commit.
//!
//! A job may be run twice: when the disk is full the reserve is released and the group runs again, so that running work
//! can close its rows. The 50 ms sync of the write-ahead log is a timer that is armed only after a commit.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::JournalError;
use crate::fs;
use crate::store::Store;

/// Jobs waiting at most; beyond it callers are told the journal is unavailable instead of growing a queue.
const QUEUE: usize = 8192;
/// Jobs of one transaction at most: bounds what one slow disk sync delays.
const GROUP: usize = 256;
/// From a commit to the sync of the write-ahead log.
const SYNC_AFTER: Duration = Duration::from_millis(50);
/// How often an unavailable journal is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// A write-ahead log longer than this is checkpointed when the queue is empty.
const CHECKPOINT_AT: u64 = 4 * 1024 * 1024;
/// A write-ahead log longer than this is checkpointed even when it is not.
const CHECKPOINT_MUST: u64 = 64 * 1024 * 1024;

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

type Run = Box<dyn FnMut(&mut Store) -> Result<(), JournalError> + Send>;
type Done = Box<dyn FnOnce(Result<(), JournalError>) + Send>;

struct Job {
    run: Run,
    done: Done,
    /// Sync before the answer.
    synced: bool,
    /// Only reads: never the reason for a transaction's commit.
    reads: bool,
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
        let owner = Owner { store, settings, health: Arc::clone(&health), sync_due: None, reserve_out: false };
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
        self.submit(job, done, false, false);
    }

    /// As [`Journal::write`], synced to the disk before the answer.
    pub fn write_synced<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
        done: impl FnOnce(Result<T, JournalError>) + Send + 'static,
    ) {
        self.submit(job, done, true, false);
    }

    /// Runs a reading job; it sees every job answered before.
    pub fn read<T: Send + 'static>(
        &self,
        mut job: impl FnMut(&Store) -> Result<T, JournalError> + Send + 'static,
        done: impl FnOnce(Result<T, JournalError>) + Send + 'static,
    ) {
        self.submit(move |store: &mut Store| job(store), done, false, true);
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
        synced: bool,
        reads: bool,
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
        let job = Job { run, done, synced, reads };
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
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("shoal-broker: the journal thread panicked");
        }
    }
}

struct Owner {
    store: Store,
    settings: Settings,
    health: Arc<Mutex<Health>>,
    sync_due: Option<Instant>,
    /// The reserve was released and not made again yet.
    reserve_out: bool,
}

impl Owner {
    fn serve(mut self, queue: &Receiver<Job>) {
        loop {
            match self.next(queue) {
                Ok(first) => {
                    let mut group = vec![first];
                    while group.len() < GROUP
                        && let Ok(job) = queue.try_recv()
                    {
                        group.push(job);
                    }
                    self.run_group(group);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.tend();
        }
        if let Err(e) = self.store.sync() {
            eprintln!("shoal-broker: journal not synced at the end: {e}");
        }
    }

    /// Waits for a job, or for the next thing that is due; without either it sleeps until a job comes.
    fn next(&self, queue: &Receiver<Job>) -> Result<Job, RecvTimeoutError> {
        let sync = self.sync_due.map(|due| due.saturating_duration_since(Instant::now()));
        let probe = self.is_unavailable().then_some(PROBE_EVERY);
        match sync.into_iter().chain(probe).min() {
            Some(wait) => queue.recv_timeout(wait),
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn is_unavailable(&self) -> bool {
        self.reserve_out || *self.health.lock().unwrap_or_else(PoisonError::into_inner) != Health::Writable
    }

    fn set_health(&self, health: Health) {
        *self.health.lock().unwrap_or_else(PoisonError::into_inner) = health;
    }

    fn run_group(&mut self, mut group: Vec<Job>) {
        let mut outcomes = self.attempt(&mut group);
        if let Err(JournalError::Unavailable(why)) = &outcomes {
            self.set_health(Health::Unavailable(why.clone()));
            if !self.reserve_out && !self.settings.without_reserve && fs::release_reserve(&self.store.dir).is_ok() {
                self.reserve_out = true;
                outcomes = self.attempt(&mut group);
            }
        }
        match outcomes {
            Ok(outcomes) => {
                for (job, outcome) in group.into_iter().zip(outcomes) {
                    (job.done)(outcome);
                }
            }
            Err(e) => {
                let text = e.to_string();
                for job in group {
                    (job.done)(Err(JournalError::Unavailable(text.clone())));
                }
            }
        }
    }

    /// Runs every job in a savepoint of its own, commits, and syncs if one of them asks for it.
    fn attempt(&mut self, group: &mut [Job]) -> Result<Vec<Result<(), JournalError>>, JournalError> {
        let writes = group.iter().any(|job| !job.reads);
        self.store.db.execute_batch(if writes { "BEGIN IMMEDIATE" } else { "BEGIN" })?;
        match self.run_jobs(group) {
            Ok(outcomes) => {
                if let Err(e) = self.store.db.execute_batch("COMMIT") {
                    self.roll_back();
                    return Err(e.into());
                }
                if writes {
                    self.synced_commit(group.iter().any(|job| job.synced))?;
                }
                Ok(outcomes)
            }
            Err(e) => {
                self.roll_back();
                Err(e)
            }
        }
    }

    fn run_jobs(&mut self, group: &mut [Job]) -> Result<Vec<Result<(), JournalError>>, JournalError> {
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group {
            if job.reads {
                outcomes.push((job.run)(&mut self.store));
                continue;
            }
            self.store.db.prepare_cached("SAVEPOINT job")?.execute([])?;
            let outcome = (job.run)(&mut self.store);
            match &outcome {
                Ok(()) => {}
                // The disk, not the job: the whole group is tried again.
                Err(JournalError::Unavailable(why)) => return Err(JournalError::Unavailable(why.clone())),
                Err(_) => {
                    self.store.db.prepare_cached("ROLLBACK TO job")?.execute([])?;
                    self.store.reload_head()?;
                }
            }
            self.store.db.prepare_cached("RELEASE job")?.execute([])?;
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    fn roll_back(&mut self) {
        // SQLite may have rolled back by itself; then there is nothing left to undo.
        if !self.store.db.is_autocommit()
            && let Err(e) = self.store.db.execute_batch("ROLLBACK")
        {
            self.set_health(Health::Unavailable(e.to_string()));
        }
        if let Err(e) = self.store.reload_head() {
            self.set_health(Health::Unavailable(e.to_string()));
        }
    }

    fn synced_commit(&mut self, now: bool) -> Result<(), JournalError> {
        if now || self.settings.full {
            self.sync_due = None;
            return self.store.sync();
        }
        self.sync_due.get_or_insert_with(|| Instant::now() + SYNC_AFTER);
        Ok(())
    }

    /// What is due between groups: sync, checkpoint, probe.
    fn tend(&mut self) {
        if self.sync_due.is_some_and(|due| due <= Instant::now()) {
            self.sync_due = None;
            if let Err(e) = self.store.sync() {
                self.set_health(Health::Unavailable(e.to_string()));
            }
            self.checkpoint(CHECKPOINT_AT);
        } else {
            self.checkpoint(CHECKPOINT_MUST);
        }
        if self.is_unavailable() {
            self.probe();
        }
    }

    fn checkpoint(&self, at: u64) {
        let wal = std::fs::metadata(self.store.dir.join("journal.db-wal")).map_or(0, |m| m.len());
        if wal < at {
            return;
        }
        // TRUNCATE cuts the log back, so its length says again when the next one is due.
        if let Err(e) = self.store.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            self.set_health(Health::Unavailable(e.to_string()));
        }
    }

    /// Writable again when the reserve is back and a write goes through.
    fn probe(&mut self) {
        if self.reserve_out {
            match fs::make_reserve(&self.store.dir) {
                Ok(()) => self.reserve_out = false,
                Err(e) => return self.set_health(Health::Unavailable(e.to_string())),
            }
        }
        let wrote = self.store.db.execute_batch(
            "BEGIN IMMEDIATE; INSERT INTO counter (name, value) VALUES ('probe', 1)
             ON CONFLICT (name) DO UPDATE SET value = value + 1; COMMIT",
        );
        match wrote {
            Ok(()) => self.set_health(Health::Writable),
            Err(e) => {
                self.set_health(Health::Unavailable(e.to_string()));
                self.roll_back();
            }
        }
    }
}
