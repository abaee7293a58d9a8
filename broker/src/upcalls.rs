//! What a worker may ask for while it runs something: answered for its own session's owner only.

use std::os::fd::OwnedFd;

use serde::Deserialize;
use serde_json::{Value, json};
use shoal_journal::{JournalError, UndoRecord};
use shoal_leash::Effect;
use shoal_proto::broker_worker::{MAX_UP_CALLS, ToWorker, UpCall, UpMethod};
use shoal_wire::{RpcError, params};

use crate::broker::Broker;
use crate::runs::Stage;
use crate::sessions::Sid;
use crate::worker_edge::told;

/// Bytes of one stored or fetched blob.
const MAX_BLOB: usize = 64 * 1024 * 1024;

#[derive(Deserialize)]
struct Emit {
    channel: String,
    payload: Box<serde_json::value::RawValue>,
}

#[derive(Deserialize)]
struct Undo {
    action: String,
    #[serde(default)]
    op: String,
    #[serde(default)]
    inverse: Value,
    entry: Option<i64>,
}

#[derive(Deserialize)]
struct BlobGet {
    hash: String,
    #[serde(default)]
    offset: u64,
    length: Option<u64>,
}

#[derive(Deserialize)]
struct Channels {
    channels: Vec<String>,
}

#[derive(Deserialize)]
struct Judge {
    effects: Vec<Effect>,
}

/// Name under which a worker tells which watches it started again.
const RESTORED: &str = "restore";

/// Up-calls outside runs that one worker may have open. It gives up waiting for one before we stop counting it, so this
/// is more than it may wait for.
const MAX_LOOSE: usize = 2 * MAX_UP_CALLS;

/// Watches act between the runs, and clients read stored values then.
fn is_loose(method: UpMethod) -> bool {
    matches!(method, UpMethod::Emit | UpMethod::Resource | UpMethod::Listen | UpMethod::Watch | UpMethod::BlobGet)
}

fn read<'a, T: Deserialize<'a>>(call: &'a UpCall) -> Result<T, RpcError> {
    serde_json::from_slice(call.params.as_slice())
        .map_err(|e| RpcError::invalid("params", shoal_wire::error::Reason::Type, e.to_string()))
}

