//! Parts of a value by path and slice, without evaluation, and the raw format.

use std::fmt;

use shoal_wire::limits::RAW_BYTES;
use shoal_wire::path::{self, Step};

use crate::{Bytes, ErrorValue, List, Outcome, Str, Table, Value};

/// Why a part cannot be given. The reason is the one of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectError {
    /// Reason `path`: a malformed bracket, or a step the value does not have.
    Path(String),
    /// Reason `slice`: a slice of a type that has none.
    Slice(&'static str),
    /// Reason `format`: raw content of a type that has none.
    Format(&'static str),
    /// Reason `too_large`: raw content, or a part of stored bytes, above 64 KiB.
    TooLarge {
        /// Length in the unit that slices count in.
        total: u64,
        /// `chars` of a str, `bytes` of bytes.
        unit: &'static str,
    },
    /// The content store no longer has the bytes.
    Evicted,
}

impl SelectError {
    /// The reason word of the protocol; none for [`SelectError::Evicted`], which has an error of its own.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Path(_) => Some("path"),
            Self::Slice(_) => Some("slice"),
            Self::Format(_) => Some("format"),
            Self::TooLarge { .. } => Some("too_large"),
            Self::Evicted => None,
        }
    }
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(why) => f.write_str(why),
            Self::Slice(of) => write!(f, "{of} has no slices: list, table, str and bytes do"),
            Self::Format(of) => write!(f, "{of} has no raw content: str and bytes do"),
            Self::TooLarge { total, unit } => {
                write!(f, "raw content of {total} {unit} exceeds {RAW_BYTES} bytes; add a slice")
            }
            Self::Evicted => f.write_str("the stored bytes are gone"),
        }
    }
}

impl std::error::Error for SelectError {}

/// Reads parts of stored bytes.
pub trait Store {
    /// Bytes `start` up to `end` of the blob, clamped to its length; none if it is gone.
    fn read(&self, hash: &str, start: u64, end: u64) -> Option<Vec<u8>>;
}

/// The part of `value` at `path`.
pub fn select(value: &Value, path: &str, store: &dyn Store) -> Result<Value, SelectError> {
    let steps = path::parse(path).map_err(|bad| SelectError::Path(bad.to_string()))?;
    steps.iter().try_fold(value.clone(), |part, step| match step {
        Step::Name(name) => field(&part, name).ok_or_else(|| no_field(&part, name)),
        Step::Index(at) => item(&part, *at, store),
        Step::Range(start, end) => {
            within(&part, *start, *end, store)?.ok_or_else(|| SelectError::Path(unindexable(&part)))
        }
    })
}

/// Items, rows, scalars or octets `start` up to `end`, both clamped.
pub fn slice(value: &Value, start: u64, end: u64, store: &dyn Store) -> Result<Value, SelectError> {
    within(value, start, end, store)?.ok_or(SelectError::Slice(value.type_name()))
}

/// Content of a str or of bytes, at most 64 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    /// Content of a str.
    Text(Str),
    /// Content of bytes.
    Bytes(Vec<u8>),
}

/// The raw format of a value.
pub fn raw(value: &Value, store: &dyn Store) -> Result<Raw, SelectError> {
    match value {
        Value::Str(text) if text.len() as u64 <= RAW_BYTES => Ok(Raw::Text(text.clone())),
        Value::Str(text) => Err(SelectError::TooLarge { total: text.chars().count() as u64, unit: "chars" }),
        Value::Bytes(bytes) if bytes.len() <= RAW_BYTES => octets(bytes, 0, bytes.len(), store).map(Raw::Bytes),
        Value::Bytes(bytes) => Err(SelectError::TooLarge { total: bytes.len(), unit: "bytes" }),
        other => Err(SelectError::Format(other.type_name())),
    }
}

fn no_field(value: &Value, name: &str) -> SelectError {
    SelectError::Path(format!("{} has no field `{name}`", value.type_name()))
}

fn unindexable(value: &Value) -> String {
    format!("{} has no items: list, table, str and bytes do", value.type_name())
}

