//! Who hears of what: one kernel subscription for each channel, however many URIs need it.
//!
//! A channel's forwarder subscribes before anybody is told that it does, hands each event to the listeners it concerns,
//! and subscribes again from where it was after the kernel connection is lost. It ends when its last listener goes.

pub(crate) mod legacy;
pub(crate) mod modern;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shoal_client::{Connection, Subscription};
use shoal_resources::topic::{self, Wants};
use shoal_wire::RpcError;
use shoal_wire::envelope::Event;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::call::Failure;
use crate::kernel;
use crate::server::Server;

/// URIs that can be subscribed at a time, per listen stream and for all of the 2025 era.
const URIS: usize = 64;
/// Pauses between attempts to subscribe again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// Takes what a listener is told.
pub(crate) trait Sink: Send + Sync {
    /// An event that concerns the URI.
    fn event(&self, event: &Event);
    /// The kernel connection was lost.
    fn lost(&self);
    /// The channel is subscribed again; what happened meanwhile may have been missed.
    fn again(&self);
}

/// All subscriptions of the process.
#[derive(Default)]
pub(crate) struct Hub {
    topics: Mutex<Topics>,
    pub(super) legacy: legacy::Subscribed,
}

#[derive(Default)]
struct Topics {
    next: u64,
    open: HashMap<String, Topic>,
}

struct Topic {
    listeners: HashMap<u64, Listener>,
    ready: watch::Receiver<Option<Result<(), Failure>>>,
    /// Rung when a listener leaves.
    left: Arc<Notify>,
    forwarder: Option<AbortHandle>,
}

struct Listener {
    wants: Wants,
    sink: Arc<dyn Sink>,
}

/// The place of one listener; it leaves when this is dropped.
pub(crate) struct Place {
    server: Arc<Server>,
    channel: String,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut topics = self.server.hub.topics();
        if let Some(topic) = topics.open.get_mut(&self.channel) {
            topic.listeners.remove(&self.number);
            topic.left.notify_one();
        }
    }
}

impl Hub {
    fn topics(&self) -> std::sync::MutexGuard<'_, Topics> {
        // Changes are single calls, so a panic elsewhere leaves the table whole.
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends every forwarder.
    pub(crate) fn close(&self) {
        self.legacy.close();
        for topic in self.topics().open.values() {
            if let Some(forwarder) = &topic.forwarder {
                forwarder.abort();
            }
        }
    }

    fn deliver(&self, channel: &str, event: &Event) {
        self.each(channel, |listener| {
            if listener.wants.event(event) {
                listener.sink.event(event);
            }
        });
    }

    fn each(&self, channel: &str, tell: impl Fn(&Listener)) {
        if let Some(topic) = self.topics().open.get(channel) {
            topic.listeners.values().for_each(tell);
        }
    }

    /// Removes a channel nobody listens to any more.
    fn retire(&self, channel: &str) -> bool {
        let mut topics = self.topics();
        let empty = topics.open.get(channel).is_some_and(|topic| topic.listeners.is_empty());
        if empty {
            topics.open.remove(channel);
        }
        empty
    }
}

/// Listens to what changes under `uri`; returns once the channel behind it is subscribed. `None` when the URI cannot
/// be watched.
pub(crate) async fn listen(server: &Arc<Server>, uri: &str, sink: Arc<dyn Sink>) -> Result<Option<Place>, Failure> {
    let Some((channel, wants)) = topic::of(uri) else { return Ok(None) };
    let (place, mut ready) = join(server, channel, Listener { wants, sink });
    // The sender lives in the forwarder; were it gone, the channel would be too.
    let outcome = ready.wait_for(Option::is_some).await.ok().and_then(|ready| ready.clone());
    match outcome {
        Some(Ok(())) => Ok(Some(place)),
        Some(Err(failure)) => Err(failure),
        None => Err(Failure::Ours(RpcError::internal("the subscription ended while it was made"))),
    }
}

