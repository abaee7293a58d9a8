//! Values and blobs, and the methods the session's worker answers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use shoal_journal::{JournalError, Row, Store};
use shoal_proto::broker_worker::Method as WorkerMethod;
use shoal_wire::params::value::{BlobGet, Format, StreamClose, StreamPull, ValueGet};
use shoal_wire::params::{Empty, exec};
use shoal_wire::{Code, Method, Ref, RpcError, limits, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::sessions::Sid;

/// A value in the content store that is read whole, to be decoded.
pub(super) const MAX_VALUE: u64 = 16 * 1024 * 1024;

impl Broker {
    /// Checks params and passes them on as they are.
    pub(super) fn answer_by_worker(&mut self, ask: Ask, caller: &Attachment, method: Method, text: Params<'_>) {
        let checked = match method {
            Method::SessionEnv => params::decode::<Empty>(text).map(|_| WorkerMethod::Env),
            Method::SessionReef => params::decode::<Empty>(text).map(|_| WorkerMethod::Reef),
            Method::Parse => params::decode::<exec::Parse>(text).map(|_| WorkerMethod::Parse),
            Method::Complete => params::decode::<exec::Complete>(text).map(|_| WorkerMethod::Complete),
            Method::WatchList => params::decode::<Empty>(text).map(|_| WorkerMethod::WatchList),
            other => Err(RpcError::internal(format!("{} is not the worker's", other.name()))),
        };
        let method = or_refuse!(self, ask, checked);
        let body = text.map_or("{}", |params| params.get()).as_bytes().to_vec();
        self.ask_worker(caller.sid, method, body, move |broker, answer| broker.reply(ask, answer));
    }

    /// `session.snapshot`: the broker's facts completed by the worker's.
    pub(super) fn answer_snapshot(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        or_refuse!(self, ask, params::decode::<Empty>(text));
        let Some(session) = self.sessions.at(caller.sid) else { return };
        let idle = self.policy.of_session(session).and_then(|section| section.idle_ttl);
        let facts = json!({
            "session": &*session.name, "owner": &*session.owner, "state": session.state(),
            "execs_running": session.running.len(),
            "last_ref": session.has_out(session.last_out).then(|| format!("out:{}", session.last_out)),
            "idle_ttl_ms": idle.map(|seconds| seconds.saturating_mul(1000)),
        });
        self.ask_worker(caller.sid, WorkerMethod::Snapshot, facts.to_string(), move |broker, answer| {
            broker.reply(ask, answer);
        });
    }

    /// `explain`: the worker derives, the broker judges.
    pub(super) fn answer_explain(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let explain = or_refuse!(self, ask, params::decode::<exec::Explain>(text));
        if explain.src.is_none() && explain.ast.is_none() {
            return self.reply(ask, Err(RpcError::missing("src")));
        }
        let body = text.map_or("{}", |params| params.get()).as_bytes().to_vec();
        let owner = caller.owner.clone();
        self.ask_worker(caller.sid, WorkerMethod::Explain, body, move |broker, answer| {
            let judged = answer.and_then(|text| {
                let mut told: Value =
                    serde_json::from_str(&text).map_err(|error| RpcError::internal(error.to_string()))?;
                let effects = serde_json::from_value::<Vec<shoal_leash::Effect>>(told["effects"].clone());
                let effects = effects.map_err(|error| RpcError::internal(format!("effects: {error}")))?;
                let explained = shoal_leash::explain(&effects, broker.policy.of(&owner));
                told["verdict"] = explained.verdict.name().into();
                if explained.verdict != shoal_leash::Verdict::Allow {
                    told["why"] = explained.lines.into();
                    told["grants"] = explained.grants.into();
                }
                told["plan_ref"] = Value::Null;
                Ok(told.to_string())
            });
            broker.reply(ask, judged);
        });
    }

    /// `value.get`: transcript values from the worker, stored ones from the content store.
    pub(super) fn answer_value_get(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<ValueGet>(text));
        let mut body: Value = text.and_then(|text| serde_json::from_str(text.get()).ok()).unwrap_or_default();
        let query = with_query(&mut body, &wanted.ref_);
        let reference = Ref::parse(query.as_deref().unwrap_or(&wanted.ref_));
        match (reference, caller.last_out) {
            (Some(Ref::Last), Some(n)) => self.value_of_out(ask, caller, body, n),
            (Some(Ref::Out(n)), _) => self.value_of_out(ask, caller, body, n),
            (Some(Ref::Val(hash)), _) => self.value_of_blob(ask, caller, &wanted, hash, body),
            _ => self.reply(ask, Err(RpcError::unknown_ref(&wanted.ref_, "unknown", None))),
        }
    }

    /// A transcript value: from the worker, or, when it does not have it any more, from the content store by the worker.
    fn value_of_out(&mut self, ask: Ask, caller: &Attachment, mut body: Value, n: u64) {
        body["ref"] = format!("out:{n}").into();
        let sid = caller.sid;
        if !self.sessions.at(sid).is_some_and(|session| session.has_out(n)) {
            return self.reply(ask, Err(RpcError::unknown_ref(&format!("out:{n}"), "unknown", None)));
        }
        self.ask_worker(sid, WorkerMethod::ValueGet, body.to_string(), move |broker, answer| match answer {
            Err(error) if error.is(Code::UnknownRef) => broker.value_of_stored_out(ask, sid, n, body, error),
            other => broker.reply(ask, other),
        });
    }

    /// A value the worker dropped or lost: its stored form, selected and elided by the worker.
    fn value_of_stored_out(&mut self, ask: Ask, sid: Sid, n: u64, mut body: Value, error: RpcError) {
        self.stored_out(sid, n, move |broker, stored| match stored {
            Some(stored) if !(was_lost(&error) && stored.is_handle()) => {
                body["stored"] = stored.value;
                broker.ask_worker(sid, WorkerMethod::ValueGet, body.to_string(), move |broker, answer| {
                    broker.reply(ask, answer);
                });
            }
            stored => broker.reply(ask, Err(no_value(n, &error, stored.as_ref()))),
        });
    }

    /// `stream.pull` and `stream.close`: by the worker, which holds the stream unless one before it did.
    pub(super) fn answer_stream(&mut self, ask: Ask, caller: &Attachment, method: Method, text: Params<'_>) {
        let checked = match method {
            Method::StreamClose => {
                params::decode::<StreamClose>(text).map(|close| (WorkerMethod::StreamClose, close.ref_, close.path))
            }
            _ => params::decode::<StreamPull>(text).map(|pull| (WorkerMethod::StreamPull, pull.ref_, pull.path)),
        };
        let (method, name, path) = or_refuse!(self, ask, checked);
        let sid = caller.sid;
        let out = match Ref::parse(&name) {
            Some(Ref::Out(n)) => Some(n),
            _ => None,
        };
        if out.is_some_and(|n| !self.sessions.at(sid).is_some_and(|session| session.has_out(n))) {
            return self.reply(ask, Err(RpcError::unknown_ref(&name, "unknown", None)));
        }
        let body = text.map_or("{}", |params| params.get()).as_bytes().to_vec();
        self.ask_worker(sid, method, body, move |broker, answer| match (answer, out) {
            (Err(error), Some(n)) if was_lost(&error) => broker.stored_out(sid, n, move |broker, stored| {
                let told = match stored {
                    Some(stored) if path.is_none() && !stored.is_handle() => {
                        RpcError::bad_path(&name, None, "not_a_stream", "this result is not a stream")
                    }
                    stored => no_value(n, &error, stored.as_ref()),
                };
                broker.reply(ask, Err(told));
            }),
            (answer, _) => broker.reply(ask, answer),
        });
    }

    /// Reads what the content store has of a result of a session.
    fn stored_out(&mut self, sid: Sid, n: u64, then: impl FnOnce(&mut Self, Option<StoredOut>) + 'static) {
        let Some(session) = self.sessions.at(sid) else { return then(self, None) };
        let (owner, name) = (session.owner.to_string(), session.name.to_string());
        let out = i64::try_from(n).unwrap_or(i64::MAX);
        self.read(
            move |store| {
                let Some(row) = store.row_of_out(&owner, &name, out)? else { return Ok(None) };
                let hash = row.outputs.iter().find(|output| output.kind == "value").map(|output| output.hash.clone());
                Ok(hash.zip(output_text(store, &row, "value")))
            },
            move |broker, found| {
                let stored = found.ok().flatten().and_then(|(hash, text)| {
                    let value = serde_json::from_str(&text).ok()?;
                    Some(StoredOut { hash, value })
                });
                then(broker, stored);
            },
        );
    }

    fn value_of_blob(&mut self, ask: Ask, caller: &Attachment, wanted: &ValueGet, hash: String, mut body: Value) {
        or_refuse!(self, ask, self.quotas.read_blob(&caller.owner, self.now.mono));
        let (sid, format) = (caller.sid, wanted.format);
        let reference = format!("val:blake3:{hash}");
        let asked = reference.clone();
        self.read_blob_for(caller, hash, 0, MAX_VALUE, move |broker, found| match found {
            Ok((kind, _, bytes)) if kind != "value" && format == Format::Raw && body.get("path").is_none() => {
                let answer = raw_blob(&asked, &bytes, body.get("slice"));
                broker.reply(ask, answer);
            }
            Ok((kind, _, bytes)) => {
                let stored = if kind == "value" {
                    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
                } else {
                    json!({"$": "bytes", "v": STANDARD.encode(&bytes)})
                };
                body["ref"] = asked.into();
                body["stored"] = stored;
                broker.ask_worker(sid, WorkerMethod::ValueGet, body.to_string(), move |broker, answer| {
                    broker.reply(ask, answer);
                });
            }
            Err(error) => broker.reply(ask, Err(error)),
        });
    }

    /// Reads a blob that the caller may see: kind, whole length, bytes of the range.
    fn read_blob_for(
        &mut self,
        caller: &Attachment,
        hash: String,
        offset: u64,
        length: u64,
        then: impl FnOnce(&mut Self, Result<(String, u64, Vec<u8>), RpcError>) + 'static,
    ) {
        let principal = (!caller.human).then(|| caller.principal.to_string());
        let owner = caller.owner.to_string();
        let reference = format!("val:blake3:{hash}");
        self.read(
            move |store| {
                let digest = *blake3::Hash::from_hex(&hash).map_err(|_| JournalError::Unknown("blob"))?.as_bytes();
                let visible = match &principal {
                    Some(principal) => store.owns_blob(&digest, principal)? || store.owns_blob(&digest, &owner)?,
                    None => true,
                };
                if !visible {
                    return Err(JournalError::Unknown("blob"));
                }
                let kind = store.blob_kind(&digest)?.unwrap_or_else(|| "bytes".to_owned());
                let blob = store.blob(&digest, offset, length)?;
                Ok((kind, blob.len, blob.bytes))
            },
            move |broker, found| {
                let answer = found.map_err(|error| match error {
                    JournalError::Unknown(_) | JournalError::Damaged(_) => {
                        RpcError::unknown_ref(&reference, "unknown", None)
                    }
                    other => RpcError::internal(other.to_string()),
                });
                then(broker, answer);
            },
        );
    }

    /// `blob.get`.
    pub(super) fn answer_blob_get(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<BlobGet>(text));
        or_refuse!(self, ask, self.quotas.read_blob(&caller.owner, self.now.mono));
        let whole = wanted.offset.is_none() && wanted.length.is_none();
        let offset = wanted.offset.unwrap_or(0);
        let page = u64::try_from(limits::BLOB_PAGE_BYTES).unwrap_or(65_536);
        let length = wanted.length.map_or(page, |length| length.unsigned());
        let hash = wanted.hash.as_str().to_owned();
        let (sid, asked) = (caller.sid, hash.clone());
        let read = if whole { MAX_VALUE } else { length };
        self.read_blob_for(caller, hash, offset, read, move |broker, found| match found {
            Ok((kind, len, bytes)) if whole && kind == "value" => {
                let stored: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                let body = json!({"ref": format!("val:blake3:{asked}"), "stored": stored});
                broker.ask_worker(sid, WorkerMethod::ValueGet, body.to_string(), move |broker, answer| {
                    let answer = answer.and_then(|text| {
                        let told: Value = serde_json::from_str(&text).map_err(|e| RpcError::internal(e.to_string()))?;
                        Ok(json!({"hash": asked, "kind": kind, "len": len, "value": told["value"], "page": null})
                            .to_string())
                    });
                    broker.reply(ask, answer);
                });
            }
            Ok((kind, len, mut bytes)) => {
                bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
                let next = offset.saturating_add(bytes.len() as u64);
                let body = json!({
                    "hash": asked, "kind": kind, "len": len,
                    "value": {"$": "bytes", "len": bytes.len(), "v": STANDARD.encode(&bytes)},
                    "page": {"offset": offset, "length": bytes.len(), "total": len,
                             "next_offset": (next < len).then_some(next)},
                });
                broker.reply(ask, Ok(body.to_string()));
            }
            Err(error) => broker.reply(ask, Err(error)),
        });
    }
}

