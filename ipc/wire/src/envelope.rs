//! Requests, answers and pushes as they stand on the wire.
//!
//! Decoding borrows: `id` and `params` stay the text the peer sent, so an id of any shape is echoed unchanged and a
//! relayed body is never rebuilt.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::json::{self, JsonFault, JsonLimits};
use crate::limits;

/// A request of a client. `id` may be any JSON value.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Echoed unchanged, never compared.
    pub id: &'a RawValue,
    /// Method name as sent.
    pub method: Cow<'a, str>,
    /// The text of `params`; `None` when absent or `null`.
    pub params: Option<&'a RawValue>,
}

/// Why a frame is no request.
#[derive(Debug)]
pub enum Rejected<'a> {
    /// The connection ends without an answer.
    Close(Broken),
    /// The envelope is readable and wrong: answer this under the id.
    Answer(&'a RawValue, RpcError),
}

/// A frame that ends its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Nothing but blank space.
    Blank,
    /// Not JSON, or not UTF-8.
    NotJson,
    /// JSON, and no object.
    NotObject,
    /// An object without `id`.
    NoId,
    /// It breaks a limit.
    Limit(JsonFault),
}

#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

/// Tells a member that is `null` from one that is absent.
fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&'de RawValue>::deserialize(input).map(Some)
}

impl<'a> Request<'a> {
    /// Decodes a frame under the limits for client input.
    pub fn decode(frame: &'a [u8]) -> Result<Request<'a>, Rejected<'a>> {
        Request::decode_within(frame, &limits::INPUT_JSON)
    }

    /// Decodes a frame under `limits`.
    pub fn decode_within(frame: &'a [u8], limits: &JsonLimits) -> Result<Request<'a>, Rejected<'a>> {
        match frame.trim_ascii_start().first() {
            None => return Err(Rejected::Close(Broken::Blank)),
            Some(b'{') => {}
            Some(_) => return Err(Rejected::Close(not_an_object(frame))),
        }
        json::check(frame, limits).map_err(|fault| Rejected::Close(Broken::Limit(fault)))?;
        let raw: RawRequest<'a> = serde_json::from_slice(frame).map_err(|_| Rejected::Close(Broken::NotJson))?;
        let id = raw.id.ok_or(Rejected::Close(Broken::NoId))?;
        if raw.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return Err(Rejected::Answer(id, RpcError::invalid_request("invalid JSON-RPC version")));
        }
        let method = raw.method.and_then(|text| serde_json::from_str::<Text<'a>>(text.get()).ok());
        let Some(Text(method)) = method else {
            return Err(Rejected::Answer(id, RpcError::invalid_request("`method` must be a string")));
        };
        let params = raw.params.filter(|params| params.get() != "null");
        Ok(Request { id, method, params })
    }

    /// The frame of a request, LF included. `params` of `null` stands for none.
    pub fn encode(id: u64, method: &str, params: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
        #[derive(Serialize)]
        struct Out<'o, P> {
            jsonrpc: &'static str,
            id: u64,
            method: &'o str,
            params: &'o P,
        }
        line(&Out { jsonrpc: "2.0", id, method, params })
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

fn not_an_object(frame: &[u8]) -> Broken {
    // Only a shallow document is looked at again, to name the fault; both end the connection.
    match json::check(frame, &limits::INPUT_JSON) {
        Err(fault) => Broken::Limit(fault),
        Ok(()) if serde_json::from_slice::<&RawValue>(frame).is_ok() => Broken::NotObject,
        Ok(()) => Broken::NotJson,
    }
}

fn line(value: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut out = serde_json::to_vec(value)?;
    out.push(b'\n');
    Ok(out)
}

/// The frame of a successful answer, LF included.
pub fn success(id: &RawValue, result: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Out<'o, R> {
        jsonrpc: &'static str,
        id: &'o RawValue,
        result: &'o R,
    }
    line(&Out { jsonrpc: "2.0", id, result })
}

/// The frame of a successful answer whose result is JSON text already: no parsing, one copy.
pub fn success_text(id: &RawValue, result: &str) -> Vec<u8> {
    let id = id.get();
    let mut out = Vec::with_capacity(result.len().saturating_add(id.len()).saturating_add(40));
    for part in ["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", result, "}\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    out
}

/// The frame of a failure, LF included. Without an `id` it is sent under `null`.
pub fn failure(id: Option<&RawValue>, error: &RpcError) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Out<'o> {
        jsonrpc: &'static str,
        id: Option<&'o RawValue>,
        error: &'o RpcError,
    }
    line(&Out { jsonrpc: "2.0", id, error })
}

/// An event as it is pushed and as `events.read` lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Topic name, e.g. `task.4`.
    pub channel: String,
    /// Set when the subscription named an owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Number within the topic.
    pub seq: u64,
    /// Nanoseconds since the epoch; informational.
    pub ts: i64,
    /// Tagged value, a user's JSON, or `{"dropped","latest_seq"}`.
    pub payload: serde_json::Value,
}

/// The frame of a push, LF included.
pub fn push(event: &Event) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Out<'o> {
        jsonrpc: &'static str,
        method: &'static str,
        params: &'o Event,
    }
    line(&Out { jsonrpc: "2.0", method: "event", params: event })
}

