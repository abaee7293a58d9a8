//! The two generations of MCP, decided for each request on its own.
//!
//! A request that carries a protocol version in its `_meta` is of the 2026 era and brings everything else that matters
//! along. One without is of the 2025 era once an `initialize` has been seen. Nothing else is remembered.

pub(crate) mod legacy;
pub(crate) mod modern;

use serde_json::{Map, Value, json};
use shoal_wire::error::Reason;
use shoal_wire::{Code, RpcError, text};

/// `_meta` key of the version.
pub(crate) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of the client's capabilities.
pub(crate) const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of the client's name.
pub(crate) const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key of our name.
pub(crate) const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key of a listen stream.
pub(crate) const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The version of the 2026 era.
pub(crate) const MODERN: &str = "2026-07-28";
/// Versions served, newest first.
pub(crate) const SUPPORTED: [&str; 3] = [MODERN, "2025-11-25", "2025-06-18"];
/// MCP's code for a version that is not served.
const UNSUPPORTED_VERSION: i64 = -32022;

/// The era of one request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Era {
    /// 2025-06-18 or 2025-11-25, after `initialize`.
    Legacy(legacy::Version),
    /// 2026-07-28.
    Modern(modern::Client),
}

impl Era {
    /// Whether failures of tool arguments are tool results, which a model can read and correct.
    pub(crate) fn argument_errors_are_results(&self) -> bool {
        !matches!(self, Era::Legacy(legacy::Version::June2025))
    }

    /// Whether this is the 2026 era.
    pub(crate) fn is_modern(&self) -> bool {
        matches!(self, Era::Modern(_))
    }
}

/// Decides the era of a request. `seen` is the version an earlier `initialize` settled on.
pub(crate) fn decide(
    method: &str,
    params: &Map<String, Value>,
    seen: Option<legacy::Version>,
) -> Result<Era, RpcError> {
    let meta = params.get("_meta").and_then(Value::as_object);
    match meta.and_then(|meta| Some((meta, meta.get(VERSION_KEY)?))) {
        Some((meta, version)) if version == MODERN => modern::Client::read(meta).map(Era::Modern),
        Some((_, version)) => Err(unsupported(version)),
        None => match seen {
            Some(version) => Ok(Era::Legacy(version)),
            None if matches!(method, "initialize" | "ping") => Ok(Era::Legacy(legacy::Version::June2025)),
            None => Err(missing()),
        },
    }
}

fn unsupported(requested: &Value) -> RpcError {
    RpcError {
        code: UNSUPPORTED_VERSION,
        message: "Unsupported protocol version".to_owned(),
        data: Some(json!({ "supported": SUPPORTED, "requested": requested })),
    }
}

fn missing() -> RpcError {
    RpcError::invalid(
        "_meta",
        Reason::Missing,
        format!("call initialize first, or send `_meta` with `{VERSION_KEY}` in every request"),
    )
}

/// How long an answer may be kept, in the 2026 era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    /// The same for everybody and for minutes.
    Fixed,
    /// True at this moment for this client.
    Fresh,
    /// The result has no place for it.
    Unsaid,
}

/// Finishes a result as its era wants it.
pub(crate) fn finish(era: &Era, mut result: Map<String, Value>, cache: Cache) -> Map<String, Value> {
    if era.is_modern() {
        modern::finish(&mut result, cache);
    }
    result
}

/// What we can do, the same in both eras.
pub(crate) fn capabilities() -> Value {
    json!({ "tools": { "listChanged": false }, "resources": { "subscribe": true, "listChanged": false } })
}

/// Our name.
pub(crate) fn server_info() -> Value {
    json!({ "name": "shoal-mcp", "version": env!("CARGO_PKG_VERSION") })
}

/// -32601 for what this era does not have.
pub(crate) fn no_such_method(method: &str) -> RpcError {
    RpcError::new(Code::MethodNotFound, "method not found").with(json!({ "method": text::cut(method, 128) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(version: &str) -> Map<String, Value> {
        let meta = json!({ VERSION_KEY: version, CAPABILITIES_KEY: {} });
        Map::from_iter([("_meta".to_owned(), meta)])
    }

    #[test]
    fn eras_are_decided_by_the_request_first() {
        let none = Map::new();
        let seen = Some(legacy::Version::November2025);
        assert!(decide("tools/list", &meta(MODERN), seen).unwrap().is_modern());
        assert_eq!(decide("tools/list", &none, seen), Ok(Era::Legacy(legacy::Version::November2025)));
        assert!(decide("ping", &none, None).is_ok() && decide("initialize", &none, None).is_ok());
        let error = decide("tools/list", &none, None).unwrap_err();
        assert_eq!(error.code, -32602);
        assert!(error.message.contains(VERSION_KEY));
        let error = decide("tools/list", &meta("1999-01-01"), seen).unwrap_err();
        assert_eq!(error.code, -32022);
        assert_eq!(error.data.unwrap(), json!({"supported": SUPPORTED, "requested": "1999-01-01"}));
    }

    #[test]
    fn modern_requests_must_say_what_they_can() {
        let mut params = meta(MODERN);
        params["_meta"] = json!({ VERSION_KEY: MODERN });
        assert_eq!(decide("tools/list", &params, None).unwrap_err().code, -32602);
    }
}
