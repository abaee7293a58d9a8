//! Tagged JSON to values.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::tz::TimeZone;
use serde_json::{Map, Value as Json};

use super::gone::{GoneAlias, GoneCallable, GoneStream, GoneTask};
use crate::bytes::{Cut, Stored};
use crate::error::Span;
use crate::outcome::{Capture, Out, OutcomeBody, Stage, Usage};
use crate::{
    Bytes, DateTime, ErrorValue, Glob, MAX_DEPTH, Outcome, PathValue, Range, Record, Regex, Str, Table, TimeOfDay,
    Value, json,
};

/// Native stack that reading the deepest wire value may need, in debug builds too: one level of a value is up to three of
/// JSON, and both are read by recursion.
pub const READ_STACK: usize = 8 * 1024 * 1024;

/// JSON that is no wire value: what is wrong, and with which tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

/// Reads the full wire form. Live handles come back as stand-ins that only show themselves; an elided value, and an object
/// with a tag not known here, as the record of its members. Needs [`READ_STACK`] bytes of native stack for the deepest text.
pub fn from_wire(text: &str) -> Result<Value, WireError> {
    /// JSON levels of one value level at most: a table has its object, its columns and their cells.
    const JSON_LEVELS: usize = 3;
    if json::nesting(text.as_bytes()) > JSON_LEVELS * (MAX_DEPTH + 2) {
        return Err(WireError("value is nested too deep".to_owned()));
    }
    let invalid = |e: serde_json::Error| WireError(format!("invalid JSON: {e}"));
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let tree: Json = serde::Deserialize::deserialize(&mut reader).map_err(invalid)?;
    reader.end().map_err(invalid)?;
    value(&tree)
}

type Members = Map<String, Json>;

fn value(tree: &Json) -> Result<Value, WireError> {
    let members = tree.as_object().ok_or_else(|| WireError("a wire value is an object".to_owned()))?;
    let tag =
        members.get("$").and_then(Json::as_str).ok_or_else(|| WireError("a wire value has a tag `$`".to_owned()))?;
    tagged(tag, members)?.map_or_else(|| plain(tree), Ok)
}

fn tagged(tag: &str, members: &Members) -> Result<Option<Value>, WireError> {
    let m = Reader { tag, members };
    Ok(Some(match tag {
        "null" => Value::Null,
        "bool" => Value::Bool(m.bool("v")?),
        "int" => Value::Int(m.int("v")?),
        "float" => Value::Float(m.float()?),
        "str" => Value::str(m.text("v")?),
        "size" => Value::Size(m.uint("v")?),
        "duration" => Value::Duration(m.int("v")?),
        "bytes" => m.bytes()?.into(),
        "path" => m.path()?.into(),
        "list" => Value::list(m.items("v")?).map_err(too_deep)?,
        "record" => m.record()?,
        "table" => m.table()?,
        "outcome" => Outcome::new(m.outcome()?).into(),
        "error" => m.error()?.into(),
        "datetime" => m.datetime()?.into(),
        "time" => TimeOfDay::parse(m.text("v")?).ok_or_else(|| m.bad("v"))?.into(),
        "glob" => Glob::new(m.text("pattern")?, PathValue::from(""), false).into(),
        "regex" => Regex::new(m.text("src")?).map_err(|_| m.bad("src"))?.into(),
        "range" => Range { start: m.int("start")?, end: m.int("end")?, inclusive: m.bool("inclusive")? }.into(),
        "task" => Value::Task(Arc::new(GoneTask { id: m.uint("id")?, done: m.bool("done")? })),
        "closure" => Value::Closure(Arc::new(GoneCallable(m.text("repr")?.to_owned()))),
        "cmd" => {
            let repr = m.text("repr")?;
            let head = repr.strip_prefix("command(").and_then(|r| r.strip_suffix(')')).unwrap_or(repr);
            Value::Command(Arc::new(GoneAlias(head.into())))
        }
        "stream" => Value::Stream(Arc::new(GoneStream(m.text("label")?.into()))),
        "secret" => Value::Secret(m.text("name")?.into()),
        "ref" => return m.stored(),
        _ => return Ok(None),
    }))
}

/// JSON without tags, as the plain mapping has it, except that arrays stay lists.
fn plain(tree: &Json) -> Result<Value, WireError> {
    Ok(match tree {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(n) => n.as_i64().map_or_else(|| Value::Float(n.as_f64().unwrap_or(f64::NAN)), Value::Int),
        Json::String(text) => Value::str(&**text),
        Json::Array(items) => Value::list(items.iter().map(plain).collect::<Result<_, _>>()?).map_err(too_deep)?,
        Json::Object(members) => {
            let members = members.iter().map(|(key, v)| Ok((key.as_str(), plain(v)?)));
            Value::record(members.collect::<Result<Vec<_>, WireError>>()?).map_err(too_deep)?
        }
    })
}

