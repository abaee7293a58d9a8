//! Values to tagged JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use shoal_wire::limits::STDERR_BYTES;
use shoal_wire::text;

use super::elide::stored_ref;
use crate::json::sink::{Full, Sink, Text};
use crate::{Bytes, ErrorValue, Outcome, Record, Span, Str, Table, Value};

/// The full wire form of a value as JSON text, if it has at most `limit` bytes: a table with many columns that few rows
/// have is far larger as columns than in memory. Stored bytes are a reference to the content store; everything else is
/// complete.
pub fn to_wire(value: &Value, limit: usize) -> Option<String> {
    let mut sink = Text::within(limit);
    write(value, Extent::Full, &mut sink).ok()?;
    Some(sink.text)
}

/// How much of command output the envelopes of outcomes and errors carry.
#[derive(Clone, Copy)]
pub(super) enum Extent<'a> {
    /// All of it.
    Full,
    /// Its bounded form, which says that the rest is at this URI.
    Bounded(&'a str),
}

impl Extent<'_> {
    /// Text of command output; of stored output its beginning, and where the rest is.
    fn output(self, bytes: &Bytes) -> String {
        let whole = bytes.to_text_lossy();
        match (bytes, self) {
            (Bytes::Stored(stored), _) => {
                let first = String::from_utf8_lossy(&stored.preview);
                let last = String::from_utf8_lossy(&stored.tail);
                let kept = text::cut(&first, STDERR_BYTES / 2);
                let end = &last[last.ceil_char_boundary(last.len().saturating_sub(STDERR_BYTES / 2))..];
                let more = stored.len.saturating_sub((kept.len() + end.len()) as u64);
                let place = match self {
                    Self::Full => format!("val:blake3:{}", stored.hash),
                    Self::Bounded(uri) => uri.to_owned(),
                };
                let gap = if end.is_empty() { "" } else { "\n" };
                format!("{kept}\n…({more} more bytes, fetch via {place}){gap}{end}")
            }
            (_, Self::Full) => whole.into_owned(),
            (_, Self::Bounded(uri)) => text::stderr(&whole, uri).into_owned(),
        }
    }

    fn line<'t>(self, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::Full => Cow::Borrowed(text),
            Self::Bounded(_) => text::plain(text),
        }
    }
}

pub(super) fn write<S: Sink>(value: &Value, extent: Extent<'_>, sink: &mut S) -> Result<(), Full> {
    match value {
        Value::Null => sink.put("{\"$\":\"null\"}"),
        Value::Bool(truth) => {
            sink.put(if *truth { "{\"$\":\"bool\",\"v\":true}" } else { "{\"$\":\"bool\",\"v\":false}" })
        }
        Value::Int(n) => integer("{\"$\":\"int\",\"v\":", *n, sink),
        Value::Size(n) => integer("{\"$\":\"size\",\"v\":", *n, sink),
        Value::Duration(n) => integer("{\"$\":\"duration\",\"v\":", *n, sink),
        Value::Float(f) => write_float(*f, sink),
        Value::Str(v) => text_member("str", "v", v, sink),
        Value::Path(path) => write_path(path, sink),
        Value::Glob(glob) => text_member("glob", "pattern", glob.pattern(), sink),
        Value::Regex(regex) => text_member("regex", "src", regex.src(), sink),
        Value::DateTime(at) => text_member("datetime", "v", &at.utc_text(), sink),
        Value::Time(time) => text_member("time", "v", &time.full_text(), sink),
        Value::Bytes(bytes) => write_bytes(bytes, sink),
        Value::List(list) => {
            sink.put("{\"$\":\"list\",\"v\":")?;
            write_items(list.iter(), extent, sink)?;
            sink.put("}")
        }
        Value::Record(record) => write_record(record, extent, sink),
        Value::Table(table) => write_table(table, extent, sink),
        Value::Range(r) => sink
            .put(&format!("{{\"$\":\"range\",\"start\":{},\"end\":{},\"inclusive\":{}}}", r.start, r.end, r.inclusive)),
        Value::Outcome(outcome) => {
            write_envelope(outcome, extent, sink, |sink| write(outcome.peek_out(), extent, sink))
        }
        Value::Error(error) => write_error(error, extent, sink),
        Value::Task(task) => sink.put(&format!("{{\"$\":\"task\",\"id\":{},\"done\":{}}}", task.id(), task.is_done())),
        Value::Closure(closure) => text_member("closure", "repr", &closure.repr(), sink),
        Value::Command(alias) => text_member("cmd", "repr", &format!("command({})", alias.head()), sink),
        Value::Stream(stream) => text_member("stream", "label", &stream.label(), sink),
        Value::Channel(name) => {
            sink.put("{\"$\":\"record\",\"v\":{\"channel\":")?;
            text_member("str", "v", name, sink)?;
            sink.put("}}")
        }
        Value::Secret(name) => text_member("secret", "name", name, sink),
    }
}

