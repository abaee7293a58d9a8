//! What a filter can reach: it reads, and that is all. Every other effect is refused before it happens.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use shoal_eval::cancel::{CancelToken, Cancelled};
use shoal_eval::host::{
    At, Chain, Clock, Dir, Entry, FileError, FileErrorKind, Files, Finished, Host, Meta, Processes, Resources,
    RunError, StartError, StartErrorKind, Store, System, WatchStart, WriteMode,
};
use shoal_value::{ErrorValue, PathValue, Record, Str, Table, Value, code};
use shoal_watch::limits::FILTER_CALLS;

use super::port;
use crate::clock::{self, SystemClock};
use crate::files::LocalFiles;
use crate::machine;
use crate::session::Session;

/// The host of one filter.
pub(crate) struct FilterHost {
    session: Weak<Session>,
    files: LocalFiles,
    user: Option<Str>,
    until: Mutex<Instant>,
    reads: AtomicUsize,
    calls: AtomicUsize,
}

impl FilterHost {
    /// The host of a filter of this session.
    pub(crate) fn new(session: &Arc<Session>) -> Arc<Self> {
        let env = session.snapshot().place.env;
        let var = |name: &str| env.get(name).and_then(|value| std::str::from_utf8(value).ok()).map(Str::from);
        Arc::new(Self {
            session: Arc::downgrade(session),
            files: LocalFiles::new(std::path::PathBuf::new()),
            user: ["USER", "LOGNAME"].into_iter().find_map(var),
            until: Mutex::new(clock::now()),
            reads: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
        })
    }

    /// A run begins: it may take until then, and has its calls before it.
    pub(crate) fn begin(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        self.reads.store(0, Ordering::Relaxed);
        self.calls.store(0, Ordering::Relaxed);
    }

    fn session(&self) -> Result<Arc<Session>, ErrorValue> {
        self.session.upgrade().ok_or_else(|| ErrorValue::new(code::IO_ERROR, "the session is over"))
    }
}

/// Counts a call of one run.
fn count(calls: &AtomicUsize, what: &str) -> Result<(), ErrorValue> {
    if calls.fetch_add(1, Ordering::Relaxed) < FILTER_CALLS {
        return Ok(());
    }
    Err(ErrorValue::new(code::BUDGET_EXCEEDED, format!("a filter has {FILTER_CALLS} {what} for an event")))
}

fn refused(what: &str) -> ErrorValue {
    ErrorValue::new(code::NOT_PERMITTED, format!("a filter may not {what}"))
        .with_hint("a filter computes and reads; acting on notices is for whoever reads them")
}

fn no_write() -> FileError {
    FileError::new(FileErrorKind::NotPermitted, "a filter may not change files")
}

impl Host for FilterHost {
    fn files(&self) -> &dyn Files {
        self
    }

    fn processes(&self) -> &dyn Processes {
        self
    }

    fn clock(&self) -> &dyn Clock {
        self
    }

    fn system(&self) -> System {
        machine::facts(self.user.clone())
    }

    fn store(&self) -> Option<&dyn Store> {
        None
    }

    fn resources(&self) -> Option<&dyn Resources> {
        Some(self)
    }

    fn judge_env(&self, write: bool, _name: &str) -> Result<(), ErrorValue> {
        if write { Err(refused("set variables")) } else { Ok(()) }
    }
}

impl Clock for FilterHost {
    fn now(&self) -> jiff::Timestamp {
        SystemClock.now()
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        SystemClock.zone()
    }

    fn monotonic_ns(&self) -> u64 {
        SystemClock.monotonic_ns()
    }

    /// Waits no longer than the run may take.
    fn sleep(&self, ns: u64, cancel: &CancelToken) -> Result<(), Cancelled> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let left = u64::try_from(until.saturating_duration_since(clock::now()).as_nanos()).unwrap_or(u64::MAX);
        SystemClock.sleep(ns.min(left), cancel)?;
        if ns > left { Err(Cancelled) } else { Ok(()) }
    }
}

