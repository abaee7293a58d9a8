//! The owner thread: takes jobs from the queue, runs a group of them in one transaction, answers after the commit.
//!
//! A job may be run twice: when the disk is full the reserve is released and the group runs again, so that running work
//! can close its rows. The 50 ms sync of the write-ahead log is a timer that is armed only after a commit.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::JournalError;
use crate::fs;
use crate::group::{Health, How, Job, Settings};
use crate::store::Store;
use crate::syncer::{Synced, Syncer};

/// Jobs of one transaction at most: bounds what one slow disk sync delays.
const GROUP: usize = 256;
/// From a commit to the sync of the write-ahead log.
const SYNC_AFTER: Duration = Duration::from_millis(50);
/// How soon the end of a sync is noticed while no job comes.
const SYNC_SEEN: Duration = Duration::from_millis(5);
/// How often an unavailable journal is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Pages of the write-ahead log after which it is checkpointed once a sync has ended: 16 MiB. A checkpoint syncs the database,
/// and whoever asks meanwhile waits for it, so it must be rare beside the rows.
const CHECKPOINT_AT: u32 = 4 * 1024;
/// Pages after which it is checkpointed at once: 64 MiB.
const CHECKPOINT_MUST: u32 = 16 * 1024;

/// What the thread owns.
pub(crate) struct Owner {
    store: Store,
    settings: Settings,
    health: Arc<Mutex<Health>>,
    sync_due: Option<Instant>,
    syncer: Syncer,
    /// The reserve was released and not made again yet.
    reserve_out: bool,
    /// A page of the database was found damaged: nothing is written until a look through all of it finds nothing wrong.
    is_damaged: bool,
}

/// What became of a group whose transaction was committed.
struct Committed {
    outcomes: Vec<Result<(), JournalError>>,
    /// Why it could not be synced although that was asked for: those who asked are told, and it is not written again.
    unsynced: Option<String>,
}

impl Owner {
    /// Owns an open store.
    pub(crate) fn new(store: Store, settings: Settings, health: Arc<Mutex<Health>>) -> Result<Self, JournalError> {
        let syncer = Syncer::start(&store.dir)?;
        Ok(Self { store, settings, health, sync_due: None, syncer, reserve_out: false, is_damaged: false })
    }

    /// Serves until every handle is gone.
    pub(crate) fn serve(mut self, queue: &Receiver<Job>) {
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
        if let Err(e) = self.sync() {
            eprintln!("shoal-broker: journal not synced at the end: {e}");
        }
    }

    /// Waits for a job, or for the next thing that is due; without either it sleeps until a job comes.
    fn next(&self, queue: &Receiver<Job>) -> Result<Job, RecvTimeoutError> {
        let sync = match self.syncer.is_running() {
            true => Some(SYNC_SEEN),
            false => self.sync_due.map(|due| due.saturating_duration_since(Instant::now())),
        };
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
        let mut committed = self.attempt(&mut group);
        if let Err(why) = &committed {
            self.set_health(Health::Unavailable(why.to_string()));
            self.is_damaged |= matches!(why, JournalError::Unusable(_));
            let is_full = why.is_unavailable() && !self.reserve_out && !self.settings.without_reserve;
            if is_full && fs::release_reserve(&self.store.dir).is_ok() {
                self.reserve_out = true;
                let why = why.to_string();
                let (begins, rest) = group.into_iter().partition(|job| job.how == How::Begins);
                group = rest;
                committed = self.attempt(&mut group);
                let begins: Vec<Job> = begins;
                begins.into_iter().for_each(|job| (job.done)(Err(JournalError::Unavailable(why.clone()))));
            }
        }
        match committed {
            Ok(Committed { outcomes, unsynced }) => {
                self.store.remove_forgotten();
                for (job, outcome) in group.into_iter().zip(outcomes) {
                    let outcome = match &unsynced {
                        Some(why) if job.how == How::Synced || self.settings.full && job.how != How::Reads => {
                            outcome.and(Err(JournalError::Unavailable(why.clone())))
                        }
                        Some(_) | None => outcome,
                    };
                    (job.done)(outcome);
                }
            }
            Err(e) => {
                self.store.forgotten.clear();
                let text = e.to_string();
                for job in group {
                    (job.done)(Err(JournalError::Unavailable(text.clone())));
                }
            }
        }
    }

