//! Values as answers carry them: whole if within budget, else a reference with a preview.

use shoal_wire::elide::Budgets;
use shoal_wire::{Ref, Uri, path};

use super::encode::{Extent, write, write_envelope};
use crate::bytes::Stored;
use crate::json::sink::{Count, Full, Sink, Text};
use crate::render::{Style, block_within, head_lines, tail_lines};
use crate::{Bytes, List, Outcome, Record, Table, Value};

/// Members of a container shown in a preview.
const PREVIEW_ITEMS: usize = 5;

/// Bytes, or characters, shown in a preview.
const PREVIEW_TEXT: usize = 256;

/// Lines and bytes of `render_head`.
const HEAD_LINES: usize = 10;
const HEAD_BYTES: usize = 4 * 1024;

/// Lines and bytes of `tail`.
const TAIL_LINES: usize = 10;
const TAIL_BYTES: usize = 1024;

/// Nesting of values sent in place. A level is two of JSON, and common JSON readers stop at 128.
const MAX_NESTING: usize = 48;

/// Levels of a preview that had to be shortened.
const SHORT_LEVELS: usize = 3;

/// Where the value of an answer can be read.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// What holds it.
    pub reference: &'a Ref,
    /// Path to it in there, as the client wrote it.
    pub path: Option<&'a str>,
    /// Slice taken of it.
    pub slice: Option<(u64, u64)>,
}

impl Origin<'_> {
    /// URI of the value.
    pub fn uri(&self) -> String {
        let uri = self.reference.uri_with_path(self.path).unwrap_or_else(|| self.reference.to_string());
        match self.slice {
            Some((start, end)) => {
                let joint = if self.path.is_some() { '&' } else { '?' };
                format!("{uri}{joint}slice={start}..{end}")
            }
            None => uri,
        }
    }

    /// URI of a member of the value.
    fn member_uri(&self, name: &str) -> String {
        let member = path::join(self.path.filter(|path| *path != "."), name);
        let uri = self.reference.uri().unwrap_or_else(|| self.reference.to_string());
        format!("{uri}?path={}", Uri::escape(&member))
    }
}

/// The wire form of a value within the budgets, as JSON text of at most `budgets.hard_cap` bytes. An outcome keeps its
/// envelope; only its `out` is replaced.
pub fn elide(value: &Value, budgets: &Budgets, origin: Origin<'_>) -> String {
    let cap = limit(budgets.hard_cap);
    let mut sink = Text::within(cap);
    let stderr = origin.member_uri("stderr");
    let extent = Extent::Bounded(&stderr);
    let written = match value {
        Value::Outcome(outcome) => write_outcome(outcome, budgets, origin, extent, &mut sink),
        _ if fits(value, budgets, limit(budgets.max_bytes).min(cap), extent) => write(value, extent, &mut sink),
        _ => write_ref(value, &origin.uri(), cap, extent, &mut sink),
    };
    match written {
        Ok(()) => sink.text,
        // Only an envelope full of escaped control characters comes here.
        Err(Full) => bare_ref(value, &origin.uri()),
    }
}

fn limit(budget: u64) -> usize {
    usize::try_from(budget).unwrap_or(usize::MAX)
}

fn fits(value: &Value, budgets: &Budgets, max_bytes: usize, extent: Extent<'_>) -> bool {
    let counted = match value {
        Value::Bytes(Bytes::Stored(_)) => false,
        Value::Bytes(bytes) => bytes.len() <= budgets.max_bytes_raw,
        Value::Table(table) => table.len() as u64 <= budgets.max_rows,
        Value::List(list) => list.len() as u64 <= budgets.max_items,
        _ => true,
    };
    counted && shallow(value, MAX_NESTING) && encoded_within(value, max_bytes, extent)
}

/// Outcomes do not know how deep undecoded output is, but the answer is made of it anyway.
fn shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Outcome(outcome) => levels > 0 && shallow(outcome.peek_out(), levels - 1),
        _ if value.depth() <= levels => true,
        _ if levels == 0 => false,
        Value::List(list) => list.iter().all(|item| shallow(item, levels - 1)),
        Value::Record(record) => record.values().iter().all(|item| shallow(item, levels - 1)),
        Value::Table(table) => {
            levels > 1 && table.rows().iter().flat_map(Record::values).all(|item| shallow(item, levels - 2))
        }
        // An error is written without its outcome.
        _ => true,
    }
}

