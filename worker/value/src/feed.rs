//! Values as the standard input of a program.

use std::sync::Arc;

use crate::bytes::Stored;
use crate::outcome::Out;
use crate::render::inline;
use crate::{Bytes, ErrorValue, Value, code, json};

/// Standard input made of a value.
#[derive(Clone, Debug)]
pub enum Feed {
    /// These bytes.
    Held(Arc<[u8]>),
    /// Bytes the content store has to send.
    Stored(Arc<Stored>),
}

impl From<Vec<u8>> for Feed {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Held(bytes.into())
    }
}

/// The standard input a value makes. Streams are fed item by item with [`item_line`]. Fails with `type_error` or
/// `feed_error` for values that have no such form, and with `too_large` for bytes that were cut.
pub fn feed(value: &Value) -> Result<Feed, ErrorValue> {
    Ok(match value {
        Value::Str(text) => text.as_bytes().to_vec().into(),
        Value::Bytes(bytes) => feed_bytes(bytes)?,
        Value::Int(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Size(_)
        | Value::Duration(_)
        | Value::DateTime(_)
        | Value::Time(_) => inline(value).into_bytes().into(),
        Value::List(list) if list.iter().all(|item| matches!(item, Value::Str(_))) => {
            list.iter().filter_map(Value::as_str).flat_map(|line| [line, "\n"]).collect::<String>().into_bytes().into()
        }
        Value::List(_) | Value::Record(_) | Value::Table(_) | Value::Range(_) => {
            json::stringify(value)?.into_bytes().into()
        }
        Value::Outcome(outcome) if !outcome.ok => {
            return Err(outcome.failure().with_hint("feed what it printed: .stdout.feed(...)"));
        }
        Value::Outcome(outcome) => match &outcome.out {
            Out::Value(out @ (Value::List(_) | Value::Record(_) | Value::Table(_))) => {
                json::stringify(out)?.into_bytes().into()
            }
            Out::Value(_) | Out::Stdout => feed_bytes(&outcome.stdout)?,
        },
        Value::Path(_) => {
            let error = ErrorValue::type_error("a path is a name, not the content of the file");
            return Err(error.with_hint("feed the content: .read().feed(...)"));
        }
        Value::Secret(_)
        | Value::Task(_)
        | Value::Closure(_)
        | Value::Error(_)
        | Value::Glob(_)
        | Value::Regex(_)
        | Value::Channel(_) => {
            let msg = format!("{} cannot be the standard input of a program", value.type_name());
            return Err(ErrorValue::new(code::FEED_ERROR, msg));
        }
        Value::Null | Value::Command(_) | Value::Stream(_) => {
            let msg = format!("{} cannot be the standard input of a program", value.type_name());
            return Err(ErrorValue::type_error(msg));
        }
    })
}

fn feed_bytes(bytes: &Bytes) -> Result<Feed, ErrorValue> {
    match bytes {
        Bytes::Held(held) => Ok(Feed::Held(held.clone())),
        Bytes::Stored(stored) => Ok(Feed::Stored(stored.clone())),
        Bytes::Cut(cut) => Err(cut.refusal()),
    }
}

/// The line an item of a stream makes: str and bytes as they are, others as compact JSON, each with a newline.
pub fn item_line(item: &Value) -> Result<Vec<u8>, ErrorValue> {
    let mut line = match item {
        Value::Str(text) => text.as_bytes().to_vec(),
        Value::Bytes(Bytes::Held(held)) => held.to_vec(),
        Value::Bytes(Bytes::Cut(cut)) => return Err(cut.refusal()),
        other => json::stringify(other)?.into_bytes(),
    };
    line.push(b'\n');
    Ok(line)
}