    /// Runs every job in a savepoint of its own, commits, and syncs if one of them asks for it. A job that is alone needs no
    /// savepoint, for which the database would copy every page it changes: the transaction is rolled back instead.
    fn attempt(&mut self, group: &mut [Job]) -> Result<Committed, JournalError> {
        let writes = group.iter().any(|job| job.how != How::Reads);
        if writes && self.is_damaged {
            return Err(JournalError::Unusable("the database is damaged".to_owned()));
        }
        self.store.db.prepare_cached(if writes { "BEGIN IMMEDIATE" } else { "BEGIN" })?.execute([])?;
        let is_alone = group.len() == 1;
        let ran = self.run_jobs(group, is_alone).and_then(|outcomes| {
            if writes && is_alone && outcomes.iter().any(Result::is_err) {
                self.roll_back();
            } else {
                self.store.db.prepare_cached("COMMIT")?.execute([])?;
            }
            Ok(outcomes)
        });
        let outcomes = match ran {
            Ok(outcomes) => outcomes,
            Err(e) => {
                self.roll_back();
                return Err(e);
            }
        };
        let synced = if writes { self.synced_commit(group.iter().any(|job| job.how == How::Synced)) } else { Ok(()) };
        let unsynced = synced.err().map(|e| e.to_string());
        if let Some(why) = &unsynced {
            self.set_health(Health::Unavailable(why.clone()));
        }
        Ok(Committed { outcomes, unsynced })
    }

    fn run_jobs(&mut self, group: &mut [Job], is_alone: bool) -> Result<Vec<Result<(), JournalError>>, JournalError> {
        let mut outcomes = Vec::with_capacity(group.len());
        for job in group {
            if job.how == How::Reads {
                let outcome = (job.run)(&mut self.store);
                if let Err(JournalError::Unusable(why)) = &outcome {
                    // A damaged page was met: new work is refused until all of it was looked at.
                    self.is_damaged = true;
                    self.set_health(Health::Unavailable(why.clone()));
                }
                outcomes.push(outcome);
                continue;
            }
            if !is_alone {
                self.store.db.prepare_cached("SAVEPOINT job")?.execute([])?;
            }
            let outcome = (job.run)(&mut self.store);
            match &outcome {
                Ok(()) => {}
                // The disk, not the job: the whole group is tried again.
                Err(JournalError::Unavailable(why)) => return Err(JournalError::Unavailable(why.clone())),
                Err(JournalError::Unusable(why)) => return Err(JournalError::Unusable(why.clone())),
                Err(_) if is_alone => {}
                Err(_) => {
                    self.store.db.prepare_cached("ROLLBACK TO job")?.execute([])?;
                    self.store.reload_head()?;
                }
            }
            if !is_alone {
                self.store.db.prepare_cached("RELEASE job")?.execute([])?;
            }
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
            return self.sync();
        }
        self.sync_due.get_or_insert_with(|| Instant::now() + SYNC_AFTER);
        Ok(())
    }

    /// Syncs everything now, after the sync that is under way.
    fn sync(&mut self) -> Result<(), JournalError> {
        if let Some(synced) = self.syncer.wait() {
            self.on_synced(synced);
        }
        self.sync_due = None;
        self.store.sync()
    }

    /// The sync that nobody waits for has ended; one that failed is tried again.
    fn on_synced(&mut self, synced: Synced) {
        if let Err(e) = synced.result {
            self.store.unsynced.extend(synced.left);
            self.set_health(Health::Unavailable(e.to_string()));
            self.sync_due.get_or_insert_with(|| Instant::now() + SYNC_AFTER);
        }
    }

    /// What is due between groups: sync, checkpoint, probe.
    fn tend(&mut self) {
        let ended = self.syncer.poll();
        let is_synced = ended.is_some();
        if let Some(synced) = ended {
            self.on_synced(synced);
        }
        self.checkpoint(if is_synced { CHECKPOINT_AT } else { CHECKPOINT_MUST });
        if !self.syncer.is_running() && self.sync_due.is_some_and(|due| due <= Instant::now()) {
            self.sync_due = None;
            self.syncer.begin(std::mem::take(&mut self.store.unsynced));
        }
        if self.is_unavailable() {
            self.probe();
        }
    }

    fn checkpoint(&mut self, at: u32) {
        if self.store.log.pages() < at {
            return;
        }
        // The checkpoint makes rows durable: what they name has to be durable before.
        if let Err(e) = self.sync() {
            return self.set_health(Health::Unavailable(e.to_string()));
        }
        // The next commit starts the log again in the room it has: cutting it back would make the file system find room for
        // every page anew.
        match self.store.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            Ok(()) => self.store.log.restarts(),
            Err(e) => self.set_health(Health::Unavailable(e.to_string())),
        }
    }

    /// Writable again when nothing is damaged, the reserve is back and a write goes through.
    fn probe(&mut self) {
        if self.is_damaged {
            match self.store.reopen() {
                Ok(()) => self.is_damaged = false,
                Err(e) => return self.set_health(Health::Unavailable(e.to_string())),
            }
        }
        if self.reserve_out {
            match fs::make_reserve(&self.store.dir) {
                Ok(()) => self.reserve_out = false,
                Err(e) => return self.set_health(Health::Unavailable(e.to_string())),
            }
        }
        match fs::has_room(&self.store.dir) {
            Ok(true) => {}
            Ok(false) => return self.set_health(Health::Unavailable("no space left on device".to_owned())),
            Err(e) => return self.set_health(Health::Unavailable(e.to_string())),
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