/// What the content store has of a result.
struct StoredOut {
    hash: String,
    value: Value,
}

impl StoredOut {
    /// The result was something that lives in its worker alone.
    fn is_handle(&self) -> bool {
        matches!(self.value["$"].as_str(), Some("stream" | "task"))
    }
}

/// A worker was asked for a result of one before it.
fn was_lost(error: &RpcError) -> bool {
    error.reason() == Some("worker_lost")
}

/// Why a result cannot be given: lost with its worker if it lived there alone, else gone from the store.
fn no_value(n: u64, error: &RpcError, stored: Option<&StoredOut>) -> RpcError {
    let name = format!("out:{n}");
    match stored.filter(|stored| stored.is_handle()) {
        Some(stored) => RpcError::unknown_ref(&name, "worker_lost", Some(&format!("val:blake3:{}", stored.hash))),
        None if was_lost(error) => RpcError::unknown_ref(&name, "evicted", None),
        None => error.clone(),
    }
}

/// Moves `path` and `slice` of a reference that is a URI with a query into the params; the reference without it.
fn with_query(body: &mut Value, reference: &str) -> Option<String> {
    let (bare, _) = reference.split_once('?').filter(|_| reference.starts_with("shoal://"))?;
    let uri = shoal_wire::Uri::parse(reference).ok()?;
    if let Some(path) = uri.value("path").filter(|_| body.get("path").is_none()) {
        body["path"] = path.into();
    }
    if let Some((start, end)) = uri.value("slice").and_then(|slice| slice.split_once(".."))
        && let (Ok(start), Ok(end)) = (start.parse::<u64>(), end.parse::<u64>())
        && body.get("slice").is_none()
    {
        body["slice"] = json!([start, end]);
    }
    Some(bare.to_owned())
}

