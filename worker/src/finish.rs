//! From the end of an evaluation to the message that tells it.

use std::os::fd::OwnedFd;

use serde_json::{Value as Json, json};
use shoal_eval::cancel::CancelReason;
use shoal_eval::request::Finish;
use shoal_proto::broker_worker::{Elide, Ending};
use shoal_value::render::{self, Style};
use shoal_value::wire::{self, Origin};
use shoal_value::{Bytes, ErrorValue, Outcome, PathValue, Value, code};
use shoal_wire::elide::{Budgets, HARD_CAP};
use shoal_wire::{Ref, text};

/// A complete wire form longer than this is not stored.
const MAX_WIRE: usize = 256 * 1024 * 1024;
/// Message, hint or code of an error in an answer.
const MAX_MESSAGE: usize = 4096;

/// What does not depend on the number of the result, made before the session is locked for it.
pub(crate) struct Ended {
    /// The value, or the error as a value.
    pub(crate) value: Value,
    /// How it ended.
    pub(crate) ending: Ending,
    /// The value's complete wire form, unless it is too long to keep.
    pub(crate) wire: Option<String>,
    error: Option<ErrorValue>,
    exit: Option<i64>,
}

impl Ended {
    /// Takes the end of an evaluation. `reason` is why the run's token was set, if it was.
    pub(crate) fn new(finish: &Finish, reason: Option<CancelReason>) -> Self {
        let (value, error) = match &finish.result {
            Ok(value) => (value.clone(), None),
            Err(error) => (Value::Error(error.clone()), Some(error.clone())),
        };
        let ending = match &error {
            None => Ending::Value,
            Some(error) if *error.code == *code::DEADLINE_EXCEEDED && reason == Some(CancelReason::Deadline) => {
                Ending::Deadline
            }
            Some(error) if *error.code == *code::CANCELLED && reason.is_some() => Ending::Cancelled,
            Some(_) => Ending::Raised,
        };
        let wire = wire::to_wire(&value, MAX_WIRE);
        Self { value, ending, wire, error, exit: finish.exit }
    }

    /// Whether the result counts as good: a value, and an outcome among them is ok.
    pub(crate) fn is_ok(&self) -> bool {
        match &self.value {
            Value::Outcome(outcome) => outcome.ok,
            _ => self.error.is_none() && self.exit.unwrap_or(0) == 0,
        }
    }

    /// The elided wire value of `out:n`.
    pub(crate) fn elided(&self, n: u64, elide: Elide) -> String {
        let reference = Ref::Out(n);
        wire::elide(&self.value, &budgets(elide), origin(&reference))
    }

    /// The block rendering of `out:n`, bounded. Without a terminal at the other end it has no escapes.
    pub(crate) fn render(&self, n: u64, tty: bool, cwd: PathValue) -> String {
        if self.value.is_null() {
            return String::new();
        }
        let style = Style { cwd: Some(cwd), ..Style::default() };
        let uri = Ref::Out(n).uri();
        let block = render::block_within(&self.value, &style, uri.as_deref());
        if tty { block } else { text::without_escapes(&block).into_owned() }
    }

    /// Bytes to store beside the value: standard output and error, whole.
    pub(crate) fn outputs(&self) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let (stdout, stderr) = match (&self.value, &self.error) {
            (Value::Outcome(outcome), _) => (Some(&outcome.stdout), Some(&outcome.stderr)),
            (_, Some(error)) => (error.stdout.as_ref(), error.stderr.as_ref()),
            (_, None) => (None, None),
        };
        (stdout.and_then(held), stderr.and_then(held))
    }

    /// Members of the message besides the value.
    pub(crate) fn detail(&self, n: u64, counts: (u64, u64), changed: &[&str]) -> Json {
        let outcome = match &self.value {
            Value::Outcome(outcome) => Some(outcome),
            _ => None,
        };
        let status = match (outcome, &self.error) {
            (Some(outcome), _) => outcome.status,
            (None, Some(error)) => error.status,
            (None, None) => Some(self.exit.unwrap_or(0)),
        };
        let mut detail = json!({
            "status": status, "ok": self.is_ok(), "summary": self.summary(outcome),
            "stdout_bytes": counts.0, "stderr_bytes": counts.1,
        });
        if let Some(outcome) = outcome {
            detail["signaled"] = outcome.signal.is_some().into();
            detail["exit_code"] = outcome.status.into();
        }
        if let Some(exit) = self.exit {
            detail["exit_code"] = exit.into();
        }
        let failed = self.error.as_ref().and_then(|error| error.outcome.as_ref());
        let held = outcome.or(failed).and_then(|o| o.capture).map_or(0, |capture| capture.held_by);
        if held > 0 {
            detail["held_by"] = held.into();
        }
        if !changed.is_empty() {
            detail["changed"] = changed.into();
        }
        if let Some(error) = &self.error {
            detail["error"] = raised(error, n);
        }
        detail
    }

    fn summary(&self, outcome: Option<&Outcome>) -> Json {
        let mut summary = json!({"type": self.value.type_name()});
        if let Some(outcome) = outcome {
            summary["ok"] = outcome.ok.into();
            summary["cmd"] = text::cut(&outcome.cmd, 200).into();
        }
        match &self.value {
            Value::List(list) => summary["n"] = list.len().into(),
            Value::Table(table) => summary["n"] = table.len().into(),
            _ => {}
        }
        summary
    }
}

/// A whole result.
pub(crate) fn origin(reference: &Ref) -> Origin<'_> {
    Origin { reference, path: None, slice: None }
}

/// The budgets of an answer.
pub(crate) fn budgets(elide: Elide) -> Budgets {
    Budgets {
        max_bytes: elide.max_bytes.into(),
        max_rows: elide.max_rows.into(),
        max_bytes_raw: elide.max_bytes_raw.into(),
        max_items: elide.max_items.into(),
        hard_cap: HARD_CAP,
    }
}

/// An error as the data of an answer.
fn raised(error: &ErrorValue, n: u64) -> Json {
    let span = error.span.map(|span| json!({"start": span.start, "end": span.end}));
    let uri = format!("shoal://out/{n}?path=stderr");
    let stderr = error.stderr.as_ref().map(|bytes| text::stderr(&bytes.to_text_lossy(), &uri).into_owned());
    json!({
        "code": text::cut(&error.code, MAX_MESSAGE), "message": text::cut(&error.msg, MAX_MESSAGE), "span": span,
        "hint": error.hint.as_deref().map(|hint| text::cut(hint, MAX_MESSAGE)), "status": error.status, "stderr": stderr,
    })
}

/// All bytes that are in memory; of cut ones head, marker and tail. Nothing for no bytes.
fn held(bytes: &Bytes) -> Option<Vec<u8>> {
    match bytes {
        Bytes::Held(held) if held.is_empty() => None,
        Bytes::Held(held) => Some(held.to_vec()),
        Bytes::Cut(cut) => Some([&*cut.head, b"\n", cut.marker().as_bytes(), b"\n", &*cut.tail].concat()),
        // It is in the store already.
        Bytes::Stored(_) => None,
    }
}

/// A sealed memfd for the broker.
pub(crate) fn attach(name: &str, bytes: &[u8]) -> std::io::Result<OwnedFd> {
    shoal_sys::memfd::sealed(name, bytes)
}
