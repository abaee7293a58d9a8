//! `resources/subscribe` and `resources/unsubscribe` of the 2025 era.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use shoal_wire::RpcError;
use shoal_wire::envelope::Event;
use shoal_wire::error::Reason;
use shoal_wire::limits::URI_BYTES;
use shoal_wire::text;
use shoal_wire::uri::SCHEME;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::{Place, Sink, URIS, listen};
use crate::call::{Call, Failure};
use crate::server::{Server, notification};

/// Updates a URI queues before it drops.
const QUEUED: usize = 256;

/// The subscribed URIs.
#[derive(Default)]
pub(crate) struct Subscribed(Mutex<HashMap<String, Entry>>);

struct Entry {
    sender: AbortHandle,
    /// Leaves the channel with the entry.
    _place: Place,
}

impl Subscribed {
    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops every delivery and leaves every channel.
    pub(super) fn close(&self) {
        let entries = std::mem::take(&mut *self.locked());
        for entry in entries.values() {
            entry.sender.abort();
        }
    }
}

/// Answers `resources/subscribe`: idempotent per URI, live from the answer on.
///
/// A URI of another scheme names nothing here, and MCP lets a client subscribe to what does not exist (the official
/// conformance suite does): it is accepted and never updated. One of ours that cannot be watched is refused, since its
/// reader would wait in vain.
pub(crate) async fn subscribe(call: &Call) -> Result<Map<String, Value>, Failure> {
    let uri = call.text("uri")?;
    if !uri.starts_with(SCHEME) {
        return if has_scheme(uri) { Ok(Map::new()) } else { Err(refused(uri, "a URI begins with its scheme")) };
    }
    let subscribed = &call.server.hub.legacy;
    if subscribed.locked().contains_key(uri) {
        return Ok(Map::new());
    }
    if subscribed.locked().len() >= URIS {
        return Err(refused(uri, &format!("at most {URIS} URIs can be subscribed")));
    }
    let queue = Arc::new(Queue::default());
    let Some(place) = listen(&call.server, uri, Arc::clone(&queue) as Arc<dyn Sink>).await? else {
        return Err(refused(uri, "this URI cannot be subscribed"));
    };
    if subscribed.locked().len() >= URIS {
        // Others were faster meanwhile.
        return Err(refused(uri, &format!("at most {URIS} URIs can be subscribed")));
    }
    let sender = tokio::spawn(deliver(Arc::clone(&call.server), uri.to_owned(), queue)).abort_handle();
    let before = subscribed.locked().insert(uri.to_owned(), Entry { sender, _place: place });
    if let Some(twin) = before {
        // Two requests for one URI crossed; the later one delivers.
        twin.sender.abort();
    }
    Ok(Map::new())
}

fn refused(uri: &str, message: &str) -> Failure {
    let shown = text::cut(uri, URI_BYTES);
    Failure::Ours(RpcError::invalid("uri", Reason::Range, message).and("uri", shown))
}

fn has_scheme(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or("", |(scheme, _)| scheme);
    let rest = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(rest)
}

/// Answers `resources/unsubscribe`: nothing is delivered after the answer.
pub(crate) async fn unsubscribe(call: &Call) -> Result<Map<String, Value>, Failure> {
    let entry = call.server.hub.legacy.locked().remove(call.text("uri")?);
    if let Some(entry) = entry {
        entry.sender.abort();
    }
    Ok(Map::new())
}

/// Updates of one URI on their way to the client.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    more: Notify,
}

#[derive(Default)]
struct Waiting {
    updates: VecDeque<(Option<u64>, Value)>,
    dropped: u64,
    latest: u64,
}

impl Queue {
    fn push(&self, seq: Option<u64>, payload: Value) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.updates.len() < QUEUED && waiting.dropped == 0 {
            waiting.updates.push_back((seq, payload));
        } else {
            waiting.dropped += 1;
            waiting.latest = seq.unwrap_or(waiting.latest);
        }
        drop(waiting);
        self.more.notify_one();
    }

    fn pop(&self) -> Option<(Option<u64>, Value)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(update) = waiting.updates.pop_front() {
            return Some(update);
        }
        let (dropped, latest) = (std::mem::take(&mut waiting.dropped), waiting.latest);
        (dropped > 0).then(|| (Some(latest), json!({ "dropped": dropped, "latest_seq": latest })))
    }
}

impl Sink for Queue {
    fn event(&self, event: &Event) {
        self.push(Some(event.seq), event.payload.clone());
    }

    /// The subscription is made again; there is nothing to tell before.
    fn lost(&self) {}

    fn again(&self) {
        self.push(None, Value::Null);
    }
}

async fn deliver(server: Arc<Server>, uri: String, queue: Arc<Queue>) {
    loop {
        while let Some((seq, payload)) = queue.pop() {
            let mut params = json!({ "uri": uri });
            if let Some(seq) = seq {
                params["seq"] = json!(seq);
                params["payload"] = payload;
            }
            let frame = notification("notifications/resources/updated", &params);
            if server.out.send_through(frame).await.is_err() {
                return;
            }
        }
        queue.more.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_summed_up_after_what_was_kept() {
        let queue = Queue::default();
        for seq in 0..300 {
            queue.push(Some(seq), json!(seq));
        }
        let mut seen = Vec::new();
        while let Some(update) = queue.pop() {
            seen.push(update);
        }
        assert_eq!(seen.len(), QUEUED + 1);
        assert_eq!(seen[QUEUED], (Some(299), json!({"dropped": 44, "latest_seq": 299})));
        queue.push(Some(300), json!(1));
        assert_eq!(queue.pop(), Some((Some(300), json!(1))));
    }
}
