//! `value.get`: a result, or a part of it by path and slice, in one of three forms.

use std::sync::Arc;

use base64::Engine as _;
use serde_json::{Value as Json, json};
use shoal_proto::broker_worker::UpMethod;
use shoal_value::Value;
use shoal_value::render::{self, Style};
use shoal_value::select::{self, Raw, SelectError, Store};
use shoal_value::wire::{self, Origin};
use shoal_wire::elide::ElideSpec;
use shoal_wire::{Ref, RpcError, text};

use crate::session::Session;

/// Bytes of the store that are read for one answer.
const MAX_PART: usize = 64 * 1024 * 1024;

/// What is asked for.
struct Wanted<'p> {
    reference: Ref,
    name: &'p str,
    path: Option<&'p str>,
    slice: Option<(u64, u64)>,
}

/// Answers one request; `stored` in the params is the wire form of a value the session does not hold.
pub(super) fn answer(session: &Arc<Session>, params: &Json) -> Result<Json, RpcError> {
    let name = params["ref"].as_str().ok_or_else(|| RpcError::missing("ref"))?;
    let reference = Ref::parse(name).ok_or_else(|| RpcError::unknown_ref(name, "unknown", None))?;
    let slice = match &params["slice"] {
        Json::Array(ends) => match (ends.first().and_then(Json::as_u64), ends.get(1).and_then(Json::as_u64)) {
            (Some(start), Some(end)) if ends.len() == 2 => Some((start, end)),
            _ => return Err(RpcError::mistyped("slice", "[start, end]")),
        },
        _ => None,
    };
    let wanted = Wanted { reference, name, path: params["path"].as_str(), slice };
    let whole = whole(session, &wanted, &params["stored"])?;
    let store = AtBroker(session);
    let value = part(&wanted, &whole, &store)?;
    let origin = Origin { reference: &wanted.reference, path: wanted.path, slice: wanted.slice };
    let uri = origin.uri();
    match params["format"].as_str().unwrap_or("json") {
        "json" => {
            let spec: ElideSpec = serde_json::from_value(params["elide"].clone()).unwrap_or_default();
            let wire = wire::elide(&value, &spec.budgets(), origin);
            let wire: Json = serde_json::from_str(&wire).map_err(|e| RpcError::internal(e.to_string()))?;
            Ok(json!({"ref": name, "uri": uri, "value": wire}))
        }
        "render" => {
            let block = render::block_within(&value, &Style::default(), Some(&uri));
            let block = if value.is_null() { String::new() } else { text::without_escapes(&block).into_owned() };
            Ok(json!({"ref": name, "uri": uri, "render": block}))
        }
        "raw" => match select::raw(&value, &store).map_err(|e| selection_error(&wanted, &e))? {
            Raw::Text(text) => Ok(json!({"ref": name, "uri": uri, "raw": &*text})),
            Raw::Bytes(bytes) => {
                let raw = base64::engine::general_purpose::STANDARD.encode(bytes);
                Ok(json!({"ref": name, "uri": uri, "raw_base64": raw}))
            }
        },
        other => Err(RpcError::invalid(
            "format",
            shoal_wire::error::Reason::Range,
            format!("no format `{other}`: json, render, raw"),
        )),
    }
}

/// The value at a path of a result of the session.
pub(super) fn named(session: &Session, name: &str, path: Option<&str>) -> Result<Value, RpcError> {
    let reference = Ref::parse(name).ok_or_else(|| RpcError::unknown_ref(name, "unknown", None))?;
    let wanted = Wanted { reference, name, path, slice: None };
    part(&wanted, &whole(session, &wanted, &Json::Null)?, &AtBroker(session))
}

fn whole(session: &Session, wanted: &Wanted<'_>, stored: &Json) -> Result<Value, RpcError> {
    if !stored.is_null() {
        return wire::from_wire(&stored.to_string()).map_err(|e| RpcError::internal(format!("stored value: {e}")));
    }
    let unknown = |reason| RpcError::unknown_ref(wanted.name, reason, None);
    match wanted.reference {
        // A stored result that cannot be read is asked for by the broker, which says why.
        Ref::Out(n) => session
            .results
            .value(n)
            .ok()
            .flatten()
            .ok_or_else(|| unknown(if session.results.is_of_another(n) { "worker_lost" } else { "evicted" })),
        _ => Err(unknown("unknown")),
    }
}

fn part(wanted: &Wanted<'_>, whole: &Value, store: &dyn Store) -> Result<Value, RpcError> {
    let refused = |e: SelectError| selection_error(wanted, &e);
    let value = select::select(whole, wanted.path.unwrap_or_default(), store).map_err(refused)?;
    match wanted.slice {
        Some((start, end)) => select::slice(&value, start, end, store).map_err(refused),
        None => Ok(value),
    }
}

fn selection_error(wanted: &Wanted<'_>, error: &SelectError) -> RpcError {
    let Some(reason) = error.reason() else {
        return RpcError::unknown_ref(wanted.name, "evicted", None);
    };
    let refused = RpcError::bad_path(wanted.name, wanted.path, reason, error.to_string());
    match error {
        SelectError::TooLarge { total, unit } => refused.and("total", *total).and("unit", *unit),
        SelectError::Path(_) | SelectError::Slice(_) | SelectError::Format(_) | SelectError::Evicted => refused,
    }
}

/// Bytes in the content store are read by the broker.
struct AtBroker<'s>(&'s Session);

impl Store for AtBroker<'_> {
    fn read(&self, hash: &str, start: u64, end: u64) -> Option<Vec<u8>> {
        let params = json!({"hash": hash, "offset": start, "length": end - start});
        let (_, fd) = self.0.broker.call(0, UpMethod::BlobGet, &params, None).ok()?;
        shoal_sys::memfd::read_sealed(&fd?, MAX_PART).ok()
    }
}
