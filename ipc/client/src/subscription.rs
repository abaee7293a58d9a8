//! Events of one connection, sorted by owner and topic.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use shoal_wire::envelope::Event;
use tokio::sync::mpsc;

/// Events a reader may be behind: as many as a kernel ring holds, so that a reader this slow reads again anyway.
const BEHIND: usize = 1024;

type Topic = (Option<String>, String);

struct Sink {
    events: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
}

/// The subscriptions of a connection.
#[derive(Default)]
pub(crate) struct Topics(Mutex<HashMap<Topic, Sink>>);

impl Topics {
    /// Opens the way for a topic before it is asked for, so that no event can come first.
    pub(crate) fn open(&self, channel: &str, owner: Option<&str>) -> Subscription {
        let (events, incoming) = mpsc::channel(BEHIND);
        let dropped = Arc::new(AtomicU64::new(0));
        let topic = (owner.map(str::to_owned), channel.to_owned());
        self.locked().insert(topic, Sink { events, dropped: Arc::clone(&dropped) });
        Subscription { incoming, dropped }
    }

    pub(crate) fn close(&self, channel: &str, owner: Option<&str>) {
        self.locked().remove(&(owner.map(str::to_owned), channel.to_owned()));
    }

    /// Ends every subscription: their readers see the end after what is queued.
    pub(crate) fn close_all(&self) {
        self.locked().clear();
    }

    pub(crate) fn deliver(&self, event: Event) {
        let topics = self.locked();
        let Some(sink) = topics.get(&(event.owner.clone(), event.channel.clone())) else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = sink.events.try_send(event) {
            sink.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<Topic, Sink>> {
        // A panic elsewhere cannot leave the map half changed: every change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of one topic, in order.
pub struct Subscription {
    incoming: mpsc::Receiver<Event>,
    dropped: Arc<AtomicU64>,
}

impl Subscription {
    /// The next event; `None` when the connection is lost or the subscription closed.
    pub async fn next(&mut self) -> Option<Event> {
        self.incoming.recv().await
    }

    /// Events that were dropped since the last call because the reader was too far behind; read the topic again from
    /// the last number that was seen.
    pub fn dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }
}

/// Result of `events.subscribe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Subscribed {
    /// Number of the next live event.
    pub next_seq: u64,
    /// Whether events after `since` were gone already.
    pub history_lost: bool,
}