/// Raw bytes of a stored output.
fn raw_blob(reference: &str, bytes: &[u8], slice: Option<&Value>) -> Result<String, RpcError> {
    let bound = |at: usize| slice.and_then(|s| s.get(at)).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let end = bound(1).unwrap_or(bytes.len()).min(bytes.len());
    let part = bytes.get(bound(0).unwrap_or(0).min(end)..end).unwrap_or_default();
    if part.len() as u64 > limits::RAW_BYTES {
        let message = format!("raw content exceeds {} bytes; add a slice", limits::RAW_BYTES);
        let error = RpcError::bad_path(reference, None, "too_large", message);
        return Err(error.and("total", part.len() as u64).and("unit", "bytes"));
    }
    let uri = Ref::parse(reference).and_then(|reference| reference.uri()).unwrap_or_default();
    Ok(json!({"ref": reference, "uri": uri, "raw_base64": STANDARD.encode(part)}).to_string())
}

/// Text of a stored output of a row.
pub(crate) fn output_text(store: &Store, row: &Row, kind: &str) -> Option<String> {
    let output = row.outputs.iter().find(|output| output.kind == kind)?;
    let digest = *blake3::Hash::from_hex(&output.hash).ok()?.as_bytes();
    let blob = store.blob(&digest, 0, MAX_VALUE).ok()?;
    String::from_utf8(blob.bytes).ok()
}
