//! Watches are the worker's; the broker counts them, remembers the persistent ones and tells of them.

use shoal_journal::{JournalError, SavedWatch};
use shoal_proto::broker_worker::Method as WorkerMethod;
use shoal_wire::params;
use shoal_wire::params::watch::{WatchPick, WatchStart};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::quotas::Quota;
use crate::sessions::Sid;
use crate::watches::WatchSpec;

impl Broker {
    /// `watch.start`.
    pub(super) fn answer_watch_start(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<WatchStart>(text));
        let used = self.sessions.at(caller.sid).map_or(0, |session| session.watches.len());
        or_refuse!(self, ask, self.quotas.admit(Quota::WatchesPerSession, used));
        let spec = WatchSpec {
            name: wanted.name.as_str().to_owned(),
            uri: wanted.uri.into_string(),
            on_event: wanted.on_event,
            lang: wanted.lang.word().to_owned(),
            persist: wanted.persist,
        };
        let (sid, principal) = (caller.sid, caller.principal.clone());
        let body = text.map_or("{}", |params| params.get()).as_bytes().to_vec();
        self.ask_worker(sid, WorkerMethod::WatchStart, body, move |broker, answer| {
            if answer.is_ok() {
                broker.watch_started(sid, spec, &principal);
            }
            broker.reply(ask, answer);
        });
    }

    fn watch_started(&mut self, sid: Sid, spec: WatchSpec, principal: &str) {
        let name = spec.name.clone();
        let Some(session) = self.sessions.at_mut(sid) else { return };
        session.watches.retain(|watch| watch.name != name);
        session.watches.push(spec.clone());
        if spec.persist {
            let (owner, session) = (session.owner.to_string(), session.name.to_string());
            let saved = SavedWatch { name: spec.name, uri: spec.uri, on_event: spec.on_event, lang: spec.lang };
            self.write(move |store| store.put_watch(&owner, &session, &saved), unsaved);
        }
        self.session_event(sid, "watch_started", None, Some(&name));
        self.note_session(sid, "watch_started", Some(&name), Some(principal));
    }

    /// `watch.stop`.
    pub(super) fn answer_watch_stop(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<WatchPick>(text));
        let (sid, principal) = (caller.sid, caller.principal.clone());
        let body = text.map_or("{}", |params| params.get()).as_bytes().to_vec();
        self.ask_worker(sid, WorkerMethod::WatchStop, body, move |broker, answer| {
            if answer.is_ok() {
                broker.watch_stopped(sid, &wanted.name, &principal);
            }
            broker.reply(ask, answer);
        });
    }

    fn watch_stopped(&mut self, sid: Sid, name: &str, principal: &str) {
        let Some(session) = self.sessions.at_mut(sid) else { return };
        let before = session.watches.len();
        session.watches.retain(|watch| watch.name != name);
        if session.watches.len() == before {
            return;
        }
        let (owner, session, gone) = (session.owner.to_string(), session.name.to_string(), name.to_owned());
        self.write(move |store| store.delete_watch(&owner, &session, &gone), unsaved);
        self.session_event(sid, "watch_stopped", None, Some(name));
        self.note_session(sid, "watch_stopped", Some(name), Some(principal));
    }
}

impl Broker {
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
}

fn spec(saved: SavedWatch) -> WatchSpec {
    let SavedWatch { name, uri, on_event, lang } = saved;
    WatchSpec { name, uri, on_event, lang, persist: true }
}

fn unsaved(_: &mut Broker, written: Result<(), JournalError>) {
    if let Err(error) = written {
        crate::log::line(format_args!("watch not saved: {error}"));
    }
}