type Ready = watch::Receiver<Option<Result<(), Failure>>>;

fn join(server: &Arc<Server>, channel: String, listener: Listener) -> (Place, Ready) {
    let mut topics = server.hub.topics();
    topics.next += 1;
    let number = topics.next;
    let topic = topics.open.entry(channel.clone()).or_insert_with(|| open(server, &channel));
    topic.listeners.insert(number, listener);
    let ready = topic.ready.clone();
    drop(topics);
    (Place { server: Arc::clone(server), channel, number }, ready)
}

fn open(server: &Arc<Server>, channel: &str) -> Topic {
    let (tell, ready) = watch::channel(None);
    let left = Arc::new(Notify::new());
    let forwarder = Forwarder { server: Arc::clone(server), channel: channel.to_owned(), left: Arc::clone(&left) };
    let task = tokio::spawn(forwarder.run(tell));
    Topic { listeners: HashMap::new(), ready, left, forwarder: Some(task.abort_handle()) }
}

struct Forwarder {
    server: Arc<Server>,
    channel: String,
    left: Arc<Notify>,
}

impl Forwarder {
    async fn run(self, ready: watch::Sender<Option<Result<(), Failure>>>) {
        let mut since = None;
        let mut pause = FIRST_PAUSE;
        loop {
            // The first time a request waits for it. Later nobody does, and a kernel that was stopped is left alone.
            let renews = ready.borrow().is_some();
            let connection = if renews {
                self.server.kernel.attached_if_running().await.ok_or_else(kernel::lost)
            } else {
                self.server.kernel.attached().await.map(|(connection, _)| connection)
            };
            let subscribed = match connection {
                Ok(connection) => self.subscribe(connection, since).await,
                Err(failure) => Err(failure),
            };
            match subscribed {
                Ok((connection, next, events)) => {
                    pause = FIRST_PAUSE;
                    if ready.borrow().is_some() {
                        self.server.hub.each(&self.channel, |listener| listener.sink.again());
                    }
                    ready.send_replace(Some(Ok(())));
                    since = since.or(next.checked_sub(1));
                    if self.forward(&connection, events, &mut since).await.is_break() {
                        return;
                    }
                    self.server.hub.each(&self.channel, |listener| listener.sink.lost());
                }
                Err(failure) if ready.borrow().is_none() => {
                    self.server.hub.topics().open.remove(&self.channel);
                    ready.send_replace(Some(Err(failure)));
                    return;
                }
                Err(_) => {}
            }
            if self.server.hub.retire(&self.channel) {
                return;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn subscribe(
        &self,
        connection: Connection,
        since: Option<u64>,
    ) -> Result<(Connection, u64, Subscription), Failure> {
        let (subscribed, events) = connection.subscribe(&self.channel, since, None).await.map_err(kernel::failure)?;
        Ok((connection, subscribed.next_seq, events))
    }

    /// Forwards until the connection is lost, or breaks off when nobody listens any more.
    async fn forward(
        &self,
        connection: &Connection,
        mut events: Subscription,
        since: &mut Option<u64>,
    ) -> std::ops::ControlFlow<()> {
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => {
                        // Delivery is at least once; what was forwarded before is not forwarded again.
                        if since.is_none_or(|last| event.seq > last) {
                            *since = Some(event.seq);
                            self.server.hub.deliver(&self.channel, &event);
                        }
                        if events.dropped() > 0 {
                            self.server.hub.each(&self.channel, |listener| listener.sink.again());
                        }
                    }
                    None => return std::ops::ControlFlow::Continue(()),
                },
                () = self.left.notified() => {
                    if self.server.hub.retire(&self.channel) {
                        // Sent before anybody can open the channel anew; a lost connection has ended it anyway.
                        drop(connection.unsubscribe(&self.channel, None).await);
                        return std::ops::ControlFlow::Break(());
                    }
                }
            }
        }
    }
}