impl Processes for FilterHost {
    fn run(&self, _chain: Chain<'_>, _cancel: &CancelToken) -> Result<Finished, RunError> {
        let text = "a filter may not start programs".to_owned();
        Err(RunError::Start(StartError { stage: 0, kind: StartErrorKind::Denied, text }))
    }

    fn suspend(&self, _task: u64) {}

    fn resume(&self, _task: u64) {}
}

impl Files for FilterHost {
    fn open_dir(&self, _at: At<'_>) -> Result<Arc<dyn Dir>, FileError> {
        Err(FileError::new(FileErrorKind::NotPermitted, "a filter may not change the directory"))
    }

    fn meta(&self, at: At<'_>, follow: bool) -> Result<Meta, FileError> {
        self.files.meta(at, follow)
    }

    fn list(&self, at: At<'_>, cancel: &CancelToken) -> Result<Vec<Entry>, FileError> {
        self.files.list(at, cancel)
    }

    fn read_link(&self, at: At<'_>) -> Result<PathValue, FileError> {
        self.files.read_link(at)
    }

    fn open(&self, at: At<'_>, cancel: &CancelToken) -> Result<Box<dyn io::Read + Send>, FileError> {
        self.files.open(at, cancel)
    }

    fn read(&self, at: At<'_>, limit: u64, cancel: &CancelToken) -> Result<Vec<u8>, FileError> {
        self.files.read(at, limit, cancel)
    }

    fn create(&self, _at: At<'_>, _mode: WriteMode) -> Result<Box<dyn io::Write + Send>, FileError> {
        Err(no_write())
    }

    fn write(&self, _at: At<'_>, _mode: WriteMode, _bytes: &[u8], _cancel: &CancelToken) -> Result<(), FileError> {
        Err(no_write())
    }

    fn make_dir(&self, _at: At<'_>, _parents: bool) -> Result<(), FileError> {
        Err(no_write())
    }

    fn touch(&self, _at: At<'_>) -> Result<(), FileError> {
        Err(no_write())
    }

    fn copy(&self, _from: At<'_>, _to: At<'_>, _cancel: &CancelToken) -> Result<(), FileError> {
        Err(no_write())
    }

    fn rename(&self, _from: At<'_>, _to: At<'_>, _cancel: &CancelToken) -> Result<(), FileError> {
        Err(no_write())
    }

    fn link(&self, _target: At<'_>, _at: At<'_>, _symbolic: bool) -> Result<(), FileError> {
        Err(no_write())
    }

    fn remove(&self, _at: At<'_>, _recursive: bool, _cancel: &CancelToken) -> Result<(), FileError> {
        Err(no_write())
    }

    fn trash(&self, _at: At<'_>, _cancel: &CancelToken) -> Result<PathValue, FileError> {
        Err(no_write())
    }
}

impl Resources for FilterHost {
    fn list(&self, _cancel: &CancelToken) -> Result<Table, ErrorValue> {
        count(&self.reads, "resource calls")?;
        port::list(&*self.session()?)
    }

    fn read(&self, uri: &str, _cancel: &CancelToken) -> Result<Value, ErrorValue> {
        count(&self.reads, "resource calls")?;
        port::read(&*self.session()?, uri)
    }

    fn watch_start(&self, _watch: WatchStart, _cancel: &CancelToken) -> Result<Record, ErrorValue> {
        Err(refused("start watches"))
    }

    fn watch_stop(&self, _name: &str) -> Result<bool, ErrorValue> {
        Err(refused("stop watches"))
    }

    fn watch_list(&self) -> Result<Table, ErrorValue> {
        port::watch_list(&*self.session()?)
    }

    fn call_tool(&self, server: &str, tool: &str, args: &Record, _cancel: &CancelToken) -> Result<Value, ErrorValue> {
        count(&self.calls, "tool calls")?;
        port::call_tool(&*self.session()?, server, tool, args)
    }

    fn has_servers(&self) -> bool {
        false
    }
}
