//! A keyed call whose run an earlier broker answered: the answer again, rebuilt from the journal.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_journal::{JournalError, Row, Store};
use shoal_proto::broker_worker::{Elide, Method as WorkerMethod};
use shoal_wire::error::Reason;
use shoal_wire::{Code, RpcError};

use super::exec::Order;
use super::values::MAX_VALUE;
use crate::broker::Broker;
use crate::clients::Ask;
use crate::json::{quoted, wire_path};
use crate::keys;
use crate::runs::{Patience, RunAnswer, answer_for};

/// What the journal has of a keyed run.
struct Recorded {
    row: Row,
    /// The stored wire value, with its hash.
    value: Option<(String, Value)>,
    render: String,
    /// The value was stored and is not there any more.
    collected: Option<String>,
}

impl Broker {
    /// A key this broker has not seen may stand in the journal.
    pub(super) fn look_up_key(
        &mut self,
        ask: Ask,
        order: Order,
        patience: (Patience, Duration),
        key: String,
        body: keys::Body,
    ) {
        let Some(session) = self.sessions.at_mut(order.sid) else { return };
        let (owner, name, asked) = (session.owner.to_string(), session.name.to_string(), key.clone());
        let kept = i64::try_from(keys::KEPT.as_nanos()).unwrap_or(i64::MAX);
        let before = self.now.ns.saturating_sub(kept);
        self.read(
            move |store| {
                let row = store.row_of_key(&owner, &name, &asked)?;
                let ended = |row: &Row| row.ts.saturating_add(row.dur_ns.unwrap_or(0));
                row.filter(|row| ended(row) >= before).map(|row| recorded(store, row)).transpose()
            },
            move |broker, found| match found {
                // Another call with this key may have come first.
                _ if broker.knows_key(&order, &key) => broker.answer_keyed(ask, order, patience, &key, body),
                Ok(Some(recorded)) if recorded.row.key_body.as_deref() != Some(&body[..]) => {
                    broker.reply(ask, Err(key_reuse(Some(recorded.row.id))));
                }
                Ok(Some(recorded)) if recorded.row.ok.is_none() => {
                    broker.await_adoption(ask, order, patience, key, body, recorded.row);
                }
                Ok(Some(recorded)) => broker.replay(ask, &order, recorded),
                Ok(None) => broker.answer_fresh(ask, order, patience),
                Err(error) => broker.reply(ask, Err(RpcError::journal_unavailable(error.to_string()))),
            },
        );
    }

    fn knows_key(&mut self, order: &Order, key: &str) -> bool {
        let now = self.now.mono;
        self.sessions.at_mut(order.sid).is_some_and(|session| session.keys.find(key, now).is_some())
    }

    /// The row is open: its run may go on in a worker that has not told this broker yet.
    fn await_adoption(
        &mut self,
        ask: Ask,
        order: Order,
        patience: (Patience, Duration),
        key: String,
        body: keys::Body,
        row: Row,
    ) {
        self.when_up(order.sid, move |broker, up| match up {
            Err(error) => broker.reply(ask, Err(error)),
            Ok(()) if broker.knows_key(&order, &key) => broker.answer_keyed(ask, order, patience, &key, body),
            Ok(()) => {
                let error = RpcError::worker_lost(&row.session, Some(row.id), false, "the kernel was restarted");
                broker.send_answer(ask, &answer_for(&Err(error), true, true));
            }
        });
    }

