//! The inline form: one line that tells values apart. Interpolation and the language's own tests use it.

use super::{Budgeted, Full};
use crate::outcome::Outcome;
use crate::{Bytes, Record, Str, Value, units};

/// The inline form of any value, complete.
pub fn inline(value: &Value) -> String {
    inline_within(value, usize::MAX).0
}

/// The inline form, at most `budget` bytes of it, and whether that is all. Work stops when the budget is used up.
pub fn inline_within(value: &Value, budget: usize) -> (String, bool) {
    let mut out = Budgeted::new(budget);
    let complete = write(value, &mut out).is_ok();
    (out.text, complete)
}

/// What `"{value}"` inserts: the text of a str or path, else the inline form.
pub fn interpolate(value: &Value) -> Str {
    match value {
        Value::Str(text) => text.clone(),
        Value::Path(path) => path.display().into(),
        other => inline(other).into(),
    }
}

fn write(value: &Value, out: &mut Budgeted) -> Result<(), Full> {
    match value {
        Value::List(list) => write_items(list.iter(), out, write),
        Value::Table(table) => write_items(table.rows().iter(), out, write_record),
        Value::Record(record) => write_record(record, out),
        Value::Str(text) => write_quoted(text, out),
        Value::Path(path) => {
            let text = path.display();
            if text.contains(' ') { write_quoted(&text, out) } else { out.push(&text) }
        }
        other => out.push(&scalar(other)),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(f) => units::format_float(*f),
        Value::Glob(glob) => glob.pattern().to_string(),
        Value::Regex(regex) => format!("re\"{}\"", regex.src()),
        Value::Size(bytes) => units::format_size(*bytes),
        Value::Duration(nanos) => units::format_duration(*nanos),
        Value::DateTime(at) => at.utc_text(),
        Value::Time(time) => time.short_text(),
        Value::Bytes(bytes) => bytes_text(bytes),
        Value::Range(r) => format!("{}{}{}", r.start, if r.inclusive { "..=" } else { ".." }, r.end),
        Value::Stream(stream) => format!("stream<{}>", stream.label()),
        Value::Channel(name) => format!("channel({name})"),
        Value::Error(error) => format!("error({}: {})", error.code, error.msg),
        Value::Outcome(outcome) => outcome_text(outcome),
        Value::Task(task) => format!("task({})", task.id()),
        Value::Closure(closure) => closure.repr(),
        Value::Command(alias) => format!("command({})", alias.head()),
        Value::Secret(name) => format!("secret({name})"),
        Value::Str(_) | Value::Path(_) | Value::List(_) | Value::Record(_) | Value::Table(_) => String::new(),
    }
}

fn bytes_text(bytes: &Bytes) -> String {
    let size = units::format_size(bytes.len());
    match bytes {
        Bytes::Held(_) => format!("bytes({size})"),
        Bytes::Stored(stored) => format!("bytes({size}) val:blake3:{}", stored.hash),
        Bytes::Cut(cut) => format!("bytes({size} of {})", units::format_size(cut.total)),
    }
}

fn outcome_text(outcome: &Outcome) -> String {
    match (&outcome.signal, outcome.status) {
        (Some(signal), None) => format!("outcome(signal: {signal}, ok: {})", outcome.ok),
        (_, Some(status)) => format!("outcome(status: {status}, ok: {})", outcome.ok),
        (None, None) => format!("outcome(status: null, ok: {})", outcome.ok),
    }
}

fn write_items<'a, T: 'a>(
    items: impl Iterator<Item = &'a T>,
    out: &mut Budgeted,
    write_item: impl Fn(&T, &mut Budgeted) -> Result<(), Full>,
) -> Result<(), Full> {
    out.push("[")?;
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(", ")?;
        }
        write_item(item, out)?;
    }
    out.push("]")
}

fn write_record(record: &Record, out: &mut Budgeted) -> Result<(), Full> {
    out.push("{")?;
    for (at, (key, value)) in record.iter().enumerate() {
        if at > 0 {
            out.push(", ")?;
        }
        if is_identifier(key) {
            out.push(key)?
        } else {
            write_quoted(key, out)?
        }
        out.push(": ")?;
        write(value, out)?;
    }
    out.push("}")
}

fn is_identifier(key: &str) -> bool {
    let mut bytes = key.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn write_quoted(text: &str, out: &mut Budgeted) -> Result<(), Full> {
    out.push("\"")?;
    for c in text.chars() {
        match c {
            '"' => out.push("\\\"")?,
            '\\' => out.push("\\\\")?,
            '\n' => out.push("\\n")?,
            '\t' => out.push("\\t")?,
            '\r' => out.push("\\r")?,
            '\0' => out.push("\\0")?,
            c => out.push_char(c)?,
        }
    }
    out.push("\"")
}