/// A frame of the kernel, as a client reads it.
#[derive(Debug)]
pub enum Incoming {
    /// The answer to the request of this id; `None` is `id:null`.
    Answer(Option<u64>, Result<Box<RawValue>, RpcError>),
    /// A push of a subscription.
    Event(Event),
    /// A push this build does not know.
    Other,
}

impl Incoming {
    /// Decodes a frame. An answer must have an integer id of ours or `null`, and exactly one of `result` and `error`.
    pub fn decode(frame: &[u8]) -> Result<Incoming, String> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(default)]
            id: Option<u64>,
            #[serde(default)]
            method: Option<Cow<'a, str>>,
            #[serde(default, borrow, deserialize_with = "present")]
            params: Option<&'a RawValue>,
            #[serde(default, borrow, deserialize_with = "present")]
            result: Option<&'a RawValue>,
            #[serde(default)]
            error: Option<RpcError>,
        }
        let raw: Raw<'_> = serde_json::from_slice(frame).map_err(|error| error.to_string())?;
        match (raw.method, raw.result, raw.error) {
            (None, Some(result), None) => Ok(Incoming::Answer(raw.id, Ok(result.to_owned()))),
            (None, None, Some(error)) => Ok(Incoming::Answer(raw.id, Err(error))),
            (Some(method), None, None) if method == "event" => {
                let params = raw.params.ok_or("an event without params")?;
                serde_json::from_str(params.get()).map(Incoming::Event).map_err(|error| error.to_string())
            }
            (Some(_), None, None) => Ok(Incoming::Other),
            _ => Err("neither an answer nor an event".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn closed(frame: &str) -> Option<Broken> {
        match Request::decode(frame.as_bytes()) {
            Err(Rejected::Close(broken)) => Some(broken),
            _ => None,
        }
    }

    #[test]
    fn broken_frames_close() {
        assert_eq!(closed("{bad"), Some(Broken::NotJson));
        assert_eq!(closed("bad"), Some(Broken::NotJson));
        assert_eq!(closed("[]"), Some(Broken::NotObject));
        assert_eq!(closed("1"), Some(Broken::NotObject));
        assert_eq!(closed("  "), Some(Broken::Blank));
        assert_eq!(closed(r#"{"jsonrpc":"2.0","method":"x"}"#), Some(Broken::NoId));
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}}}"#, "[".repeat(64) + &"]".repeat(64));
        assert_eq!(closed(&deep), Some(Broken::Limit(JsonFault::Depth)));
        assert!(matches!(Request::decode(b"{\"id\":\"\xff\"}"), Err(Rejected::Close(Broken::NotJson))));
    }

    #[test]
    fn ids_of_any_shape_are_kept() {
        for id in ["null", "{\"a\":1}", "1.50", "\"x\"", "[1, 2]"] {
            let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"kernel.version","params":null}}"#);
            let request = Request::decode(frame.as_bytes()).unwrap();
            assert_eq!(request.id.get(), id);
            assert_eq!(request.method, "kernel.version");
            assert!(request.params.is_none());
            let answer = success_text(request.id, "{}");
            assert_eq!(answer, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n").as_bytes());
        }
    }

    #[test]
    fn wrong_envelopes_are_answered_under_their_id() {
        for frame in
            [r#"{"id":1,"method":"x"}"#, r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, r#"{"jsonrpc":"2.0","id":1}"#]
        {
            match Request::decode(frame.as_bytes()) {
                Err(Rejected::Answer(id, error)) => {
                    assert_eq!(id.get(), "1");
                    assert_eq!(error.code, -32600);
                }
                other => panic!("{frame}: {other:?}"),
            }
        }
    }

    #[test]
    fn answers_and_events_are_read_back() {
        let error = RpcError::not_attached();
        let frame = failure(None, &error).unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":null,"error":"#), "{text}");
        assert!(matches!(Incoming::decode(&frame), Ok(Incoming::Answer(None, Err(read))) if read == error));
        let event =
            Event { channel: "user.x".into(), owner: None, seq: 3, ts: 9, payload: serde_json::json!({"a": 1}) };
        assert!(matches!(Incoming::decode(&push(&event).unwrap()), Ok(Incoming::Event(read)) if read == event));
        assert!(Incoming::decode(b"{\"id\":1}").is_err());
        assert!(matches!(
            Incoming::decode(b"{\"id\":1,\"result\":null}"),
            Ok(Incoming::Answer(Some(1), Ok(value))) if value.get() == "null"
        ));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            drop(Request::decode(&bytes));
            drop(Incoming::decode(&bytes));
        }

        #[test]
        fn a_request_survives_its_encoding(id in any::<u64>(), method in ".{0,20}", text in ".{0,40}") {
            let params = serde_json::json!({ "src": text });
            let frame = Request::encode(id, &method, &params).unwrap();
            let request = Request::decode(frame.strip_suffix(b"\n").unwrap()).unwrap();
            prop_assert_eq!(request.id.get(), id.to_string());
            prop_assert_eq!(request.method, method);
            let read: serde_json::Value = serde_json::from_str(request.params.unwrap().get()).unwrap();
            prop_assert_eq!(read, params);
        }
    }
}
