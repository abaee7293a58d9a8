//! Outcomes: the results of commands.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::error::Span;
use crate::{Bytes, ErrorValue, Record, Str, Table, Value, code, json};

/// The result of a command: a shared handle, compared by identity. Derefs to its members.
#[derive(Clone, Debug)]
pub struct Outcome(Arc<OutcomeCell>);

#[derive(Debug)]
struct OutcomeCell {
    body: OutcomeBody,
    out: OnceLock<Value>,
}

/// Members of an outcome.
#[derive(Clone, Debug)]
pub struct OutcomeBody {
    /// Exit status; null when a signal ended it.
    pub status: Option<i64>,
    /// Whether the status is among the accepted ones, for every stage.
    pub ok: bool,
    /// `SIGSEGV` etc. when a signal ended it.
    pub signal: Option<Str>,
    /// The session limit that ended it: `memory`, `pids` or `cpu_seconds`.
    pub limit: Option<Str>,
    /// Run time in nanoseconds.
    pub dur_ns: i64,
    /// Process id; 0 for a builtin.
    pub pid: Option<i64>,
    /// The argv joined by spaces.
    pub cmd: Str,
    /// Standard output.
    pub stdout: Bytes,
    /// Standard error.
    pub stderr: Bytes,
    /// How `out` is made.
    pub out: Out,
    /// One row per command of a feed chain, one otherwise, none for builtins.
    pub stages: Vec<Stage>,
    /// How much was printed and kept; null for builtins.
    pub capture: Option<Capture>,
    /// What its programs used; null for builtins.
    pub usage: Option<Usage>,
    /// Where in the source the command stands.
    pub span: Option<Span>,
    /// Whether a terminal has shown the output already.
    pub shown: bool,
}

/// Where the `out` of an outcome comes from.
#[derive(Clone, Debug)]
pub enum Out {
    /// A builtin or an adapter made this value.
    Value(Value),
    /// Standard output of a program: stored bytes as they are, else the text, decoded if it is JSON.
    Stdout,
}

/// One command of a feed chain.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The argv joined by spaces.
    pub cmd: Str,
    /// Exit status; null when a signal ended it.
    pub status: Option<i64>,
    /// Name of the signal that ended it.
    pub signal: Option<Str>,
    /// Whether it counts as ok.
    pub ok: bool,
    /// Run time in nanoseconds.
    pub dur_ns: i64,
}

/// What was printed and what was kept of it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Bytes printed to standard output.
    pub stdout_seen: u64,
    /// Bytes of it kept.
    pub stdout_kept: u64,
    /// Bytes printed to standard error.
    pub stderr_seen: u64,
    /// Bytes of it kept.
    pub stderr_kept: u64,
    /// Left-behind processes that still hold a pipe.
    pub held_by: u32,
}

/// What programs used, with the children they waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all stages in nanoseconds.
    pub cpu_ns: i64,
    /// Most resident memory of one process, in bytes.
    pub peak_bytes: i64,
}

impl Usage {
    /// What both used.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns), peak_bytes: self.peak_bytes.max(other.peak_bytes) }
    }
}

impl Capture {
    /// Whether not everything was kept.
    pub fn is_partial(&self) -> bool {
        self.stdout_kept < self.stdout_seen || self.stderr_kept < self.stderr_seen
    }
}

impl OutcomeBody {
    /// The outcome of a structured builtin: status 0, ok, pid 0.
    pub fn builtin(head: impl Into<Str>, out: Value, stdout: Bytes, dur_ns: i64) -> Self {
        Self {
            status: Some(0),
            ok: true,
            signal: None,
            limit: None,
            dur_ns,
            pid: Some(0),
            cmd: head.into(),
            stdout,
            stderr: Bytes::empty(),
            out: Out::Value(out),
            stages: Vec::new(),
            capture: None,
            usage: None,
            span: None,
            shown: false,
        }
    }
}

/// Output that starts like JSON is decoded up to this nesting; deeper text stays text. It bounds the depth of an outcome
/// whose output has not been looked at.
pub(crate) const MAX_OUT_DEPTH: usize = 128;

impl Outcome {
    /// An outcome with these members.
    pub fn new(body: OutcomeBody) -> Self {
        Self(Arc::new(OutcomeCell { body, out: OnceLock::new() }))
    }

    /// The value of the output, whether or not the command is ok.
    pub fn peek_out(&self) -> &Value {
        match &self.body().out {
            Out::Value(value) => value,
            Out::Stdout => self.0.out.get_or_init(|| decode_stdout(&self.body().stdout)),
        }
    }

    /// The value of the output, unless nobody looked at it yet.
    pub(crate) fn made_out(&self) -> Option<&Value> {
        match &self.body().out {
            Out::Value(value) => Some(value),
            Out::Stdout => self.0.out.get(),
        }
    }

    /// `.out`: raises `cmd_failed` when the command is not ok.
    pub fn out(&self) -> Result<&Value, ErrorValue> {
        if self.ok { Ok(self.peek_out()) } else { Err(self.failure().with_hint(FAILED_HINT)) }
    }