fn field(value: &Value, name: &str) -> Option<Value> {
    match value {
        Value::Record(record) => record.get(name).cloned(),
        Value::Table(table) if name == "rows" => Some(table.to_list().into()),
        Value::Table(table) => table.column(name).map(Value::List),
        Value::Outcome(outcome) => outcome_field(outcome, name),
        Value::Error(error) => error_field(error, name),
        Value::Range(range) => match name {
            "start" => Some(range.start.into()),
            "end" => Some(range.end.into()),
            "inclusive" => Some(range.inclusive.into()),
            _ => None,
        },
        Value::Task(task) => match name {
            "id" => Some(i64::try_from(task.id()).unwrap_or(i64::MAX).into()),
            "done" => Some(task.is_done().into()),
            _ => None,
        },
        _ => None,
    }
}

fn outcome_field(outcome: &Outcome, name: &str) -> Option<Value> {
    Some(match name {
        "status" => outcome.status.into(),
        "ok" => outcome.ok.into(),
        "signal" => outcome.signal.clone().into(),
        "out" => outcome.peek_out().clone(),
        "err" => outcome.stderr.to_text_lossy().into_owned().into(),
        "stdout" => outcome.stdout.clone().into(),
        "stderr" => outcome.stderr.clone().into(),
        "dur_ns" => Value::Duration(outcome.dur_ns),
        "pid" => outcome.pid.into(),
        "cmd" => outcome.cmd.clone().into(),
        other => return field(outcome.peek_out(), other),
    })
}

fn error_field(error: &ErrorValue, name: &str) -> Option<Value> {
    Some(match name {
        "code" => error.code.clone().into(),
        "msg" => error.msg.clone().into(),
        "hint" => error.hint.clone().into(),
        "stderr" => error.stderr.as_ref().map(|bytes| bytes.to_text_lossy().into_owned()).into(),
        "status" => error.status.into(),
        _ => return None,
    })
}

fn item(value: &Value, at: u64, store: &dyn Store) -> Result<Value, SelectError> {
    let index = usize::try_from(at).unwrap_or(usize::MAX);
    let found = match value {
        Value::List(list) => list.get(index).cloned(),
        Value::Table(table) => table.rows().get(index).cloned().map(Value::Record),
        Value::Str(text) => text.chars().nth(index).map(|c| String::from(c).into()),
        Value::Bytes(bytes) if at < bytes.len() => {
            octets(bytes, at, at.saturating_add(1), store)?.first().map(|octet| Value::Int((*octet).into()))
        }
        Value::Bytes(_) => None,
        other => return Err(SelectError::Path(unindexable(other))),
    };
    found.ok_or_else(|| SelectError::Path(format!("index {at} is past the end of the {}", value.type_name())))
}

fn within(value: &Value, start: u64, end: u64, store: &dyn Store) -> Result<Option<Value>, SelectError> {
    let index = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    Ok(Some(match value {
        Value::List(list) => Value::List(List::slice(list, index(start), index(end))),
        Value::Table(table) => Value::Table(Table::slice(table, index(start), index(end))),
        Value::Str(text) => {
            let count = index(end).saturating_sub(index(start));
            text.chars().skip(index(start)).take(count).collect::<String>().into()
        }
        Value::Bytes(bytes) => Value::Bytes(octets(bytes, start, end, store)?.into()),
        _ => return Ok(None),
    }))
}

fn octets(bytes: &Bytes, start: u64, end: u64, store: &dyn Store) -> Result<Vec<u8>, SelectError> {
    match bytes {
        Bytes::Stored(stored) => {
            let end = end.min(stored.len);
            let total = end.saturating_sub(start);
            if total > RAW_BYTES {
                return Err(SelectError::TooLarge { total, unit: "bytes" });
            }
            store.read(&stored.hash, start.min(end), end).ok_or(SelectError::Evicted)
        }
        Bytes::Held(_) | Bytes::Cut(_) => bytes.slice(start, end).ok_or(SelectError::Evicted),
    }
}

#[cfg(test)]
mod tests;
