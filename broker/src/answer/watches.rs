//! Watches are the worker's; the broker counts them, remembers the persistent ones and tells of them.

use serde::Deserialize;
use serde_json::json;
use shoal_journal::{JournalError, SavedWatch};
use shoal_proto::broker_worker::{Method as WorkerMethod, UpCall};
use shoal_wire::error::Reason;
use shoal_wire::params::watch::{WatchPick, WatchStart};
use shoal_wire::{RpcError, params};

use super::Params;
use super::events::page_json;
use crate::broker::{Broker, or_refuse};
use crate::bus::ChannelKey;
use crate::clients::{Ask, Attachment};
use crate::quotas::Quota;
use crate::sessions::Sid;
use crate::watches::WatchSpec;

/// Notices that `watch.get` shows.
const NOTICES: usize = 256;
/// What a worker says of its watches outlives it in events and rows, so it is bounded.
const MAX_REASON: usize = 1024;

/// What a worker tells of its watches.
#[derive(Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
enum Told {
    /// The language started one.
    Started { spec: WatchSpec },
    /// The language stopped one, or one of an earlier worker can never start again.
    Stopped { name: String },
    /// One gave up.
    Failed { name: String, reason: String },
    /// All there are, for a fresh broker.
    Have { specs: Vec<WatchSpec> },
}

