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
        let query = Query {
            since: wanted.since,
            until: wanted.until,
            principal: wanted.principal.as_ref().map(|principal| principal.0.clone()),
            session: wanted.session.as_ref().map(|name| name.as_str().to_owned()),
            head: wanted.head.clone(),
            ok: wanted.ok,
            effects: wanted.effects.iter().map(|effect| effect.0.to_owned()).collect(),
            kinds: wanted.kinds.iter().flatten().map(|kind| kind.0.to_owned()).collect(),
            before: wanted.before,
            limit: wanted.rows(),
            visible_to,
        };
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
                let answer = verified.map_err(|error| unreadable(&error)).map(|verified| {
                    let mut body = json!({"ok": verified.ok, "rows": verified.rows, "head": verified.head});
                    if let Some(first_bad) = verified.first_bad {
                        body["first_bad"] = first_bad.into();
                    }
                    if let Some(found) = verified.head_found {
                        body["head_found"] = found.into();
                    }
                    body.to_string()
                });
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
        let int = |n: Option<u64>| n.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let request =
            GcRequest { ttl_s: int(wanted.ttl_s), budget_bytes: int(wanted.budget_bytes), apply: wanted.apply };
        let principal = caller.principal.clone();
        let arguments = json!({"ttl_s": wanted.ttl_s, "budget_bytes": wanted.budget_bytes, "apply": wanted.apply});
        self.write_synced(
            move |store| store.gc(request),
            move |broker, collected| match collected {
                Err(error) => broker.reply(ask, Err(unreadable(&error))),
                Ok((report, files)) => {
                    // The rows are gone for good; only now may the files go.
                    files.iter().for_each(|file| remove(file));
                    let body = json!({"candidates": report.candidates, "deleted": report.deleted,
                        "dry_run": report.dry_run, "reclaimed_bytes": report.reclaimed_bytes,
                        "remaining_bytes": report.remaining_bytes});
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

#[allow(clippy::disallowed_methods, reason = "files of the content store that the database forgot")]
fn remove(file: &std::path::Path) {
    match std::fs::remove_file(file) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => crate::log::line(format_args!("collected blob stays: {error}")),
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
