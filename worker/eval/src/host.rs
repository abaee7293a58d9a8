//! The ports through which every effect leaves the evaluator.
//!
//! A host implements [`Host`]; the evaluator itself opens no file, starts no program and reads no clock. Each port judges
//! an effect before it acts, so that a refusal is early and names what it refused; the jail is the boundary. All ports
//! are shared by the threads of a session. Calls that may wait take the run's [`CancelToken`] and return within 50 ms of
//! its being set.

pub mod files;
pub mod process;
pub mod session;

use std::sync::Arc;

pub use files::{At, Dir, Entry, FileError, FileErrorKind, FileKind, Files, Meta, WriteMode};
pub use process::{
    Chain, Exit, Finished, Input, Output, Processes, Program, RunError, Stage, StageEnd, StartError, StartErrorKind,
};
pub use session::{
    Bus, Journal, JournalQuery, JournalRow, Plans, Resources, Store, StoredPlan, UndoReport, WatchStart,
};
use shoal_value::{Bytes, ErrorValue, Record, Str, Value, error::Span};

use crate::cancel::{CancelToken, Cancelled};

/// Everything an evaluator can reach. A port that is `None` is left out by this host; what needs it fails as the language
/// says.
pub trait Host: Send + Sync {
    /// Files and directories.
    fn files(&self) -> &dyn Files;

    /// Programs.
    fn processes(&self) -> &dyn Processes;

    /// Wall clock, monotonic clock, zone, sleep.
    fn clock(&self) -> &dyn Clock;

    /// Facts about the machine (`os.*`).
    fn system(&self) -> System;

    /// Stored values by hash.
    fn store(&self) -> Option<&dyn Store> {
        None
    }

    /// The journal and undo.
    fn journal(&self) -> Option<&dyn Journal> {
        None
    }

    /// Stored plans.
    fn plans(&self) -> Option<&dyn Plans> {
        None
    }

    /// Resources and watches.
    fn resources(&self) -> Option<&dyn Resources> {
        None
    }

    /// The event bus behind channels whose names begin with `user.`.
    fn bus(&self) -> Option<&dyn Bus> {
        None
    }

    /// The resolved configuration, as of the last request; `{}` without one.
    fn config(&self) -> Record {
        Record::empty()
    }

    /// Whether Reef manifests decide which program a name means.
    fn reads_manifests(&self) -> bool {
        false
    }

    /// Judges environment effects, which have no port of their own: `Err` is the refusal (`not_permitted`).
    fn judge_env(&self, _write: bool, _name: &str) -> Result<(), ErrorValue> {
        Ok(())
    }
}

/// Wall clock and waiting.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> jiff::Timestamp;

    /// The system zone.
    fn zone(&self) -> jiff::tz::TimeZone;

    /// Nanoseconds of a clock that never goes back.
    fn monotonic_ns(&self) -> u64;

    /// Waits `ns` nanoseconds, or until `cancel` is set.
    fn sleep(&self, ns: u64, cancel: &CancelToken) -> Result<(), Cancelled>;
}

/// Facts about the machine.
#[derive(Clone, Debug)]
pub struct System {
    /// `linux` or `macos`.
    pub platform: &'static str,
    /// `x86_64`, `aarch64`, ...
    pub arch: &'static str,
    /// Process id of the evaluator's process.
    pub pid: u32,
    /// Name of the machine.
    pub hostname: Str,
    /// Name of the user.
    pub username: Str,
    /// Number of processors.
    pub cpus: u32,
    /// Nanoseconds since the machine started, if known.
    pub uptime_ns: Option<i64>,
}

/// Counts work and memory of one run; may refuse (`budget_exceeded`).
pub trait Meter: Send + Sync {
    /// `n` statements, iterations, calls or items. `Err` is the text that names the limit and its value.
    fn step(&self, n: u64) -> Result<(), String>;

    /// A value or buffer of `bytes` bytes is about to be made.
    fn alloc(&self, bytes: u64) -> Result<(), String>;

    /// A call through a builtin lies deep: more than [`crate::stack::DEEP`] of them are open on this native stack, whose
    /// pages stay with its thread.
    fn went_deep(&self) {}
}

/// A meter that never refuses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmetered;

impl Meter for Unmetered {
    fn step(&self, _n: u64) -> Result<(), String> {
        Ok(())
    }

    fn alloc(&self, _bytes: u64) -> Result<(), String> {
        Ok(())
    }
}

/// Where intermediate values, printed text and notes of one run go.
pub trait Sink: Send + Sync {
    /// The value of a statement that is not the last. `bare` says whether the statement is a bare command. The sink
    /// decides by its echo policy; null and outcomes already shown print nothing.
    fn value(&self, value: &Value, bare: bool);

    /// Text a builtin prints, such as `--help`.
    fn text(&self, text: &str);

    /// A lint. Never an error.
    fn note(&self, note: Note);
}

/// A lint: what to look at, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What to look at.
    pub msg: String,
    /// Where.
    pub span: Option<Span>,
}

/// A sink that drops everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Sink for Silent {
    fn value(&self, _value: &Value, _bare: bool) {}

    fn text(&self, _text: &str) {}

    fn note(&self, _note: Note) {}
}

/// What one run is given besides the host.
#[derive(Clone)]
pub struct Run {
    /// The host's number of the request; tasks it starts keep it. 0 in hosts that have one request.
    pub id: u64,
    /// Set to end the run.
    pub cancel: CancelToken,
    /// Budget.
    pub meter: Arc<dyn Meter>,
    /// Intermediate output.
    pub sink: Arc<dyn Sink>,
}

/// What a host keeps of one stream of a program: all bytes, or those its capture rules allow.
pub type Captured = Bytes;