/// Piece by piece, here and below: a list has one of these for every item.
fn integer<S: Sink>(head: &str, n: impl itoa::Integer, sink: &mut S) -> Result<(), Full> {
    sink.put(head)?;
    sink.integer(n)?;
    sink.put("}")
}

pub(super) fn text_member<S: Sink>(tag: &str, member: &str, text: &str, sink: &mut S) -> Result<(), Full> {
    for piece in ["{\"$\":\"", tag, "\",\"", member, "\":"] {
        sink.put(piece)?;
    }
    sink.string(text)?;
    sink.put("}")
}

fn write_float<S: Sink>(f: f64, sink: &mut S) -> Result<(), Full> {
    sink.put("{\"$\":\"float\",\"v\":")?;
    match f {
        f if f.is_nan() => sink.put("\"NaN\"")?,
        f64::INFINITY => sink.put("\"Infinity\"")?,
        f64::NEG_INFINITY => sink.put("\"-Infinity\"")?,
        f => sink.float(f)?,
    }
    sink.put("}")
}

fn write_path<S: Sink>(path: &crate::PathValue, sink: &mut S) -> Result<(), Full> {
    sink.put("{\"$\":\"path\",\"v\":")?;
    sink.string(&path.display())?;
    if path.to_str().is_none() {
        sink.put(&format!(",\"raw\":\"{}\"", STANDARD.encode(path.as_bytes())))?;
    }
    sink.put("}")
}

fn write_bytes<S: Sink>(bytes: &Bytes, sink: &mut S) -> Result<(), Full> {
    match bytes {
        Bytes::Stored(stored) => stored_ref(stored, sink),
        Bytes::Held(held) => {
            write_base64(held, sink)?;
            sink.put("}")
        }
        Bytes::Cut(cut) => {
            write_base64(&[&*cut.head, &*cut.tail].concat(), sink)?;
            sink.put(&format!(",\"cut\":{{\"head\":{},\"total\":{}}}}}", cut.head.len(), cut.total))
        }
    }
}

fn write_base64<S: Sink>(bytes: &[u8], sink: &mut S) -> Result<(), Full> {
    if bytes.len() > sink.room() {
        return Err(Full);
    }
    sink.put(&format!("{{\"$\":\"bytes\",\"v\":\"{}\"", STANDARD.encode(bytes)))
}

fn write_items<'a, S: Sink>(
    items: impl Iterator<Item = &'a Value>,
    extent: Extent<'_>,
    sink: &mut S,
) -> Result<(), Full> {
    sink.put("[")?;
    for (at, item) in items.enumerate() {
        if at > 0 {
            sink.put(",")?;
        }
        write(item, extent, sink)?;
    }
    sink.put("]")
}

fn write_record<S: Sink>(record: &Record, extent: Extent<'_>, sink: &mut S) -> Result<(), Full> {
    sink.put("{\"$\":\"record\",\"v\":{")?;
    for (at, (key, value)) in record.iter().enumerate() {
        if at > 0 {
            sink.put(",")?;
        }
        sink.string(key)?;
        sink.put(":")?;
        write(value, extent, sink)?;
    }
    sink.put("}}")
}

fn write_table<S: Sink>(table: &Table, extent: Extent<'_>, sink: &mut S) -> Result<(), Full> {
    sink.put("{\"$\":\"table\",\"cols\":{")?;
    for (at, name) in table.columns().iter().enumerate() {
        if at > 0 {
            sink.put(",")?;
        }
        sink.string(name)?;
        sink.put(":")?;
        let cells = table.rows().iter().map(|row| row.get(name).unwrap_or(&Value::Null));
        write_items(cells, extent, sink)?;
    }
    sink.put(&format!("}},\"n\":{}}}", table.len()))
}

