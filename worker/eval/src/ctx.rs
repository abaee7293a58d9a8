//! What a builtin sees of the evaluator that runs it.

use std::sync::Arc;

use shoal_value::{DateTime, ErrorValue, Glob, Outcome, PathValue, Str, Value, code};

use crate::cancel::CancelToken;
use crate::glob;
use crate::host::{At, Clock, Dir, FileError, FileErrorKind, Files, Host, Note, Sink};
use crate::machine::Machine;
use crate::methods::items::Items;
use crate::place::{Env, Place};
use crate::registry::Given;
use crate::unwind::{Eval, Stop, Unwind};
use crate::vm::{Arg, Prepared};

/// A builtin's view of the evaluator: ports, place, budget, and calls back into the program.
pub struct Ctx<'m> {
    machine: &'m mut Machine,
}

/// Results of items that room is made for at once.
pub(crate) const BLOCK: usize = 128;

impl<'m> Ctx<'m> {
    pub(crate) fn new(machine: &'m mut Machine) -> Self {
        Self { machine }
    }

    pub(crate) fn machine(&mut self) -> &mut Machine {
        self.machine
    }

    pub(crate) fn peek(&self) -> &Machine {
        self.machine
    }

    /// The host.
    pub fn host(&self) -> &dyn Host {
        &*self.machine.session.host
    }

    /// The host, to keep beside a mutable use of the context.
    pub fn host_handle(&self) -> Arc<dyn Host> {
        self.machine.session.host.clone()
    }

    /// The file port.
    pub fn files(&self) -> &dyn Files {
        self.host().files()
    }

    /// The clock port.
    pub fn clock(&self) -> &dyn Clock {
        self.host().clock()
    }

    /// The run's sink.
    pub fn sink(&self) -> &dyn Sink {
        &*self.machine.run.sink
    }

    /// Hands a lint to the host, with the place of the running call.
    pub fn note(&self, msg: impl Into<String>) {
        self.sink().note(Note { msg: msg.into(), span: self.machine.span_here() });
    }

    /// The run's token, for calls that wait.
    pub fn cancel(&self) -> &CancelToken {
        &self.machine.run.cancel
    }

    /// Counts `n` items and fails when the run is to end. Call it once per item of a collection.
    #[inline]
    pub fn step(&mut self, n: u32) -> Eval<()> {
        self.machine.step(n)
    }

    /// Fails when the run is to end. Call it per 64 KiB of input inside long native work.
    pub fn check(&self) -> Eval<()> {
        match self.machine.run.cancel.reason() {
            None => Ok(()),
            Some(reason) => Err(Stop::Cancelled(reason).into()),
        }
    }

    /// Announces a value or buffer of `bytes` bytes; needed above 4 KiB.
    pub fn alloc(&self, bytes: u64) -> Eval<()> {
        self.machine.run.meter.alloc(bytes).map_err(|text| Stop::Budget(text).into())
    }

    /// Calls a closure or alias. Counts as a nested call.
    pub fn call(&mut self, callee: &Value, args: &[Value]) -> Eval<Value> {
        self.machine.call_value(callee, args)
    }

