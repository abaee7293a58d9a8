//! `subscriptions/listen` of the 2026 era.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use shoal_wire::RpcError;
use shoal_wire::envelope::Event;
use tokio::sync::Notify;

use super::{Sink, URIS, listen as join};
use crate::call::{Call, Failure};
use crate::eras::SUBSCRIPTION_KEY;
use crate::line::Id;
use crate::server::notification;

/// What a stream has to say: URIs that changed since they were last announced.
#[derive(Default)]
struct Stream {
    state: Mutex<State>,
    more: Notify,
}

#[derive(Default)]
struct State {
    dirty: BTreeSet<usize>,
    ended: bool,
}

impl State {
    fn mark(&mut self, uri: usize) {
        self.dirty.insert(uri);
    }
}

impl Stream {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.more.notify_one();
    }

    /// The next URI to announce; `None` when the stream has ended.
    async fn next(&self) -> Option<usize> {
        loop {
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(uri) = state.dirty.pop_first() {
                    return Some(uri);
                }
                if state.ended {
                    return None;
                }
            }
            self.more.notified().await;
        }
    }
}

/// One URI of a stream.
struct Part {
    stream: Arc<Stream>,
    uri: usize,
}

impl Sink for Part {
    fn event(&self, _: &Event) {
        self.stream.change(|state| state.mark(self.uri));
    }

    fn lost(&self) {
        self.stream.change(|state| state.ended = true);
    }

    fn again(&self) {
        self.stream.change(|state| state.mark(self.uri));
    }
}

/// Answers `subscriptions/listen` when the stream ends: with the kernel connection, or with us. Until then it first
/// acknowledges, then announces. A client that cancels it hears nothing more.
pub(crate) async fn listen(call: &Call, id: &Id) -> Result<Map<String, Value>, Failure> {
    let uris = asked(call)?;
    let stream = Arc::new(Stream::default());
    let mut honored = Vec::new();
    let mut places = Vec::new();
    for uri in uris {
        let part = Arc::new(Part { stream: Arc::clone(&stream), uri: honored.len() });
        // Joined before the acknowledgement, so that nothing between it and the client's first read is missed.
        if let Some(place) = join(&call.server, &uri, part).await? {
            honored.push(uri);
            places.push(place);
        }
    }
    let meta = json!({ SUBSCRIPTION_KEY: id.value() });
    let acknowledged = json!({ "notifications": { "resourceSubscriptions": honored }, "_meta": meta });
    let mut frame = notification("notifications/subscriptions/acknowledged", &acknowledged);
    let ended = || Failure::Ours(RpcError::internal("the client is gone"));
    loop {
        call.server.out.send_through(frame).await.map_err(|_| ended())?;
        let changed = tokio::select! {
            changed = stream.next() => changed,
            () = call.server.closing() => None,
        };
        let Some(uri) = changed.and_then(|at| honored.get(at)) else { break };
        frame = notification("notifications/resources/updated", &json!({ "uri": uri, "_meta": meta }));
    }
    drop(places);
    Ok(Map::from_iter([("_meta".to_owned(), meta)]))
}

/// The URIs a client asks for, each once, at most as many as a stream holds.
fn asked(call: &Call) -> Result<Vec<String>, RpcError> {
    let Some(Value::Object(notifications)) = call.params.get("notifications") else {
        return Err(RpcError::mistyped("notifications", "an object"));
    };
    let param = "notifications.resourceSubscriptions";
    let listed = match notifications.get("resourceSubscriptions") {
        None | Some(Value::Null) => &Vec::new(),
        Some(Value::Array(uris)) => uris,
        Some(_) => return Err(RpcError::mistyped(param, "an array of strings")),
    };
    let mut uris: Vec<String> = Vec::new();
    for uri in listed {
        let uri = uri.as_str().ok_or_else(|| RpcError::mistyped(param, "an array of strings"))?;
        if uris.len() < URIS && !uris.iter().any(|known| known == uri) {
            uris.push(uri.to_owned());
        }
    }
    Ok(uris)
}