    /// Standard output as text, lossy, one final newline removed, whether or not the command is ok; of stored output only
    /// the preview.
    pub fn peek_text(&self) -> String {
        let mut text = self.stdout.to_text_lossy().into_owned();
        if text.ends_with('\n') {
            text.pop();
        }
        text
    }

    /// `.text`: raises `cmd_failed` when the command is not ok, and `too_large` when the content store has the output: the
    /// evaluator loads it first if it can.
    pub fn text(&self) -> Result<String, ErrorValue> {
        if !self.ok {
            return Err(self.failure().with_hint(FAILED_HINT));
        }
        match &self.stdout {
            Bytes::Stored(stored) => {
                let msg = format!("the output has {} bytes and is not in memory", stored.len);
                Err(ErrorValue::too_large(msg).with_hint("load it first: .stdout.load().str()"))
            }
            Bytes::Held(_) | Bytes::Cut(_) => Ok(self.peek_text()),
        }
    }

    /// Whether text made of its output replaces bytes that are not UTF-8.
    pub fn is_lossy(&self) -> bool {
        matches!(self.body().out, Out::Stdout) && self.stdout.is_lossy() || self.stderr.is_lossy()
    }

    /// The `cmd_failed` error it raises: names the failing stage and carries status, both outputs and the outcome.
    pub fn failure(&self) -> ErrorValue {
        let failing = self.stages.iter().rev().find(|stage| !stage.ok);
        let cmd = failing.map_or(&self.cmd, |stage| &stage.cmd);
        let msg = match (&self.signal, self.status) {
            (Some(signal), _) => format!("`{cmd}` died from {signal}"),
            (None, Some(status)) => format!("`{cmd}` exited with status {status}"),
            (None, None) => format!("`{cmd}` has no exit status"),
        };
        ErrorValue::new(code::CMD_FAILED, msg).with(|body| {
            body.status = self.status;
            body.stdout = Some(self.stdout.clone());
            body.stderr = Some(self.stderr.clone());
            body.outcome = Some(self.clone());
        })
    }

    /// `.stages` as a table `{cmd, status, signal, ok, dur}`.
    pub fn stages_table(&self) -> Result<Table, ErrorValue> {
        let rows = self.stages.iter().map(|stage| {
            Record::leaves([
                ("cmd", stage.cmd.clone().into()),
                ("status", stage.status.into()),
                ("signal", stage.signal.clone().into()),
                ("ok", stage.ok.into()),
                ("dur", crate::Leaf::duration(stage.dur_ns)),
            ])
        });
        Table::with_columns(["cmd", "status", "signal", "ok", "dur"], rows.collect())
    }

    /// `.capture` as a record; null for builtins.
    pub fn capture_record(&self) -> Option<Record> {
        let int = |n: u64| i64::try_from(n).unwrap_or(i64::MAX).into();
        self.capture.map(|c| {
            Record::leaves([
                ("stdout_seen", int(c.stdout_seen)),
                ("stdout_kept", int(c.stdout_kept)),
                ("stderr_seen", int(c.stderr_seen)),
                ("stderr_kept", int(c.stderr_kept)),
                ("lossy", self.is_lossy().into()),
                ("held_by", i64::from(c.held_by).into()),
            ])
        })
    }

    /// `.usage` as a record `{cpu, peak_memory}`; null for builtins.
    pub fn usage_record(&self) -> Option<Record> {
        self.usage.map(|usage| {
            let peak = crate::Leaf::size(usage.peak_bytes.unsigned_abs());
            Record::leaves([("cpu", crate::Leaf::duration(usage.cpu_ns)), ("peak_memory", peak)])
        })
    }

    /// The same outcome, marked as shown on a terminal. It is a new handle unless this one is not shared.
    #[must_use]
    pub fn marked_shown(self) -> Self {
        let mut body = self.body().clone();
        body.shown = true;
        Self::new(body)
    }

    /// Whether two are the same outcome.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Members.
    pub fn body(&self) -> &OutcomeBody {
        &self.0.body
    }

    /// Levels of containers below and including this outcome.
    pub(crate) fn depth(&self) -> usize {
        match &self.body().out {
            Out::Value(value) => 1 + value.depth(),
            Out::Stdout => 1 + MAX_OUT_DEPTH,
        }
    }
}

const FAILED_HINT: &str = "a failed command still has `.stdout`, `.stderr` and `.status`";

impl Deref for Outcome {
    type Target = OutcomeBody;

    fn deref(&self) -> &OutcomeBody {
        self.body()
    }
}

fn decode_stdout(stdout: &Bytes) -> Value {
    match stdout {
        Bytes::Stored(_) => return Value::Bytes(stdout.clone()),
        Bytes::Cut(_) | Bytes::Held(_) => {}
    }
    let text = stdout.to_text_lossy();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if stdout.held().is_some()
        && text.trim_start().starts_with(['{', '['])
        && let Ok(value) = json::parse_within(text, MAX_OUT_DEPTH)
    {
        return value;
    }
    Value::str(text)
}

#[cfg(test)]
mod tests;