    /// Looks a callee up, to call it for many items with [`Self::apply`].
    pub fn prepare<'v>(&mut self, callee: &'v Value) -> Prepared<'v> {
        self.machine.prepare(callee)
    }

    /// Calls what was prepared; the same as [`Self::call`].
    #[inline]
    pub fn apply<const N: usize>(&mut self, callee: &Prepared<'_>, args: [Value; N]) -> Eval<Value> {
        self.machine.apply(callee, args)
    }

    /// Calls a prepared function with arguments where they lie, and writes its value where it is to be.
    #[inline]
    pub(crate) fn apply_into<const N: usize>(
        &mut self,
        callee: &Prepared<'_>,
        args: [Arg<'_>; N],
        slot: &mut Value,
    ) -> Eval<()> {
        self.machine.apply_into(callee, args, slot)
    }

    /// What a prepared function gives for each item, in order.
    pub(crate) fn apply_to_all(&mut self, callee: &Prepared<'_>, items: &Items) -> Eval<Vec<Value>> {
        let mut results = Vec::with_capacity(items.bounded_len()?);
        for from in (0..items.len()).step_by(BLOCK) {
            // Room is made for a few at a time, so that it is still at hand when they are written.
            results.resize((from + BLOCK).min(items.len()), Value::Null);
            for (at, slot) in results.iter_mut().enumerate().skip(from) {
                if let Some(item) = items.lying(at) {
                    self.machine.apply_into(callee, [item], slot)?;
                }
            }
        }
        Ok(results)
    }

    /// Calls a prepared predicate with an item where it lies and takes its value as a condition.
    #[inline]
    pub(crate) fn satisfies(&mut self, predicate: &Prepared<'_>, item: Arg<'_>) -> Eval<bool> {
        self.machine.satisfies(predicate, item)
    }

    /// Calls a closure or alias with arguments by name too.
    pub fn call_given(&mut self, callee: &Value, given: Given) -> Eval<Value> {
        self.machine.call_given(callee, given)
    }

    /// Calls a method as `receiver.name(args)` does.
    pub fn call_method(&mut self, receiver: Value, name: &str, given: Given) -> Eval<Value> {
        self.machine.call_method(receiver, name, given)
    }

    /// Calls a predicate and takes its value as a condition.
    pub fn holds(&mut self, predicate: &Value, args: &[Value]) -> Eval<bool> {
        let value = self.call(predicate, args)?;
        Ok(condition(&value)?)
    }

    /// Drops a value as a statement does: a failed outcome raises `cmd_failed`.
    pub fn discard(&self, value: &Value) -> Result<(), ErrorValue> {
        match value {
            Value::Outcome(outcome) if !outcome.ok => Err(outcome.failure()),
            _ => Ok(()),
        }
    }

    /// Working directory.
    pub fn cwd(&self) -> &Arc<dyn Dir> {
        &self.machine.place.cwd
    }

    /// `path` relative to the working directory.
    pub fn at<'a>(&'a self, path: &'a PathValue) -> At<'a> {
        At { dir: &self.machine.place.cwd, path: path.as_bytes() }
    }

    /// `path` as an absolute path: the working directory joined with it, not normalised.
    pub fn absolute(&self, path: &PathValue) -> PathValue {
        join_path(self.cwd().path(), path)
    }

    /// Makes the error of a failed file operation; a token that was set ends the run.
    pub fn file_error(&self, error: &FileError, path: &PathValue) -> Unwind {
        if let (FileErrorKind::Cancelled, Some(reason)) = (error.kind, self.cancel().reason()) {
            return Stop::Cancelled(reason).into();
        }
        error.about(path.as_bytes()).into()
    }

    /// Working directory, its history and the environment.
    pub fn place(&self) -> &Place {
        &self.machine.place
    }

    /// Makes `dir` the working directory for the rest of the request. Fails inside a function (`custom`).
    pub fn enter_dir(&mut self, dir: Arc<dyn Dir>) -> Result<(), ErrorValue> {
        self.top_level("cd")?;
        self.machine.changes.cwd = true;
        self.machine.place.enter(dir);
        Ok(())
    }

    /// Replaces the directory stack. Fails inside a function (`custom`).
    pub fn set_dir_stack(&mut self, command: &str, stack: Vec<Arc<dyn Dir>>) -> Result<(), ErrorValue> {
        self.top_level(command)?;
        self.machine.changes.cwd = true;
        self.machine.place.stack = stack;
        Ok(())
    }

    /// Fails with `custom` inside a function or lambda body: `command` changes the directory of the session.
    pub fn top_level(&self, command: &str) -> Result<(), ErrorValue> {
        if !self.machine.in_function() {
            return Ok(());
        }
        Err(ErrorValue::new(code::CUSTOM, format!("`{command}` works at the top level only, not inside a function"))
            .with_hint("scope it with `with cwd: path { ... }`"))
    }

    /// Environment.
    pub fn env(&self) -> &Env {
        &self.machine.place.env
    }

    /// The present instant in the system zone.
    pub fn now(&self) -> DateTime {
        DateTime::from(self.clock().now().to_zoned_datetime(self.clock().zone()))
    }

    /// Paths that match, sorted; relative if the pattern is relative and the working directory is the glob's own.
    pub fn expand(&mut self, glob: &Glob) -> Eval<Vec<PathValue>> {
        glob::expand(self, glob)
    }
}

/// A condition: a bool, or whether an outcome is ok.
#[inline]
pub fn condition(value: &Value) -> Result<bool, ErrorValue> {
    match value {
        Value::Bool(holds) => Ok(*holds),
        Value::Outcome(outcome) => Ok(outcome.ok),
        other => {
            let text = "a condition must be a bool or an outcome";
            let error = ErrorValue::type_error(format!("{text}, found {}: there is no truthiness", other.type_name()));
            Err(error.with_hint(match other {
                // What `cd` and `pwd` give.
                Value::Path(_) => "test the path: `p.exists`, `p.is_dir`; commands one after the other: `cd p; cmd`",
                _ => "compare explicitly: `x != null`, `n != 0`, `!xs.is_empty()`",
            }))
        }
    }
}

/// The outcome of a builtin: `out` is the value and `stdout` its bytes.
pub(crate) fn builtin_outcome(head: &str, out: Value, stdout: shoal_value::Bytes, dur_ns: i64) -> Value {
    Value::Outcome(Outcome::new(shoal_value::outcome::OutcomeBody::builtin(Str::from(head), out, stdout, dur_ns)))
}

/// `path` below `base`, unless it is absolute.
pub fn join_path(base: &PathValue, path: &PathValue) -> PathValue {
    let (base, path) = (base.as_bytes(), path.as_bytes());
    if path.first() == Some(&b'/') {
        return PathValue::from(path);
    }
    let mut joined = base.to_vec();
    if joined.last() != Some(&b'/') {
        joined.push(b'/');
    }
    joined.extend_from_slice(path);
    PathValue::from(joined)
}