fn too_deep(error: ErrorValue) -> WireError {
    WireError(error.msg.to_string())
}

/// Members of one tagged object.
struct Reader<'a> {
    tag: &'a str,
    members: &'a Members,
}

impl<'a> Reader<'a> {
    fn bad(&self, member: &str) -> WireError {
        WireError(format!("`{member}` of a wire {} is missing or malformed", self.tag))
    }

    fn get(&self, member: &str) -> Option<&'a Json> {
        self.members.get(member).filter(|json| !json.is_null())
    }

    fn need<T>(&self, member: &str, read: impl FnOnce(&'a Json) -> Option<T>) -> Result<T, WireError> {
        self.get(member).and_then(read).ok_or_else(|| self.bad(member))
    }

    fn may<T>(&self, member: &str, read: impl FnOnce(&'a Json) -> Option<T>) -> Result<Option<T>, WireError> {
        self.get(member).map(|json| read(json).ok_or_else(|| self.bad(member))).transpose()
    }

    fn bool(&self, member: &str) -> Result<bool, WireError> {
        self.need(member, Json::as_bool)
    }

    fn int(&self, member: &str) -> Result<i64, WireError> {
        self.need(member, Json::as_i64)
    }

    fn uint(&self, member: &str) -> Result<u64, WireError> {
        self.need(member, Json::as_u64)
    }

    fn text(&self, member: &str) -> Result<&'a str, WireError> {
        self.need(member, Json::as_str)
    }

    fn items(&self, member: &str) -> Result<Vec<Value>, WireError> {
        self.need(member, Json::as_array)?.iter().map(value).collect()
    }

    fn float(&self) -> Result<f64, WireError> {
        self.need("v", |json| match json.as_str() {
            Some("NaN") => Some(f64::NAN),
            Some("Infinity") => Some(f64::INFINITY),
            Some("-Infinity") => Some(f64::NEG_INFINITY),
            Some(_) => None,
            None => json.as_f64(),
        })
    }

    fn base64(&self, member: &str) -> Result<Vec<u8>, WireError> {
        STANDARD.decode(self.text(member)?).map_err(|_| self.bad(member))
    }

    fn bytes(&self) -> Result<Bytes, WireError> {
        let kept = self.base64("v")?;
        let Some(cut) = self.may("cut", Json::as_object)? else { return Ok(kept.into()) };
        let cut = Reader { tag: self.tag, members: cut };
        let at = usize::try_from(cut.uint("head")?).ok().and_then(|at| kept.split_at_checked(at));
        let (head, tail) = at.ok_or_else(|| self.bad("cut"))?;
        Ok(Bytes::Cut(Arc::new(Cut { head: head.into(), tail: tail.into(), total: cut.uint("total")? })))
    }

    fn path(&self) -> Result<PathValue, WireError> {
        if self.get("raw").is_some() { Ok(self.base64("raw")?.into()) } else { Ok(self.text("v")?.into()) }
    }

    fn record(&self) -> Result<Value, WireError> {
        let members = self.need("v", Json::as_object)?.iter().map(|(key, v)| Ok((key.as_str(), value(v)?)));
        Value::record(members.collect::<Result<Vec<_>, WireError>>()?).map_err(too_deep)
    }

    fn table(&self) -> Result<Value, WireError> {
        let n = self.uint("n")?;
        let mut columns = Vec::new();
        for (name, cells) in self.need("cols", Json::as_object)? {
            let cells = cells.as_array().filter(|cells| cells.len() as u64 == n).ok_or_else(|| self.bad("cols"))?;
            columns.push((Str::from(&**name), cells.iter().map(value).collect::<Result<Vec<_>, _>>()?));
        }
        // Rows without any column exist only if there are no columns; then the count is all there is of them.
        if columns.is_empty() {
            let rows = usize::try_from(n).ok().filter(|n| *n <= crate::MAX_ITEMS).ok_or_else(|| self.bad("n"))?;
            return Table::new(vec![Record::empty(); rows]).map(Value::Table).map_err(too_deep);
        }
        Table::from_columns(columns).map(Value::Table).map_err(too_deep)
    }

    fn datetime(&self) -> Result<DateTime, WireError> {
        let text = self.text("v")?;
        if let Ok(seconds) = text.parse::<i64>() {
            return DateTime::from_unix_nanos(i128::from(seconds) * 1_000_000_000).ok_or_else(|| self.bad("v"));
        }
        if let Some(at) = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite()) {
            return DateTime::from_unix_nanos((at * 1e9) as i128).ok_or_else(|| self.bad("v"));
        }
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Ok(at.to_zoned_datetime(TimeZone::UTC).into());
        }
        Err(self.bad("v"))
    }

    fn span(&self) -> Result<Option<Span>, WireError> {
        let Some(members) = self.may("span", Json::as_object)? else { return Ok(None) };
        let offset = |member| Reader { tag: "span", members }.need(member, |n| u32::try_from(n.as_u64()?).ok());
        Ok(Some(Span { start: offset("start")?, end: offset("end")?, ..Span::default() }))
    }

    fn error(&self) -> Result<ErrorValue, WireError> {
        let output = |member| Ok(self.may(member, Json::as_str)?.map(|text| Bytes::from(text.as_bytes())));
        let (span, hint) = (self.span()?, self.may("hint", Json::as_str)?);
        let (stderr, stdout) = (output("stderr")?, output("stdout")?);
        let status = self.may("status", Json::as_i64)?;
        Ok(ErrorValue::new(self.text("code")?, self.text("msg")?).with(|body| {
            body.span = span;
            body.hint = hint.map(Str::from);
            body.stderr = stderr;
            body.stdout = stdout;
            body.status = status;
        }))
    }

    /// The exact output is not part of the wire form: text output comes back as far as `out` and `err` have it.
    fn outcome(&self) -> Result<OutcomeBody, WireError> {
        let out = self.need("out", Some).and_then(value)?;
        let stdout = match &out {
            Value::Str(text) => Bytes::from(text.as_bytes()),
            Value::Bytes(bytes) => bytes.clone(),
            _ => Bytes::empty(),
        };
        Ok(OutcomeBody {
            status: self.may("status", Json::as_i64)?,
            ok: self.bool("ok")?,
            signal: self.may("signal", Json::as_str)?.map(Str::from),
            limit: self.may("limit", Json::as_str)?.map(Str::from),
            dur_ns: self.int("dur_ns")?,
            pid: self.may("pid", Json::as_i64)?,
            cmd: self.text("cmd")?.into(),
            stdout,
            stderr: self.text("err")?.as_bytes().into(),
            out: Out::Value(out),
            stages: self.stages()?,
            capture: self.capture()?,
            usage: self.usage()?,
            span: self.span()?,
            shown: false,
        })
    }

    fn stages(&self) -> Result<Vec<Stage>, WireError> {
        let Some(stages) = self.may("stages", Json::as_array)? else { return Ok(Vec::new()) };
        let stage = |json: &'a Json| {
            let m = Reader { tag: "stage", members: json.as_object().ok_or_else(|| self.bad("stages"))? };
            Ok(Stage {
                cmd: m.text("cmd")?.into(),
                status: m.may("status", Json::as_i64)?,
                signal: m.may("signal", Json::as_str)?.map(Str::from),
                ok: m.bool("ok")?,
                dur_ns: m.int("dur_ns")?,
            })
        };
        stages.iter().map(stage).collect()
    }

    fn usage(&self) -> Result<Option<Usage>, WireError> {
        let Some(members) = self.may("usage", Json::as_object)? else { return Ok(None) };
        let m = Reader { tag: "usage", members };
        Ok(Some(Usage { cpu_ns: m.int("cpu_ns")?, peak_bytes: m.int("peak_bytes")? }))
    }

    fn capture(&self) -> Result<Option<Capture>, WireError> {
        let Some(members) = self.may("capture", Json::as_object)? else { return Ok(None) };
        let m = Reader { tag: "capture", members };
        Ok(Some(Capture {
            stdout_seen: m.uint("stdout_seen")?,
            stdout_kept: m.uint("stdout_kept")?,
            stderr_seen: m.uint("stderr_seen")?,
            stderr_kept: m.uint("stderr_kept")?,
            held_by: 0,
        }))
    }

    /// A reference to stored bytes; none for other references.
    fn stored(&self) -> Result<Option<Value>, WireError> {
        let hash = self.text("uri")?.strip_prefix("shoal://val/").map(|id| id.strip_prefix("blake3:").unwrap_or(id));
        let Some(hash) = hash.filter(|hash| shoal_wire::refs::is_hex(hash, 64)) else { return Ok(None) };
        if self.text("of")? != "bytes" {
            return Ok(None);
        }
        let preview = match value(self.need("preview", Some)?)? {
            Value::Bytes(Bytes::Held(head)) => head,
            _ => return Err(self.bad("preview")),
        };
        let truncated = self.may("truncated", Json::as_bool)?.unwrap_or(false);
        let tail = self.may("tail", Json::as_str)?.unwrap_or_default().as_bytes().into();
        let stored = Stored { hash: hash.into(), len: self.uint("n")?, preview, tail, truncated };
        Ok(Some(Value::Bytes(Bytes::Stored(Arc::new(stored)))))
    }
}