    /// Answers as the run was answered; its value is elided as this call wants it, by the worker.
    fn replay(&mut self, ask: Ask, order: &Order, recorded: Recorded) {
        let answer = &recorded.row.summary.as_ref().map_or(Value::Null, |summary| summary["answer"].clone());
        let Some((hash, value)) = recorded.value else {
            let error = match recorded.collected {
                Some(hash) => RpcError::unknown_ref(&format!("val:blake3:{hash}"), "evicted", None),
                None => failed(&recorded.row, answer),
            };
            return self.send_answer(ask, &answer_for(&Err(error), true, true));
        };
        let reference = format!("val:blake3:{hash}");
        let cwd = match &answer["cwd"] {
            Value::Null => wire_path(&recorded.row.cwd),
            cwd => cwd.to_string(),
        };
        let elapsed = answer["elapsed_ms"].as_i64().unwrap_or(recorded.row.dur_ns.unwrap_or(0) / 1_000_000);
        let held = answer["held_by"].as_u64().filter(|held| *held > 0);
        let held = held.map_or_else(String::new, |held| format!(r#","held_by":{held}"#));
        let render = quoted(&recorded.render);
        let asked = json!({"ref": reference, "stored": value, "elide": elide_json(&order.elide)});
        self.ask_worker(order.sid, WorkerMethod::ValueGet, asked.to_string(), move |broker, told| {
            let answer: RunAnswer = told.and_then(|text| {
                let told: Value = serde_json::from_str(&text).map_err(|e| RpcError::internal(e.to_string()))?;
                let members = format!(
                    concat!(
                        r#"{{"ref":"{}","uri":"shoal://val/blake3:{}","value":{},"render":{},"#,
                        r#""elapsed_ms":{},"cwd":{}{}"#
                    ),
                    reference, hash, told["value"], render, elapsed, cwd, held
                );
                Ok(members.into())
            });
            broker.send_answer(ask, &answer_for(&answer, true, true));
        });
    }
}

fn elide_json(elide: &Elide) -> Value {
    json!({"max_bytes": elide.max_bytes, "max_rows": elide.max_rows, "max_bytes_raw": elide.max_bytes_raw,
        "max_items": elide.max_items})
}

/// What the journal has of a keyed run.
fn recorded(store: &Store, row: Row) -> Result<Recorded, JournalError> {
    let output = row.outputs.iter().find(|output| output.kind == "value").map(|output| output.hash.clone());
    let render = super::values::output_text(store, &row, "render").unwrap_or_default();
    let Some(hash) = output else { return Ok(Recorded { row, value: None, render, collected: None }) };
    let digest = *blake3::Hash::from_hex(&hash).map_err(|_| JournalError::Unknown("blob"))?.as_bytes();
    let bytes = match store.blob(&digest, 0, MAX_VALUE) {
        Ok(blob) => blob.bytes,
        Err(JournalError::Unknown(_) | JournalError::Damaged(_)) => {
            return Ok(Recorded { row, value: None, render, collected: Some(hash) });
        }
        Err(error) => return Err(error),
    };
    // What is longer than a message is shown by its stored reference alone.
    let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        json!({"$": "ref", "uri": format!("shoal://val/blake3:{hash}"),
            "of": row.summary.as_ref().map_or(Value::Null, |summary| summary["type"].clone()),
            "n": 1, "preview": {"$": "null"}, "render_head": ""})
    });
    Ok(Recorded { value: Some((hash, value)), row, render, collected: None })
}

/// The error a run ended with. Its transcript value was that of another life of the session. A run that ended with its
/// session was interrupted: the session that is asked now has not ended.
fn failed(row: &Row, answer: &Value) -> RpcError {
    let error = serde_json::from_value::<RpcError>(answer["error"].clone()).ok();
    if let Some(mut error) = error.filter(|error| !error.is(Code::SessionEnded)) {
        if let Some(data) = error.data.as_mut().filter(|data| data.get("ref").is_some()) {
            data["ref"] = Value::Null;
            data["uri"] = Value::Null;
        }
        return error;
    }
    let how = row.ended.as_deref().unwrap_or("interrupted");
    RpcError::worker_lost(&row.session, Some(row.id), false, how)
}

/// -32602 for a key that stands for another call.
pub(super) fn key_reuse(entry: Option<i64>) -> RpcError {
    let message = "this key was used for another call";
    RpcError::invalid("key", Reason::KeyReuse, message).and("entry_id", json!(entry))
}