impl Broker {
    /// `watch.start`.
    pub(super) fn answer_watch_start(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<WatchStart>(text));
        let spec = WatchSpec {
            name: wanted.name.as_str().to_owned(),
            uri: wanted.uri.into_string(),
            on_event: wanted.on_event,
            lang: wanted.lang.word().to_owned(),
            persist: wanted.persist,
        };
        or_refuse!(self, ask, self.admit_watch(caller.sid, &spec.name));
        let (sid, principal) = (caller.sid, caller.principal.clone());
        let body = json!(spec).to_string();
        self.ask_worker(sid, WorkerMethod::WatchStart, body, move |broker, answer| match answer {
            Ok(answer) => broker.watch_started(sid, spec, &principal, move |broker, saved| {
                broker.reply(ask, saved.map(|()| answer));
            }),
            Err(error) => broker.reply(ask, Err(error)),
        });
    }

    /// Room for one more watch; a name that exists takes none.
    fn admit_watch(&self, sid: Sid, name: &str) -> Result<(), RpcError> {
        let Some(session) = self.sessions.at(sid) else { return Ok(()) };
        let others = session.watches.iter().filter(|watch| watch.name != name).count();
        self.quotas.admit(Quota::WatchesPerSession, others)
    }

    /// Remembers a watch and tells of it, before whoever started it is answered.
    fn watch_started(
        &mut self,
        sid: Sid,
        spec: WatchSpec,
        principal: &str,
        then: impl FnOnce(&mut Self, Result<(), RpcError>) + 'static,
    ) {
        let Some(session) = self.sessions.at_mut(sid) else { return then(self, Ok(())) };
        session.watches.retain(|watch| watch.name != spec.name);
        session.watches.push(spec.clone());
        let (owner, session) = (session.owner.to_string(), session.name.to_string());
        self.session_event(sid, "watch_started", None, Some(&spec.name));
        self.note_session(sid, "watch_started", Some(&spec.name), Some(principal));
        let WatchSpec { name, uri, on_event, lang, persist } = spec;
        let saved = SavedWatch { name, uri, on_event, lang };
        self.write(
            move |store| match persist {
                true => store.put_watch(&owner, &session, &saved),
                // One of the same name may have been persistent.
                false => store.delete_watch(&owner, &session, &saved.name),
            },
            move |broker, written| then(broker, written.map_err(|e| RpcError::journal_unavailable(e.to_string()))),
        );
    }

    /// `watch.stop`.
    pub(super) fn answer_watch_stop(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<WatchPick>(text));
        let (sid, principal) = (caller.sid, caller.principal.clone());
        let body = json!({"name": wanted.name}).to_string();
        self.ask_worker(sid, WorkerMethod::WatchStop, body, move |broker, answer| match answer {
            Ok(answer) => broker.watch_stopped(sid, &wanted.name, &principal, move |broker, saved| {
                broker.reply(ask, saved.map(|()| answer));
            }),
            Err(error) => broker.reply(ask, Err(error)),
        });
    }

    fn watch_stopped(
        &mut self,
        sid: Sid,
        name: &str,
        principal: &str,
        then: impl FnOnce(&mut Self, Result<(), RpcError>) + 'static,
    ) {
        let Some(session) = self.sessions.at_mut(sid) else { return then(self, Ok(())) };
        let before = session.watches.len();
        session.watches.retain(|watch| watch.name != name);
        if session.watches.len() == before {
            return then(self, Ok(()));
        }
        let (owner, session, gone) = (session.owner.to_string(), session.name.to_string(), name.to_owned());
        self.session_event(sid, "watch_stopped", None, Some(name));
        self.note_session(sid, "watch_stopped", Some(name), Some(principal));
        self.arm_idle(sid);
        self.write(
            move |store| store.delete_watch(&owner, &session, &gone),
            move |broker, written| then(broker, written.map_err(|e| RpcError::journal_unavailable(e.to_string()))),
        );
    }

    /// `watch.get`: the worker's record, and the notices that are in the ring.
    pub(super) fn answer_watch_get(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<WatchPick>(text));
        let key: ChannelKey = (caller.owner.clone(), format!("watch.{}", wanted.name).into());
        let body = json!({"name": wanted.name}).to_string();
        self.ask_worker(caller.sid, WorkerMethod::WatchGet, body, move |broker, answer| {
            let answer = answer.map(|record| {
                let page = broker.bus.page(&key, broker.now.ns, None, NOTICES);
                // The page's members follow the record in one object.
                let page = page_json(&key.1, &page, None);
                format!(r#"{{"watch":{record},{}"#, page.trim_start_matches('{'))
            });
            broker.reply(ask, answer);
        });
    }

    /// A worker tells of its watches.
    pub(crate) fn up_watch(&mut self, sid: Sid, call: UpCall) {
        let told: Result<Told, _> = serde_json::from_slice(call.params.as_slice());
        let told = told.map_err(|error| RpcError::invalid("params", Reason::Type, error.to_string()));
        let Some(owner) = self.sessions.at(sid).map(|session| session.owner.clone()) else { return };
        let answer = move |broker: &mut Self, done: Result<(), RpcError>| {
            broker.told(sid, &call, done.map(|()| "{}".to_owned()));
        };
        match told {
            Ok(Told::Started { spec }) => match self.admit_watch(sid, &spec.name) {
                Ok(()) => self.watch_started(sid, spec, &owner, answer),
                Err(error) => answer(self, Err(error)),
            },
            Ok(Told::Stopped { name }) => self.watch_stopped(sid, &name, &owner, answer),
            Ok(Told::Failed { name, reason }) => {
                let reason = crate::json::one_line(&reason, MAX_REASON);
                self.session_event(sid, "watch_failed", Some(&reason), Some(&name));
                answer(self, Ok(()));
            }
            Ok(Told::Have { specs }) => {
                if let Some(session) = self.sessions.at_mut(sid) {
                    session.watches = specs;
                }
                answer(self, Ok(()));
            }
            Err(error) => answer(self, Err(error)),
        }
    }

    /// Reads the saved watches of a session, then goes on.
    pub(crate) fn load_watches(&mut self, sid: Sid, then: impl FnOnce(&mut Self) + 'static) {
        let Some(session) = self.sessions.at(sid) else { return };
        let (owner, name) = (session.owner.to_string(), session.name.to_string());
        self.read(
            move |store| store.watches(&owner, &name),
            move |broker, saved| {
                match (saved, broker.sessions.at_mut(sid)) {
                    (Ok(saved), Some(session)) => session.watches = saved.into_iter().map(spec).collect(),
                    (Ok(_), None) => {}
                    (Err(error), _) => crate::log::line(format_args!("watches not read: {error}")),
                }
                then(broker);
            },
        );
    }

    /// A session was killed: its watches end with it.
    pub(crate) fn forget_watches(&mut self, sid: Sid) {
        let Some(session) = self.sessions.at(sid).filter(|session| !session.watches.is_empty()) else { return };
        let (owner, name) = (session.owner.to_string(), session.name.to_string());
        let watches: Vec<String> = session.watches.iter().map(|watch| watch.name.clone()).collect();
        self.write(
            move |store| watches.iter().try_for_each(|watch| store.delete_watch(&owner, &name, watch)),
            unforgotten,
        );
    }
}

fn spec(saved: SavedWatch) -> WatchSpec {
    let SavedWatch { name, uri, on_event, lang } = saved;
    WatchSpec { name, uri, on_event, lang, persist: true }
}

/// The next session of that name would start them again: said, because nobody waits for it.
fn unforgotten(_: &mut Broker, written: Result<(), JournalError>) {
    if let Err(error) = written {
        crate::log::line(format_args!("watches of a killed session not deleted: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_tell() {
        let spec = json!({"name":"cm","uri":"memo://x","on_event":null,"lang":"shoal","persist":true});
        for told in [
            json!({"action":"started","spec":spec}),
            json!({"action":"stopped","name":"cm"}),
            json!({"action":"failed","name":"cm","reason":"gone"}),
            json!({"action":"have","specs":[spec]}),
        ] {
            assert!(serde_json::from_value::<Told>(told.clone()).is_ok(), "{told}");
        }
        assert!(serde_json::from_value::<Told>(json!({"action":"other"})).is_err());
    }
}
