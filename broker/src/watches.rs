//! Watches as the broker remembers them: to count them, and to start the persistent ones again with a new worker; and
//! the channels a worker listens to for them.
//!
//! A worker is told that a channel had events, not which: it reads what it needs. While it has not answered, further
//! events of the channel make one more telling, so a flood costs one message at a time.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use shoal_proto::broker_worker::Method as WorkerMethod;
use shoal_wire::RpcError;

use crate::broker::Broker;
use crate::sessions::Sid;

/// Channels one worker listens to: one per watch, and room for watches that start while others end.
const MAX_LISTENS: usize = 64;

/// One watch of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WatchSpec {
    /// Its name.
    pub(crate) name: String,
    /// What it watches.
    pub(crate) uri: String,
    /// Its filter.
    pub(crate) on_event: Option<String>,
    /// Language of the filter.
    pub(crate) lang: String,
    /// It starts again with the session's next worker.
    pub(crate) persist: bool,
}

/// A channel that a worker listens to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    channel: Rc<str>,
    told: Told,
}

/// How far the worker is with what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It knows of every event.
    All,
    /// It was told and has not answered.
    Asked,
    /// There were events since.
    Behind,
}

impl Listen {
    /// There was an event: whether the worker has to be told now.
    fn on_event(&mut self) -> bool {
        let tell = self.told == Told::All;
        self.told = if tell { Told::Asked } else { Told::Behind };
        tell
    }

    /// The worker answered: whether it has to be told again.
    fn on_answer(&mut self) -> bool {
        let again = self.told == Told::Behind;
        self.told = if again { Told::Asked } else { Told::All };
        again
    }
}

impl Broker {
    /// A worker names all channels it listens to.
    pub(crate) fn listen(&mut self, sid: Sid, channels: &[String]) -> Result<(), RpcError> {
        if channels.len() > MAX_LISTENS {
            return Err(RpcError::out_of_range("channels", "at most 64"));
        }
        if channels.iter().any(|channel| channel == "kernel") {
            return Err(RpcError::not_permitted("human"));
        }
        let Some(session) = self.sessions.at_mut(sid) else { return Ok(()) };
        session.listens.retain(|listen| channels.iter().any(|channel| **channel == *listen.channel));
        for channel in channels {
            if !session.listens.iter().any(|listen| *listen.channel == **channel) {
                session.listens.push(Listen { channel: channel.as_str().into(), told: Told::All });
            }
        }
        Ok(())
    }

    /// Tells the workers of an owner that listen to a channel of an event on it.
    pub(crate) fn tell_listeners(&mut self, owner: &str, channel: &str) {
        let listening = self.sessions.all_mut().filter(|session| *session.owner == *owner);
        let told = listening.filter_map(|session| {
            let listen = session.listens.iter_mut().find(|listen| *listen.channel == *channel)?;
            listen.on_event().then_some(session.sid)
        });
        for sid in told.collect::<Vec<_>>() {
            self.tell_changed(sid, channel.into());
        }
    }

    fn tell_changed(&mut self, sid: Sid, channel: Rc<str>) {
        let params = json!({"changed": &*channel}).to_string();
        self.ask_worker(sid, WorkerMethod::Event, params, move |broker, answer| {
            let session = broker.sessions.at_mut(sid).filter(|_| answer.is_ok());
            let listen = session.and_then(|s| s.listens.iter_mut().find(|listen| listen.channel == channel));
            if listen.is_some_and(Listen::on_answer) {
                broker.tell_changed(sid, channel);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_costs_one_telling_at_a_time() {
        let mut listen = Listen { channel: "journal".into(), told: Told::All };
        let told = (0..1000).filter(|_| listen.on_event()).count();
        assert_eq!(told, 1);
        assert!(listen.on_answer(), "there were events since");
        assert!(!listen.on_answer() && listen.on_event());
    }
}
