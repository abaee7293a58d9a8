//! The executions of this worker, by the broker's numbers: their tokens, logs and pauses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::Meter;
use shoal_eval::stack::Used;
use shoal_proto::launcher_worker::RunId;

use crate::clock;
use crate::output::OutputLog;

/// Progress is told at most ten times a second.
const PROGRESS: Duration = Duration::from_millis(100);

/// One execution while it runs, and its log after that.
#[derive(Debug)]
pub(crate) struct RunState {
    /// Set to end it.
    pub(crate) cancel: CancelToken,
    /// What its programs print.
    pub(crate) log: Arc<OutputLog>,
    /// Holds its evaluation.
    pub(crate) pause: Pause,
    /// Its deadline, which the broker keeps: the next one has to be told.
    pub(crate) deadline_ms: OnceLock<u64>,
    told: Mutex<Option<Instant>>,
    phase: AtomicU8,
    deep: AtomicBool,
}

/// Phases of a run.
const PREPARED: u8 = 0;
const RUNNING: u8 = 1;
const OVER: u8 = 2;

/// Logs of runs that are over, the newest; `task.output` reads them.
const KEPT_LOGS: usize = 128;
/// Bytes of all of them. Of an older one the counts stay; its result has the output.
const LOGGED: usize = 8 * 1024 * 1024;

impl RunState {
    /// A run that nobody paused or cancelled.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            cancel: CancelToken::new(),
            log: Arc::default(),
            pause: Pause::default(),
            deadline_ms: OnceLock::new(),
            told: Mutex::default(),
            phase: AtomicU8::new(PREPARED),
            deep: AtomicBool::new(false),
        })
    }

    /// What it did to the stack of its thread.
    pub(crate) fn used(&self) -> Used {
        if self.deep.load(Ordering::Relaxed) { Used::Deep } else { Used::Shallow }
    }

    /// It is evaluated from now on.
    pub(crate) fn set_running(&self) {
        self.phase.store(RUNNING, Ordering::Release);
    }

    /// Its result was told, or it was discarded.
    pub(crate) fn set_over(&self) {
        self.phase.store(OVER, Ordering::Release);
    }

    /// Whether it is evaluated.
    pub(crate) fn is_running(&self) -> bool {
        self.phase.load(Ordering::Acquire) == RUNNING
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.phase.load(Ordering::Acquire) == OVER
    }
}

/// A gate that evaluation passes at its safepoints.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    paused: Mutex<bool>,
    changed: Condvar,
}

impl Pause {
    /// Closes or opens the gate.
    pub(crate) fn set(&self, paused: bool) {
        *self.lock() = paused;
        self.changed.notify_all();
    }

    /// Whether the gate is closed.
    pub(crate) fn is_set(&self) -> bool {
        *self.lock()
    }