fn encoded_within(value: &Value, max_bytes: usize, extent: Extent<'_>) -> bool {
    write(value, extent, &mut Count::within(max_bytes)).is_ok()
}

fn write_outcome(
    outcome: &Outcome,
    budgets: &Budgets,
    origin: Origin<'_>,
    extent: Extent<'_>,
    sink: &mut Text,
) -> Result<(), Full> {
    let mut envelope = Count::within(sink.room());
    write_envelope(outcome, extent, &mut envelope, |_| Ok(()))?;
    let cap = envelope.room();
    write_envelope(outcome, extent, sink, |sink| {
        let out = outcome.peek_out();
        if fits(out, budgets, limit(budgets.max_bytes).min(cap), extent) {
            return write(out, extent, sink);
        }
        write_ref(out, &origin.member_uri("out"), cap, extent, sink)
    })
}

/// A reference of at most `cap` bytes.
fn write_ref(value: &Value, uri: &str, cap: usize, extent: Extent<'_>, sink: &mut Text) -> Result<(), Full> {
    if let Value::Bytes(Bytes::Stored(stored)) = value {
        return stored_ref_at(stored, uri, sink);
    }
    let first = preview(value);
    for shown in [Some(first.clone()), Some(shortened(&first, SHORT_LEVELS)), None] {
        let mut part = Text::within(cap);
        if write_ref_with(value, uri, shown.as_ref(), extent, &mut part).is_ok() {
            return sink.put(&part.text);
        }
    }
    Err(Full)
}

/// The reference with this preview, or a null one.
fn write_ref_with(
    value: &Value,
    uri: &str,
    shown: Option<&Value>,
    extent: Extent<'_>,
    sink: &mut Text,
) -> Result<(), Full> {
    write_ref_head(value, uri, sink)?;
    // A preview that did not fit even shortened has very many columns, and naming them would not fit either.
    if let (Value::Table(table), Some(_)) = (value, shown) {
        write_columns(table, sink)?;
    }
    sink.put(",\"preview\":")?;
    match shown {
        Some(shown) if shallow(shown, MAX_NESTING) => write(shown, extent, sink)?,
        _ => sink.put("{\"$\":\"null\"}")?,
    }
    sink.put(",\"render_head\":")?;
    // An error has no preview, but its text says what a reader needs first.
    let drawn = if matches!(value, Value::Error(_)) { value } else { shown.unwrap_or(&Value::Null) };
    sink.string(&render_head(drawn))?;
    if let Some(tail) = tail(value) {
        sink.put(",\"tail\":")?;
        sink.string(&tail)?;
    }
    sink.put("}")
}

fn write_ref_head<S: Sink>(value: &Value, uri: &str, sink: &mut S) -> Result<(), Full> {
    sink.put("{\"$\":\"ref\",\"uri\":")?;
    sink.string(uri)?;
    sink.put(&format!(",\"of\":\"{}\",\"n\":{}", value.type_name(), amount(value)))
}

/// The least reference there is.
fn bare_ref(value: &Value, uri: &str) -> String {
    let mut sink = Text::within(usize::MAX);
    // A sink without a limit does not fill up.
    drop(write_ref_head(value, uri, &mut sink));
    format!("{},\"preview\":{{\"$\":\"null\"}},\"render_head\":\"\"}}", sink.text)
}

/// The reference of stored bytes, to the content store.
pub(super) fn stored_ref<S: Sink>(stored: &Stored, sink: &mut S) -> Result<(), Full> {
    stored_ref_at(stored, &format!("shoal://val/blake3:{}", stored.hash), sink)
}

fn stored_ref_at<S: Sink>(stored: &Stored, uri: &str, sink: &mut S) -> Result<(), Full> {
    let head = &stored.preview[..stored.preview.len().min(PREVIEW_TEXT)];
    let shown = Value::Bytes(head.into());
    sink.put("{\"$\":\"ref\",\"uri\":")?;
    sink.string(uri)?;
    sink.put(&format!(",\"of\":\"bytes\",\"n\":{},\"preview\":", stored.len))?;
    write(&shown, Extent::Full, sink)?;
    sink.put(",\"render_head\":")?;
    sink.string(&render_head(&shown))?;
    if !stored.tail.is_empty()
        && let Some(tail) = tail(&Value::Bytes((&*stored.tail).into()))
    {
        sink.put(",\"tail\":")?;
        sink.string(&tail)?;
    }
    if stored.truncated {
        sink.put(",\"truncated\":true")?;
    }
    sink.put("}")
}

