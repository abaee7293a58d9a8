//! Programs in an evaluator with a budget and a host that has nothing: no file, no program, a clock that stands still.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_eval::cancel::{CancelToken, Cancelled};
use shoal_eval::host::{
    At, Chain, Clock, Dir, Entry, FileError, FileErrorKind, Files, Finished, Host, Meta, Meter, Processes, Run,
    RunError, Silent, StartError, StartErrorKind, System, WriteMode,
};
use shoal_eval::place::{Env, Place};
use shoal_eval::request::{Evaluators, Position, State};
use shoal_eval::stack::run_on_big_stack;
use shoal_value::{PathValue, render};

use crate::Target;

/// Steps a program may take: enough to leave every construct, little enough for many programs a second.
const STEPS: u64 = 20_000;
/// Bytes it may make.
const BYTES: u64 = 32 * 1024 * 1024;

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "eval_program",
    run: program,
    seeds: &[
        b"var n = 0\nfor i in 1..9 { match i { 4 => { break }, _ => { n += i } } }\nn",
        b"[3, 1].map(x => x * 2).sort_by(-it).group(.a) catch e { e.msg }",
        b"fn f(a, b: int = a + 1, ...r) { if a > 3 { return r } else { f(a + 1) } }\nf 1 2 --b 3",
        b"try { let {a, b: [c, ...d]} = {a: 1, b: [2]}\nraise(\"x_y\", \"{a}{c}\") } catch e { raise(e) } ",
        b"let c = channel(\"a\"); c.emit({a: 1}); c.events().take(1).map(.payload).collect()",
        b"\"a1b2\".replace(re\"\\d\", \"<$0>\").chars().enumerate().to_record().json()",
        b"json.parse(json.stringify({a: [1, 2.5, 1kb, 2h, t\"2026-01-01\"]})).a.sum()",
        b"with env: {A: \"1\"}, cwd: \"/\" { echo (env.A) *.txt > f }\nplan { rm -r x }",
        b"let fs = (1..4).map(i => () => i * 10)\nfs.map(f => f()).reduce(0, (a, b) => a + b)",
    ],
}];

/// A program ends with a value or an error whatever it is, and its value renders within the budget.
fn program(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let state = State::new(Place::new(Arc::new(Nowhere("/".into())), Env::new_sync()));
    let parsed = shoal_syntax::parse(source, &state.names());
    if !parsed.diags.is_empty() {
        return;
    }
    let source = source.to_owned();
    run_on_big_stack(move || {
        let evaluators = Evaluators::new(Arc::new(Bare), |_| {});
        let cancel = CancelToken::new();
        let run = Run { id: 0, cancel, meter: Arc::new(Budget::default()), sink: Arc::new(Silent) };
        evaluators.derive(&parsed.program, &state, run.clone());
        let position = Position { statement: true, session: true };
        let finish = evaluators.run(&parsed.program, &source, &state, position, run);
        evaluators.close();
        if let Ok(value) = finish.result {
            let (text, _) = render::inline_within(&value, 1000);
            assert!(text.len() <= 1000 + 64, "{} bytes", text.len());
        }
    })
    .expect("a thread for the evaluator");
}

/// Refuses what goes beyond the budget.
#[derive(Default)]
struct Budget {
    steps: AtomicU64,
    bytes: AtomicU64,
}

impl Meter for Budget {
    fn step(&self, n: u64) -> Result<(), String> {
        let so_far = self.steps.fetch_add(n, Ordering::Relaxed);
        if so_far > STEPS { Err("steps".to_owned()) } else { Ok(()) }
    }

    fn alloc(&self, bytes: u64) -> Result<(), String> {
        let so_far = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if so_far.saturating_add(bytes) > BYTES { Err("bytes".to_owned()) } else { Ok(()) }
    }
}

struct Bare;

impl Host for Bare {
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
        System {
            platform: "linux",
            arch: "x86_64",
            pid: 1,
            hostname: "host".into(),
            username: "user".into(),
            cpus: 1,
            uptime_ns: None,
        }
    }
}

impl Clock for Bare {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::UTC
    }

    fn monotonic_ns(&self) -> u64 {
        0
    }

    /// Whoever waits here would wait for ever.
    fn sleep(&self, _ns: u64, cancel: &CancelToken) -> Result<(), Cancelled> {
        cancel.cancel(shoal_eval::cancel::CancelReason::Deadline);
        Err(Cancelled)
    }
}

impl Processes for Bare {
    fn run(&self, _chain: Chain<'_>, _cancel: &CancelToken) -> Result<Finished, RunError> {
        let kind = StartErrorKind::NotFound;
        Err(RunError::Start(StartError { stage: 0, kind, text: String::new() }))
    }

    fn suspend(&self, _task: u64) {}

    fn resume(&self, _task: u64) {}
}

struct Nowhere(PathValue);

impl Dir for Nowhere {
    fn path(&self) -> &PathValue {
        &self.0
    }
}

fn missing<T>() -> Result<T, FileError> {
    Err(FileError::new(FileErrorKind::NotFound, ""))
}

impl Files for Bare {
    fn open_dir(&self, at: At<'_>) -> Result<Arc<dyn Dir>, FileError> {
        Ok(Arc::new(Nowhere(at.path.into())))
    }

    fn meta(&self, _at: At<'_>, _follow: bool) -> Result<Meta, FileError> {
        missing()
    }

    fn list(&self, _at: At<'_>, _cancel: &CancelToken) -> Result<Vec<Entry>, FileError> {
        Ok(Vec::new())
    }

    fn read_link(&self, _at: At<'_>) -> Result<PathValue, FileError> {
        missing()
    }

    fn open(&self, _at: At<'_>, _cancel: &CancelToken) -> Result<Box<dyn io::Read + Send>, FileError> {
        missing()
    }

    fn read(&self, _at: At<'_>, _limit: u64, _cancel: &CancelToken) -> Result<Vec<u8>, FileError> {
        missing()
    }

    fn create(&self, _at: At<'_>, _mode: WriteMode) -> Result<Box<dyn io::Write + Send>, FileError> {
        Ok(Box::new(io::sink()))
    }

    fn write(&self, _at: At<'_>, _mode: WriteMode, _bytes: &[u8], _cancel: &CancelToken) -> Result<(), FileError> {
        Ok(())
    }

    fn make_dir(&self, _at: At<'_>, _parents: bool) -> Result<(), FileError> {
        Ok(())
    }

    fn touch(&self, _at: At<'_>) -> Result<(), FileError> {
        Ok(())
    }

    fn copy(&self, _from: At<'_>, _to: At<'_>, _cancel: &CancelToken) -> Result<(), FileError> {
        missing()
    }

    fn rename(&self, _from: At<'_>, _to: At<'_>, _cancel: &CancelToken) -> Result<(), FileError> {
        missing()
    }

    fn link(&self, _target: At<'_>, _at: At<'_>, _symbolic: bool) -> Result<(), FileError> {
        Ok(())
    }

    fn remove(&self, _at: At<'_>, _recursive: bool, _cancel: &CancelToken) -> Result<(), FileError> {
        missing()
    }

    fn trash(&self, _at: At<'_>, _cancel: &CancelToken) -> Result<PathValue, FileError> {
        missing()
    }
}
