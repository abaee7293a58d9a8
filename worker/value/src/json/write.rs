//! Values to plain JSON text.

use super::sink::{Full, Sink, Text};
use crate::bytes::Stored;
use crate::render::inline;
use crate::{Bytes, ErrorValue, MAX_TEXT, Record, Value};

/// Compact JSON of any value. An outcome stands for its out, so a failed one is `cmd_failed`. Fails with `too_large` for
/// bytes that were cut and for text above 256 MiB.
pub fn stringify(value: &Value) -> Result<String, ErrorValue> {
    if let Value::Outcome(outcome) = value {
        return stringify(outcome.out()?);
    }
    let mut sink = Text::within(MAX_TEXT);
    match write(value, &mut sink) {
        Ok(()) => Ok(sink.text),
        Err(Stop::Full) => Err(ErrorValue::too_large("JSON text is longer than 256 MiB")),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// The same, over several lines with two spaces per level.
pub fn stringify_pretty(value: &Value) -> Result<String, ErrorValue> {
    let compact = stringify(value)?;
    let invalid = |e: serde_json::Error| ErrorValue::too_large(format!("JSON text cannot be laid out: {e}"));
    let mut reader = serde_json::Deserializer::from_str(&compact);
    reader.disable_recursion_limit();
    let tree: serde_json::Value = serde::Deserialize::deserialize(&mut reader).map_err(invalid)?;
    serde_json::to_string_pretty(&tree).map_err(invalid)
}

enum Stop {
    Full,
    Error(ErrorValue),
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

fn write(value: &Value, sink: &mut Text) -> Result<(), Stop> {
    match value {
        Value::Null => sink.put("null")?,
        Value::Bool(truth) => sink.put(if *truth { "true" } else { "false" })?,
        Value::Int(n) | Value::Duration(n) => sink.integer(*n)?,
        Value::Size(n) => sink.integer(*n)?,
        Value::Float(f) => sink.float(*f)?,
        Value::Str(text) => sink.string(text)?,
        Value::Path(path) => sink.string(&path.display())?,
        Value::Glob(glob) => sink.string(glob.pattern())?,
        Value::Regex(regex) => sink.string(regex.src())?,
        Value::DateTime(at) => sink.string(&at.zoned_text())?,
        Value::Time(time) => sink.string(&time.short_text())?,
        Value::Bytes(bytes) => write_bytes(bytes, sink)?,
        Value::List(list) => write_array(list.iter(), sink, write)?,
        Value::Table(table) => write_array(table.rows().iter(), sink, write_record)?,
        Value::Range(range) => write_array(range.iter(), sink, |n, sink| Ok(sink.integer(n)?))?,
        Value::Record(record) => write_record(record, sink)?,
        Value::Outcome(outcome) => {
            sink.put("{\"status\":")?;
            write(&outcome.status.into(), sink)?;
            sink.put(if outcome.ok { ",\"ok\":true,\"out\":" } else { ",\"ok\":false,\"out\":" })?;
            sink.string(&outcome.peek_text())?;
            sink.put(",\"err\":")?;
            sink.string(&outcome.stderr.to_text_lossy())?;
            sink.put("}")?;
        }
        Value::Error(error) => {
            sink.put("{\"code\":")?;
            sink.string(&error.code)?;
            sink.put(",\"msg\":")?;
            sink.string(&error.msg)?;
            sink.put("}")?;
        }
        other => sink.string(&inline(other))?,
    }
    Ok(())
}

fn write_array<T>(
    items: impl Iterator<Item = T>,
    sink: &mut Text,
    write_item: impl Fn(T, &mut Text) -> Result<(), Stop>,
) -> Result<(), Stop> {
    sink.put("[")?;
    for (at, item) in items.enumerate() {
        if at > 0 {
            sink.put(",")?;
        }
        write_item(item, sink)?;
    }
    Ok(sink.put("]")?)
}

fn write_record(record: &Record, sink: &mut Text) -> Result<(), Stop> {
    sink.put("{")?;
    for (at, (key, value)) in record.iter().enumerate() {
        if at > 0 {
            sink.put(",")?;
        }
        sink.string(key)?;
        sink.put(":")?;
        write(value, sink)?;
    }
    Ok(sink.put("}")?)
}

fn write_bytes(bytes: &Bytes, sink: &mut Text) -> Result<(), Stop> {
    match bytes {
        Bytes::Held(_) => Ok(sink.string(&bytes.to_text_lossy())?),
        Bytes::Cut(cut) => Err(Stop::Error(cut.refusal())),
        Bytes::Stored(stored) => {
            let Stored { hash, len, truncated, .. } = &**stored;
            sink.put(&format!("{{\"ref\":\"val:blake3:{hash}\",\"len\":{len},\"truncated\":{truncated},\"preview\":"))?;
            sink.string(&bytes.to_text_lossy())?;
            Ok(sink.put("}")?)
        }
    }
}