impl Broker {
    /// Checks that the call belongs to something that runs, and answers it.
    pub(crate) fn answer_up_call(&mut self, sid: Sid, call: UpCall, fds: Vec<OwnedFd>) -> Result<(), &'static str> {
        let n = call.run;
        let open = self.runs.of(sid, n).map(|run| (run.stage, run.up_calls));
        match open {
            Some((Stage::Running { .. }, calls)) if calls < MAX_UP_CALLS => {}
            Some((Stage::Running { .. }, _)) => return Err("too many up-calls"),
            // The run was aborted meanwhile; nobody waits for the answer.
            Some(_) => return Ok(()),
            None if n == 0 && is_loose(call.method) => {
                let session = self.sessions.at_mut(sid).filter(|session| session.up_calls < MAX_LOOSE);
                session.ok_or("too many up-calls")?.up_calls += 1;
            }
            None if n == 0 => return Err("an up-call outside a run"),
            None => {
                let error = RpcError::internal("the run is over");
                self.tell_worker(sid, ToWorker::Told(told(call.call, Err(error))));
                return Ok(());
            }
        }
        if let Some(run) = self.runs.at_mut(n) {
            run.up_calls += 1;
        }
        self.answer_up(sid, call, fds);
        Ok(())
    }

    fn answer_up(&mut self, sid: Sid, call: UpCall, fds: Vec<OwnedFd>) {
        match call.method {
            UpMethod::Journal => self.up_journal(sid, call),
            UpMethod::Undo => self.up_undo(sid, call),
            UpMethod::BlobPut => self.up_blob_put(sid, call, fds),
            UpMethod::BlobGet => self.up_blob_get(sid, call),
            UpMethod::Emit => self.up_emit(sid, call),
            UpMethod::Judge => {
                let answer = self.up_judge(sid, &call);
                self.told(sid, &call, answer);
            }
            UpMethod::Resource | UpMethod::Plan => self.up_resource(sid, call),
            UpMethod::Listen => {
                let answer = read::<Channels>(&call).and_then(|wanted| self.listen(sid, &wanted.channels));
                self.told(sid, &call, answer.map(|()| "{}".to_owned()));
            }
            UpMethod::Watch => self.up_watch(sid, call),
        }
    }

    pub(crate) fn told(&mut self, sid: Sid, call: &UpCall, result: Result<String, RpcError>) {
        self.told_with(sid, call, result, Vec::new());
    }

    fn told_with(&mut self, sid: Sid, call: &UpCall, result: Result<String, RpcError>, fds: Vec<OwnedFd>) {
        if let Some(run) = self.runs.of(sid, call.run) {
            run.up_calls = run.up_calls.saturating_sub(1);
        }
        if let Some(session) = self.sessions.at_mut(sid).filter(|_| call.run == 0) {
            session.up_calls = session.up_calls.saturating_sub(1);
        }
        if let Some(peer) = self.sessions.at(sid).and_then(|session| session.worker.as_ref()) {
            peer.send_with(ToWorker::Told(told(call.call, result)), fds);
        }
    }

    fn owner_of(&self, sid: Sid) -> Option<std::rc::Rc<str>> {
        self.sessions.at(sid).map(|session| session.owner.clone())
    }

    fn up_journal(&mut self, sid: Sid, call: UpCall) {
        let raw: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(call.params.as_slice());
        let wanted = match raw.map_err(|e| RpcError::internal(e.to_string())).and_then(|raw| params::decode(Some(raw)))
        {
            Ok(wanted) => wanted,
            Err(error) => return self.told(sid, &call, Err(error)),
        };
        let Some(owner) = self.owner_of(sid) else { return };
        let sees_all = self.policy.of(&owner).is_some_and(|section| section.journal_read);
        self.query_journal(wanted, (!sees_all).then(|| owner.to_string()), move |broker, answer| {
            broker.told(sid, &call, answer);
        });
    }

    fn up_undo(&mut self, sid: Sid, call: UpCall) {
        let undo: Undo = match read(&call) {
            Ok(undo) => undo,
            Err(error) => return self.told(sid, &call, Err(error)),
        };
        let own = self.runs.at(call.run).and_then(|run| run.entry);
        let Some(owner) = self.owner_of(sid) else { return };
        match (undo.action.as_str(), own) {
            ("record", Some(entry)) => {
                let record = UndoRecord { op: undo.op, inverse: undo.inverse };
                self.write(
                    move |store| store.add_undo(entry, &record),
                    move |broker, written| {
                        broker.told(sid, &call, written.map(|()| "{}".to_owned()).map_err(unavailable))
                    },
                );
            }
            ("list", _) => {
                let Some(entry) = undo.entry.or(own) else { return };
                let owner = owner.to_string();
                self.read(
                    move |store| {
                        let row = store.row(entry)?;
                        if row.owner != owner {
                            return Err(JournalError::Unknown("row"));
                        }
                        store.undo_records(entry)
                    },
                    move |broker, found| {
                        let steps = |records: Vec<UndoRecord>| {
                            let steps: Vec<Value> = records
                                .into_iter()
                                .map(|r| json!({"entry": entry, "op": r.op, "inverse": r.inverse}))
                                .collect();
                            json!({"steps": steps}).to_string()
                        };
                        broker.told(sid, &call, found.map(steps).map_err(unavailable));
                    },
                );
            }
            _ => self.told(sid, &call, Err(RpcError::out_of_range("action", "record or list"))),
        }
    }

    fn up_blob_put(&mut self, sid: Sid, call: UpCall, fds: Vec<OwnedFd>) {
        let Some(fd) = fds.into_iter().next() else {
            return self.told(sid, &call, Err(RpcError::missing("the bytes")));
        };
        let Some(mut allowed) = self.blob_allowance(sid, call.run) else { return };
        let size = shoal_sys::memfd::len(&fd).unwrap_or(u64::MAX);
        if !allowed.take(size) {
            let message = format!("{size} bytes are more than this execution, its session or the store may still keep");
            return self.told(sid, &call, Err(RpcError::quota("output", self.output_limit(sid), size, message)));
        }
        self.write(
            move |store| {
                // What a worker attached is its own affair, not the disk's.
                let bytes = shoal_sys::memfd::read_sealed(&fd, MAX_BLOB);
                let bytes = bytes.map_err(|error| JournalError::Invalid(error.to_string()))?;
                let is_new = !store.has_blob(blake3::hash(&bytes).as_bytes())?;
                Ok((store.put_blob(&bytes)?, bytes.len(), is_new))
            },
            move |broker, written| {
                if let Ok((_hash, len, true)) = &written {
                    allowed.settle(*len as u64);
                }
                let body = |(hash, len, _is_new): ([u8; 32], usize, bool)| {
                    json!({"hash": blake3::Hash::from(hash).to_hex().as_str(), "len": len}).to_string()
                };
                broker.told(sid, &call, written.map(body).map_err(unavailable));
            },
        );
    }

    fn up_blob_get(&mut self, sid: Sid, call: UpCall) {
        let wanted: Result<BlobGet, RpcError> = read(&call);
        let (wanted, Some(owner)) = (wanted, self.owner_of(sid)) else { return };
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(error) => return self.told(sid, &call, Err(error)),
        };
        if let Err(error) = self.quotas.read_blob(&owner, self.now.mono) {
            return self.told(sid, &call, Err(error));
        }
        let Ok(hash) = blake3::Hash::from_hex(&wanted.hash).map(|hash| *hash.as_bytes()) else {
            return self.told(sid, &call, Err(unavailable(JournalError::Unknown("blob"))));
        };
        let owner = owner.to_string();
        let is_own = self.has_captured(sid, &hash);
        let length = wanted.length.map_or(MAX_BLOB as u64, |length| length.min(MAX_BLOB as u64));
        self.read(
            move |store| {
                if !is_own && !store.owns_blob(&hash, &owner)? {
                    return Err(JournalError::Unknown("blob"));
                }
                let kind = store.blob_kind(&hash)?.unwrap_or_default();
                let blob = store.blob(&hash, wanted.offset, length)?;
                Ok((kind, shoal_sys::memfd::sealed("blob", &blob.bytes)?, blob.len))
            },
            move |broker, found| match found {
                Ok((kind, fd, len)) => {
                    let body = json!({"kind": kind, "len": len}).to_string();
                    broker.told_with(sid, &call, Ok(body), vec![fd]);
                }
                Err(error) => broker.told(sid, &call, Err(unavailable(error))),
            },
        );
    }

    fn up_emit(&mut self, sid: Sid, call: UpCall) {
        let Some(owner) = self.owner_of(sid) else { return };
        let published = read::<Emit>(&call).and_then(|emit| {
            let (seq, ts) = self.emit(sid, &owner, &emit)?;
            Ok((emit.channel, seq, ts))
        });
        match published {
            Ok((channel, seq, ts)) => {
                let body = json!({"channel": channel, "seq": seq, "ts": ts}).to_string();
                self.when_shown(&owner, &channel, seq, move |broker| broker.told(sid, &call, Ok(body)));
            }
            Err(error) => self.told(sid, &call, Err(error)),
        }
    }

    fn emit(&mut self, sid: Sid, owner: &std::rc::Rc<str>, emit: &Emit) -> Result<(u64, i64), RpcError> {
        let payload = crate::json::relayable(emit.payload.get().as_bytes().to_vec()).map_err(RpcError::internal)?;
        let session = self.sessions.at(sid).ok_or_else(|| RpcError::internal("the session is gone"))?;
        let name = session.name.clone();
        let of_watch = emit.channel.strip_prefix("watch.");
        let own_watch =
            of_watch.is_some_and(|name| name == RESTORED || session.watches.iter().any(|watch| watch.name == name));
        match of_watch.filter(|_| own_watch && payload.len() <= shoal_wire::limits::PUBLISH_BYTES) {
            Some(watch) => {
                let (seq, ts) = self.publish(owner, &emit.channel, &payload);
                log_notice(ts, owner, &name, watch, seq, &payload);
                Ok((seq, ts))
            }
            None => self.publish_user(owner, &emit.channel, &payload),
        }
    }

    fn up_judge(&self, sid: Sid, call: &UpCall) -> Result<String, RpcError> {
        let wanted: Judge = read(call)?;
        let session = self.sessions.at(sid).ok_or_else(|| RpcError::internal("the session is gone"))?;
        let judged = shoal_leash::judge(&wanted.effects, self.policy.of_session(session));
        Ok(json!({"verdict": judged.verdict.name(), "hint": judged.hint()}).to_string())
    }
}

/// Every notice is logged, whoever listens.
fn log_notice(ts: i64, owner: &str, session: &str, name: &str, seq: u64, payload: &str) {
    let payload = serde_json::from_str(payload).map_or(Value::Null, |payload| shoal_wire::value::plain(&payload));
    let lines = payload["lines"].as_array().map_or(0, Vec::len);
    crate::log::event(&json!({"ts": ts, "event": "watch.notice", "owner": owner, "session": session, "name": name,
        "seq": seq, "lines": lines, "more": payload["more"]}));
}

fn unavailable(error: JournalError) -> RpcError {
    match error {
        JournalError::Unknown(what) => RpcError::unknown_ref(what, "unknown", None),
        other => RpcError::journal_unavailable(other.to_string()),
    }
}
