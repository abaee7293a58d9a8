//! What a line of stdin is, before anything is done about it.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use shoal_wire::json::{self, JsonLimits};

/// The facade takes what a JSON reader takes; only tool arguments have the kernel's tighter limits.
const LINE: JsonLimits =
    JsonLimits { depth: 128, nodes: usize::MAX, items: usize::MAX, key_bytes: usize::MAX, number_bytes: usize::MAX };

/// The id of a request: a string or an integer, echoed as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(String);

impl Id {
    /// The id as JSON text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// The id as a JSON value.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or(Value::Null)
    }

    /// The id that `value` is, if it can be one.
    pub(crate) fn of(value: &Value) -> Option<Id> {
        let integer = value.is_i64() || value.is_u64();
        (integer || value.is_string()).then(|| Id(value.to_string()))
    }
}

/// A request or notification.
#[derive(Debug)]
pub(crate) struct Message {
    /// Absent for notifications.
    pub(crate) id: Option<Id>,
    /// `None` when it is not a string.
    pub(crate) method: Option<String>,
    /// Absent counts as `{}`; `None` when it is not an object.
    pub(crate) params: Option<serde_json::Map<String, Value>>,
}

/// A line that is no message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotAMessage {
    /// Nothing on it, or an answer to a question we never ask.
    Ignored,
    /// Not JSON: -32700 with this detail.
    Unreadable(String),
    /// JSON, and no request: -32600 under no id.
    Invalid(&'static str),
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&'de RawValue>::deserialize(input).map(Some)
}

/// Reads a line.
pub(crate) fn read(line: &[u8]) -> Result<Message, NotAMessage> {
    let Some(first) = line.trim_ascii_start().first() else { return Err(NotAMessage::Ignored) };
    json::check(line, &LINE).map_err(|fault| NotAMessage::Unreadable(fault.to_string()))?;
    if *first != b'{' {
        return Err(match serde_json::from_slice::<&RawValue>(line) {
            Ok(_) => NotAMessage::Invalid("a message is one JSON object per line"),
            Err(error) => NotAMessage::Unreadable(error.to_string()),
        });
    }
    let raw: Raw<'_> = match serde_json::from_slice(line) {
        Ok(raw) => raw,
        Err(error) if error.is_data() => return Err(NotAMessage::Invalid("a member of the message is repeated")),
        Err(error) => return Err(NotAMessage::Unreadable(error.to_string())),
    };
    if raw.method.is_none() && (raw.result.is_some() || raw.error.is_some()) {
        return Err(NotAMessage::Ignored);
    }
    if raw.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(NotAMessage::Invalid("`jsonrpc` must be \"2.0\""));
    }
    let id = raw.id.map(|text| read_id(text).ok_or(NotAMessage::Invalid("`id` must be a string or an integer")));
    let params = match raw.params {
        None => Some(serde_json::Map::new()),
        Some(text) => serde_json::from_str(text.get()).ok(),
    };
    Ok(Message { id: id.transpose()?, method: raw.method.and_then(string), params })
}

fn read_id(text: &RawValue) -> Option<Id> {
    Id::of(&serde_json::from_str(text.get()).ok()?)
}

fn string(text: &RawValue) -> Option<String> {
    serde_json::from_str(text.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &[u8]) -> NotAMessage {
        read(line).unwrap_err()
    }

    #[test]
    fn lines_that_are_no_messages() {
        assert_eq!(fault(b"  \r"), NotAMessage::Ignored);
        assert_eq!(fault(br#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#), NotAMessage::Ignored);
        assert!(matches!(fault(b"{bad"), NotAMessage::Unreadable(_)));
        assert!(matches!(fault(b"nonsense"), NotAMessage::Unreadable(_)));
        assert!(matches!(fault(b"\xff{}"), NotAMessage::Unreadable(_)));
        assert!(matches!(fault(&b"[".repeat(20_000)), NotAMessage::Unreadable(_)));
        assert!(matches!(fault(br#"{"jsonrpc":"2.0","id":1,"method":"p""#), NotAMessage::Unreadable(_)));
        for invalid in [
            "[]",
            "1",
            r#"{"id":5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        ] {
            assert!(matches!(fault(invalid.as_bytes()), NotAMessage::Invalid(_)), "{invalid}");
        }
    }

    #[test]
    fn messages() {
        let message = read(br#"{"jsonrpc":"2.0","id":"a\u0062","method":"ping"}"#).unwrap();
        assert_eq!(message.id.map(|id| id.text().to_owned()).as_deref(), Some("\"ab\""));
        assert_eq!(message.params, Some(serde_json::Map::new()));
        let message = read(br#"{"jsonrpc":"2.0","method":7,"params":[]}"#).unwrap();
        assert_eq!((message.id, message.method, message.params), (None, None, None));
    }
}