    /// Waits while the gate is closed; a cancelled run passes.
    fn pass(&self, cancel: &CancelToken) {
        let mut paused = self.lock();
        while *paused && !cancel.is_set() {
            // The token has no way to this condition, so it is looked at now and then.
            let waited = self.changed.wait_timeout(paused, Duration::from_millis(50));
            paused = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for RunState {
    fn step(&self, _n: u64) -> Result<(), String> {
        self.pause.pass(&self.cancel);
        Ok(())
    }

    fn alloc(&self, _bytes: u64) -> Result<(), String> {
        Ok(())
    }

    fn went_deep(&self) {
        self.deep.store(true, Ordering::Relaxed);
    }
}

type Tell = Box<dyn Fn(RunId, u64, u64) + Send + Sync>;

/// All executions of this worker.
#[derive(Default)]
pub(crate) struct Runs {
    runs: Mutex<HashMap<RunId, Arc<RunState>>>,
    tell: Mutex<Option<Tell>>,
}

impl Runs {
    /// Who hears of progress: run, bytes of standard output, bytes of standard error.
    pub(crate) fn on_progress(&self, tell: impl Fn(RunId, u64, u64) + Send + Sync + 'static) {
        *self.tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(tell));
    }

    /// Enters a run.
    pub(crate) fn enter(&self, run: RunId) -> Arc<RunState> {
        let state = RunState::new();
        let mut runs = self.lock();
        runs.insert(run, Arc::clone(&state));
        bound(&mut runs);
        drop(runs);
        state
    }

    /// The end of a run is recorded; its log stays only if it can be asked for.
    pub(crate) fn recorded(&self, run: RunId, kept: bool) {
        let mut runs = self.lock();
        if !kept {
            runs.remove(&run);
        }
        bound(&mut runs);
    }

    /// Every run that is known.
    pub(crate) fn all(&self) -> Vec<(RunId, Arc<RunState>)> {
        self.lock().iter().map(|(run, state)| (*run, Arc::clone(state))).collect()
    }

    /// A run.
    pub(crate) fn find(&self, run: RunId) -> Option<Arc<RunState>> {
        self.lock().get(&run).cloned()
    }

    /// Forgets a run and its log.
    pub(crate) fn forget(&self, run: RunId) {
        self.lock().remove(&run);
    }

    /// Where the output of a run's programs goes.
    pub(crate) fn log(&self, run: RunId) -> Option<Arc<OutputLog>> {
        self.find(run).map(|state| Arc::clone(&state.log))
    }

    /// Output came: tells it, unless that was done a moment ago; then, when it is to be told.
    pub(crate) fn progress(&self, run: RunId) -> Option<Instant> {
        let state = self.find(run)?;
        let now = clock::now();
        let mut told = state.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told.map(|at| at + PROGRESS).filter(|due| now < *due);
        if due.is_some() {
            return due;
        }
        *told = Some(now);
        drop(told);
        let (stdout, stderr) = state.log.counts();
        if let Some(tell) = &*self.tell.lock().unwrap_or_else(PoisonError::into_inner) {
            tell(run, stdout, stderr);
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunState>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets runs that are over beyond their number, and empties logs beyond the bytes of all; the oldest first.
fn bound(runs: &mut HashMap<RunId, Arc<RunState>>) {
    let mut over: Vec<RunId> = runs.iter().filter(|(_, state)| state.is_over()).map(|(run, _)| *run).collect();
    over.sort_unstable();
    let surplus = over.len().saturating_sub(KEPT_LOGS);
    for run in over.drain(..surplus) {
        runs.remove(&run);
    }
    let mut room = LOGGED;
    for log in over.iter().rev().filter_map(|run| runs.get(run)).map(|state| &state.log) {
        match room.checked_sub(log.held()) {
            Some(rest) => room = rest,
            None => log.empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Stream;

    /// A run that printed so much and is over.
    fn over(runs: &Runs, run: RunId, bytes: usize) -> Arc<RunState> {
        let state = runs.enter(run);
        state.log.append(Stream::Stdout, &vec![b'x'; bytes]);
        state.set_over();
        state
    }

    #[test]
    fn a_log_that_nobody_can_ask_for_goes_with_its_run() {
        let runs = Runs::default();
        over(&runs, 1, 10);
        over(&runs, 2, 10);
        runs.recorded(1, false);
        runs.recorded(2, true);
        assert!(runs.find(1).is_none() && runs.find(2).is_some());
    }

    #[test]
    fn the_logs_of_ended_runs_are_bounded_in_number_and_together() {
        let runs = Runs::default();
        for run in 1..=200 {
            over(&runs, run, 512 * 1024);
        }
        runs.recorded(200, true);
        assert!(runs.find(72).is_none() && runs.find(73).is_some());
        let held = |run| runs.find(run).map_or(0, |state| state.log.held());
        assert_eq!((held(200), held(185), held(184), held(73)), (512 * 1024, 512 * 1024, 0, 0));
        assert_eq!(runs.find(73).map(|state| state.log.counts()), Some((512 * 1024, 0)), "what it printed is known");
    }

    #[test]
    fn the_log_of_a_run_that_goes_on_is_not_emptied() {
        let runs = Runs::default();
        let live = runs.enter(1);
        live.log.append(Stream::Stdout, b"still here");
        for run in 2..=40 {
            over(&runs, run, 1024 * 1024);
        }
        runs.recorded(40, true);
        assert_eq!(live.log.held(), 10);
    }
}