/// Members of an outcome, `out` written by `write_out`.
pub(super) fn write_envelope<S: Sink>(
    outcome: &Outcome,
    extent: Extent<'_>,
    sink: &mut S,
    write_out: impl FnOnce(&mut S) -> Result<(), Full>,
) -> Result<(), Full> {
    sink.put("{\"$\":\"outcome\",\"status\":")?;
    write_number(outcome.status, sink)?;
    sink.put(&format!(",\"ok\":{},\"signal\":", outcome.ok))?;
    write_text(outcome.signal.as_ref(), sink)?;
    sink.put(",\"out\":")?;
    write_out(sink)?;
    sink.put(",\"err\":")?;
    sink.string(&extent.output(&outcome.stderr))?;
    sink.put(&format!(",\"dur_ns\":{},\"pid\":", outcome.dur_ns))?;
    write_number(outcome.pid, sink)?;
    sink.put(",\"cmd\":")?;
    sink.string(&extent.line(&outcome.cmd))?;
    write_span(outcome.span, sink)?;
    if outcome.is_lossy() {
        sink.put(",\"lossy\":true")?;
    }
    if let Some(limit) = &outcome.limit {
        sink.put(",\"limit\":")?;
        sink.string(limit)?;
    }
    if let Some(c) = outcome.capture.filter(crate::outcome::Capture::is_partial) {
        sink.put(&format!(
            ",\"capture\":{{\"stdout_seen\":{},\"stdout_kept\":{},\"stderr_seen\":{},\"stderr_kept\":{}}}",
            c.stdout_seen, c.stdout_kept, c.stderr_seen, c.stderr_kept
        ))?;
    }
    if let Some(usage) = outcome.usage {
        sink.put(&format!(",\"usage\":{{\"cpu_ns\":{},\"peak_bytes\":{}}}", usage.cpu_ns, usage.peak_bytes))?;
    }
    if outcome.stages.len() > 1 {
        write_stages(outcome, extent, sink)?;
    }
    sink.put("}")
}

/// Stages an elided outcome lists, and bytes of each command: a chain is typed, so more is not worth an answer's room.
const STAGES_SHOWN: usize = 16;
const STAGE_CMD: usize = 256;

fn write_stages<S: Sink>(outcome: &Outcome, extent: Extent<'_>, sink: &mut S) -> Result<(), Full> {
    let bounded = matches!(extent, Extent::Bounded(_));
    let shown = if bounded { STAGES_SHOWN } else { usize::MAX };
    sink.put(",\"stages\":[")?;
    for (at, stage) in outcome.stages.iter().take(shown).enumerate() {
        sink.put(if at > 0 { ",{\"cmd\":" } else { "{\"cmd\":" })?;
        sink.string(if bounded { text::cut(&stage.cmd, STAGE_CMD) } else { &stage.cmd })?;
        sink.put(",\"status\":")?;
        write_number(stage.status, sink)?;
        sink.put(",\"signal\":")?;
        write_text(stage.signal.as_ref(), sink)?;
        sink.put(&format!(",\"ok\":{},\"dur_ns\":{}}}", stage.ok, stage.dur_ns))?;
    }
    sink.put("]")
}

fn write_error<S: Sink>(error: &ErrorValue, extent: Extent<'_>, sink: &mut S) -> Result<(), Full> {
    sink.put("{\"$\":\"error\",\"code\":")?;
    sink.string(&extent.line(&error.code))?;
    sink.put(",\"msg\":")?;
    sink.string(&extent.line(&error.msg))?;
    write_span(error.span, sink)?;
    if let Some(hint) = &error.hint {
        sink.put(",\"hint\":")?;
        sink.string(&extent.line(hint))?;
    }
    if let Some(stderr) = &error.stderr {
        sink.put(",\"stderr\":")?;
        sink.string(&extent.output(stderr))?;
    }
    // Clients read the output of a failed command from its outcome.
    if let (Some(stdout), Extent::Full) = (&error.stdout, extent) {
        sink.put(",\"stdout\":")?;
        sink.string(&extent.output(stdout))?;
    }
    if let Some(status) = error.status {
        sink.put(&format!(",\"status\":{status}"))?;
    }
    sink.put("}")
}

fn write_span<S: Sink>(span: Option<Span>, sink: &mut S) -> Result<(), Full> {
    match span {
        Some(span) => sink.put(&format!(",\"span\":{{\"start\":{},\"end\":{}}}", span.start, span.end)),
        None => Ok(()),
    }
}

fn write_number<S: Sink>(n: Option<i64>, sink: &mut S) -> Result<(), Full> {
    sink.put(&n.map_or_else(|| "null".to_owned(), |n| n.to_string()))
}

fn write_text<S: Sink>(text: Option<&Str>, sink: &mut S) -> Result<(), Full> {
    match text {
        Some(text) => sink.string(text),
        None => sink.put("null"),
    }
}
