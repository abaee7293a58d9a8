//! `stream.pull` and `stream.close`: items of a result that is a stream, fetched once.
//!
//! Each stream that a client fetches has a thread that pulls ahead a little, so that a slow source does not hold up an
//! answer and a fast one fills it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value as Json, json};
use shoal_eval::cancel::{CancelReason, CancelToken};
use shoal_eval::host::{Run, Silent, Unmetered};
use shoal_eval::pull::Pulled;
use shoal_eval::stack;
use shoal_value::{ErrorValue, StreamSource, Value, wire};
use shoal_wire::elide::Budgets;
use shoal_wire::{Ref, RpcError};

use crate::clock;
use crate::finish;
use crate::session::Session;
use crate::transcript::Entry;

/// Items pulled ahead.
const AHEAD: usize = 256;
/// Encoded bytes of one answer.
const MAX_BYTES: usize = 64 * 1024;
/// After the first item, items that come this soon belong to the same answer.
const GRACE: Duration = Duration::from_millis(2);
/// What a wire form holds that refers to the rest of it: quotes inside of texts are escaped.
const ELIDED: &str = r#""$":"ref""#;

#[derive(Default)]
struct Queue {
    items: VecDeque<Value>,
    pulled: u64,
    end: Option<Result<(), ErrorValue>>,
}

/// A stream that is being fetched.
pub(crate) struct Fetched {
    of: Arc<dyn StreamSource>,
    queue: Mutex<Queue>,
    changed: Condvar,
    cancel: CancelToken,
}

impl Fetched {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pulls until the end, a few items ahead of who fetches.
    fn pull_ahead(&self, mut pulled: Pulled) {
        loop {
            let mut queue = self.lock();
            while queue.items.len() >= AHEAD && !self.cancel.is_set() {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            drop(queue);
            let item = if self.cancel.is_set() { Ok(None) } else { pulled.next_item() };
            let mut queue = self.lock();
            match item {
                Ok(Some(item)) => queue.items.push_back(item),
                Ok(None) => queue.end = Some(Ok(())),
                Err(error) => queue.end = Some(Err(error)),
            }
            let is_over = queue.end.is_some();
            drop(queue);
            self.changed.notify_all();
            if is_over {
                return;
            }
        }
    }

    /// Ends it; what was pulled ahead is dropped.
    fn close(&self) -> u64 {
        self.cancel.cancel(CancelReason::Cancelled);
        let mut queue = self.lock();
        queue.items.clear();
        queue.end = Some(Ok(()));
        self.changed.notify_all();
        queue.pulled
    }
}

/// `stream.pull`.
pub(super) fn pull(session: &Arc<Session>, params: &Json) -> Result<Json, RpcError> {
    let name = super::text(params, "ref")?;
    let fetched = fetched(session, params)?;
    let reference = Ref::parse(name).ok_or_else(|| RpcError::unknown_ref(name, "unknown", None))?;
    let max = params["max"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(64).clamp(1, AHEAD);
    let wait = Duration::from_millis(params["wait_ms"].as_u64().unwrap_or(1000).min(30_000));
    let due = clock::now() + wait;
    let mut queue = fetched.lock();
    let mut grace = None;
    while queue.items.len() < max && queue.end.is_none() {
        let now = clock::now();
        if !queue.items.is_empty() {
            grace.get_or_insert(now + GRACE);
        }
        let rest = grace.unwrap_or(due).saturating_duration_since(now);
        if rest.is_zero() {
            break;
        }
        queue = fetched.changed.wait_timeout(queue, rest).unwrap_or_else(PoisonError::into_inner).0;
    }
    let first = queue.pulled;
    let mut items: Vec<Json> = Vec::new();
    let mut bytes: usize = 0;
    while items.len() < max {
        let Some(item) = queue.items.front() else { break };
        let mut text = wire::elide(item, &Budgets::DEFAULT, finish::origin(&reference));
        if !items.is_empty() && bytes.saturating_add(text.len()) > MAX_BYTES {
            break;
        }
        if text.contains(ELIDED) {
            text = as_result(session, item.clone());
        }
        bytes = bytes.saturating_add(text.len());
        items.push(serde_json::from_str(&text).map_err(|e| RpcError::internal(e.to_string()))?);
        queue.items.pop_front();
        queue.pulled += 1;
    }
    let done = queue.items.is_empty() && queue.end.is_some();
    let timed_out = items.is_empty() && !done;
    let mut answer = json!({"ref": name, "first_seq": first, "items": items, "done": done, "timed_out": timed_out});
    if let (true, Some(Err(error))) = (done, &queue.end) {
        answer["error"] = json!({"code": &*error.code, "msg": &*error.msg});
        // Told once: from here on it is a stream that ended.
        queue.end = Some(Ok(()));
    }
    drop(queue);
    fetched.changed.notify_all();
    Ok(answer)
}

/// `stream.close`.
pub(super) fn close(session: &Arc<Session>, params: &Json) -> Result<Json, RpcError> {
    let name = super::text(params, "ref")?;
    let fetched = fetched(session, params)?;
    Ok(json!({"ref": name, "closed": true, "pulled": fetched.close()}))
}

/// An item over the budget becomes a result of its own, since its stream does not give it a second time; its wire form
/// refers to that.
fn as_result(session: &Session, item: Value) -> String {
    let entry = Entry::item(item.clone());
    let numbering = session.lock();
    let n = session.results.push(entry);
    session.broker.numbered(n);
    drop(numbering);
    wire::elide(&item, &Budgets::DEFAULT, finish::origin(&Ref::Out(n)))
}

/// The stream that is fetched under this reference; it is taken at the first fetch.
fn fetched(session: &Arc<Session>, params: &Json) -> Result<Arc<Fetched>, RpcError> {
    let (name, path) = (super::text(params, "ref")?, params["path"].as_str());
    let value = super::value_get::named(session, name, path)?;
    let bad = |reason: &str, text: String| RpcError::bad_path(name, path, reason, text);
    let Value::Stream(of) = value else {
        return Err(bad("not_a_stream", format!("{} is not a stream", value.type_name())));
    };
    let mut open = session.streams.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = open.iter().find(|fetched| shoal_value::handle::same(&fetched.of, &of)) {
        return Ok(Arc::clone(known));
    }
    let cancel = CancelToken::new();
    let run = Run { id: 0, cancel: cancel.clone(), meter: Arc::new(Unmetered), sink: Arc::new(Silent) };
    let pulled = session.evaluators.pull(&of, &session.snapshot(), run);
    let pulled = pulled.map_err(|error| bad("stream_consumed", error.msg.to_string()))?;
    let fetched = Arc::new(Fetched { of, queue: Mutex::default(), changed: Condvar::new(), cancel });
    let puller = Arc::clone(&fetched);
    stack::spawn_evaluator("stream", move || puller.pull_ahead(pulled))
        .map_err(|e| RpcError::internal(e.to_string()))?;
    open.push(Arc::clone(&fetched));
    Ok(fetched)
}
