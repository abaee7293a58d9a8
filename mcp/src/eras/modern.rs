//! 2026-07-28: no handshake; every request says who asks, every result who answers and how long it holds.

use serde_json::{Map, Value, json};
use shoal_wire::RpcError;

use super::{CAPABILITIES_KEY, CLIENT_KEY, Cache, SERVER_KEY, SUPPORTED, capabilities, server_info};
use crate::instructions::INSTRUCTIONS;

/// What a request says of its client.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Client {
    /// Whether a person can be asked by a form.
    pub(crate) asks_by_form: bool,
    /// Its name.
    pub(crate) name: Option<String>,
}

impl Client {
    pub(crate) fn read(meta: &Map<String, Value>) -> Result<Client, RpcError> {
        let Some(Value::Object(capabilities)) = meta.get(CAPABILITIES_KEY) else {
            return Err(RpcError::mistyped(&format!("_meta.{CAPABILITIES_KEY}"), "an object"));
        };
        // A bare `elicitation` means forms; one that lists modes has to list this one.
        let asks_by_form = match capabilities.get("elicitation") {
            Some(Value::Object(modes)) => modes.is_empty() || modes.contains_key("form"),
            _ => false,
        };
        let name = meta.get(CLIENT_KEY).and_then(|info| info.get("name")).and_then(Value::as_str);
        Ok(Client { asks_by_form, name: name.map(str::to_owned) })
    }
}

/// How long fixed lists hold, in milliseconds.
const FIXED_MS: u64 = 300_000;

/// Adds what every result has.
pub(crate) fn finish(result: &mut Map<String, Value>, cache: Cache) {
    result.entry("resultType").or_insert_with(|| json!("complete"));
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        meta.insert(SERVER_KEY.to_owned(), server_info());
    }
    let (ttl, scope) = match cache {
        Cache::Fixed => (FIXED_MS, "public"),
        Cache::Fresh => (0, "private"),
        Cache::Unsaid => return,
    };
    result.insert("ttlMs".to_owned(), json!(ttl));
    result.insert("cacheScope".to_owned(), json!(scope));
}

/// Result of `server/discover`.
pub(crate) fn discover() -> Map<String, Value> {
    Map::from_iter([
        ("supportedVersions".to_owned(), json!(SUPPORTED)),
        ("capabilities".to_owned(), capabilities()),
        ("instructions".to_owned(), json!(INSTRUCTIONS)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_a_capability() {
        let read = |capabilities: Value| {
            Client::read(json!({ CAPABILITIES_KEY: capabilities }).as_object().unwrap()).unwrap().asks_by_form
        };
        assert!(read(json!({"elicitation": {}})) && read(json!({"elicitation": {"form": {}}})));
        assert!(!read(json!({"elicitation": {"url": {}}})) && !read(json!({})));
    }

    #[test]
    fn results_say_how_long_they_hold() {
        let mut result = Map::new();
        finish(&mut result, Cache::Fresh);
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["_meta"][SERVER_KEY]["name"], "shoal-mcp");
    }
}
