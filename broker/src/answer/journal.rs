//! Journal methods and the administration of stored blobs.

use serde_json::{Value, json};
use shoal_journal::{GcRequest, JournalError, Query};
use shoal_wire::params::journal::{JournalGc, JournalPin, JournalQuery, JournalVerify};
use shoal_wire::{RpcError, limits, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};

impl Broker {
    /// `journal.query`.
    pub(super) fn answer_journal_query(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<JournalQuery>(text));
        let sees_all = caller.human || self.policy.of(&caller.principal).is_some_and(|section| section.journal_read);
        let visible_to = (!sees_all).then(|| caller.principal.to_string());
        self.query_journal(wanted, visible_to, move |broker, answer| broker.reply(ask, answer));
    }

    /// Rows as a JSON array, newest first.
    pub(crate) fn query_journal(
        &mut self,
        wanted: JournalQuery,
        visible_to: Option<String>,
        then: impl FnOnce(&mut Self, Result<String, RpcError>) + 'static,
    ) {
        let query = Query::of_wire(&wanted, visible_to);
        self.read(
            move |store| Ok(rows_json(&store.query(&query)?)),
            move |broker, found| then(broker, found.map_err(|error| unreadable(&error))),
        );
    }

    /// `journal.verify`.
    pub(super) fn answer_journal_verify(&mut self, ask: Ask, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<JournalVerify>(text));
        let head = wanted.head.map(|head| head.as_str().to_owned());
        self.read(
            move |store| store.verify(head.as_deref()),
            move |broker, verified| {
                let answer = verified.map_err(|error| unreadable(&error));
                let answer = answer.map(|verified| verified.to_wire().to_string());
                broker.reply(ask, answer);
            },
        );
    }

    /// `journal.pin` and `journal.unpin`.
    pub(super) fn answer_journal_pin(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>, pin: bool) {
        let wanted = or_refuse!(self, ask, params::decode::<JournalPin>(text));
        let hash = wanted.hash.as_str().to_owned();
        let principal = caller.principal.clone();
        let asked = hash.clone();
        self.write(
            move |store| if pin { store.pin(&hash) } else { store.unpin(&hash) },
            move |broker, written| {
                if let Err(error) = written {
                    let error = match error {
                        JournalError::Unknown(_) => {
                            RpcError::unknown_ref(&format!("val:blake3:{asked}"), "unknown", None)
                        }
                        other => unreadable(&other),
                    };
                    return broker.reply(ask, Err(error));
                }
                let method = if pin { "journal.pin" } else { "journal.unpin" };
                let body = json!({"hash": asked, "pinned": pin}).to_string();
                broker.answer_recorded(ask, &principal, method, json!({"hash": asked}), body);
            },
        );
    }

    /// `journal.gc`.
    pub(super) fn answer_journal_gc(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<JournalGc>(text));
        let request = GcRequest::from(&wanted);
        let principal = caller.principal.clone();
        let arguments = json!({"ttl_s": wanted.ttl_s, "budget_bytes": wanted.budget_bytes, "apply": wanted.apply});
        self.write_synced(
            move |store| store.gc(request),
            move |broker, collected| match collected {
                Err(error) => broker.reply(ask, Err(unreadable(&error))),
                Ok(report) => {
                    if !report.dry_run {
                        broker.captures.collected(u64::try_from(report.remaining_bytes).unwrap_or(0));
                    }
                    let body = report.to_wire();
                    broker.answer_recorded(ask, &principal, "journal.gc", arguments, body.to_string());
                }
            },
        );
    }

    /// Answers an act of administration after its row.
    pub(super) fn answer_recorded(&mut self, ask: Ask, principal: &str, method: &str, arguments: Value, body: String) {
        self.record_admin(principal, method, arguments, move |broker, written| match written {
            Ok(_) => broker.reply(ask, Ok(body)),
            Err(error) => broker.reply(ask, Err(RpcError::journal_unavailable(error.to_string()))),
        });
    }
}

fn rows_json(rows: &[shoal_journal::Row]) -> String {
    let path = |bytes: &[u8]| serde_json::from_str(&crate::json::wire_path(bytes)).unwrap_or_default();
    let mut out = String::from("[");
    for row in rows {
        let row = row.to_wire(path).to_string();
        if out.len() + row.len() > limits::JOURNAL_BYTES && out.len() > 1 {
            break;
        }
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&row);
    }
    out.push(']');
    out
}

fn unreadable(error: &JournalError) -> RpcError {
    RpcError::journal_unavailable(error.to_string())
}