/// List items, table rows, bytes, record members; 1 for anything else.
fn amount(value: &Value) -> u64 {
    match value {
        Value::List(list) => list.len() as u64,
        Value::Table(table) => table.len() as u64,
        Value::Record(record) => record.len() as u64,
        Value::Bytes(bytes) => bytes.len(),
        Value::Str(text) => text.len() as u64,
        _ => 1,
    }
}

fn write_columns<S: Sink>(table: &Table, sink: &mut S) -> Result<(), Full> {
    sink.put(",\"cols\":{")?;
    for (at, name) in table.columns().iter().enumerate() {
        if at > 0 {
            sink.put(",")?;
        }
        let first = table.rows().iter().find_map(|row| row.get(name)).unwrap_or(&Value::Null);
        sink.string(name)?;
        sink.put(&format!(":\"{}\"", first.type_name()))?;
    }
    sink.put("}")
}

fn preview(value: &Value) -> Value {
    match value {
        Value::List(list) => Value::List(List::slice(list, 0, PREVIEW_ITEMS)),
        Value::Table(table) => Value::Table(Table::slice(table, 0, PREVIEW_ITEMS)),
        Value::Record(record) => names_of(record),
        Value::Bytes(bytes) => bytes.slice(0, PREVIEW_TEXT as u64).map(Bytes::from).into(),
        Value::Str(text) => text.chars().take(PREVIEW_TEXT).collect::<String>().into(),
        _ => Value::Null,
    }
}

fn names_of(record: &Record) -> Value {
    let names = record.keys().iter().take(PREVIEW_ITEMS).map(|key| (key.clone(), Value::Null));
    Record::new(names).map_or(Value::Null, Value::Record)
}

/// A preview with its strings cut to 256 characters and its inner containers to five members, `levels` deep.
fn shortened(value: &Value, levels: usize) -> Value {
    if levels == 0 && value.depth() > 0 {
        return Value::Null;
    }
    let inner = |v: &Value| shortened(v, levels.saturating_sub(1));
    match value {
        Value::Str(text) => match text.char_indices().nth(PREVIEW_TEXT) {
            Some((end, _)) => format!("{}…", &text[..end]).into(),
            None => value.clone(),
        },
        Value::Bytes(bytes) => {
            bytes.slice(0, PREVIEW_TEXT as u64).map_or_else(|| value.clone(), |b| Bytes::from(b).into())
        }
        Value::List(list) => Value::list(list.iter().take(PREVIEW_ITEMS).map(inner).collect()).unwrap_or(Value::Null),
        Value::Record(record) => {
            let members = record.iter().take(PREVIEW_ITEMS).map(|(key, v)| (key.clone(), inner(v)));
            Value::record(members).unwrap_or(Value::Null)
        }
        Value::Table(table) => {
            let rows = table
                .rows()
                .iter()
                .take(PREVIEW_ITEMS)
                .filter_map(|row| Record::new(row.iter().map(|(key, v)| (key.clone(), inner(v)))).ok());
            Table::new(rows.collect()).map_or(Value::Null, Value::Table)
        }
        // Their envelopes are bounded, but five of them are not small.
        Value::Outcome(_) | Value::Error(_) => Value::Null,
        other => other.clone(),
    }
}

fn render_head(shown: &Value) -> String {
    let text = block_within(shown, &Style::default(), None);
    let head = head_lines(&text, HEAD_LINES);
    shoal_wire::text::cut(head, HEAD_BYTES).to_owned()
}

fn tail(value: &Value) -> Option<String> {
    let text = match value {
        Value::Str(text) => &**text,
        Value::Bytes(bytes) => std::str::from_utf8(bytes.held()?).ok()?,
        _ => return None,
    };
    Some(tail_lines(text, TAIL_LINES, TAIL_BYTES).to_owned())
}
