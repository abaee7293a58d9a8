//! One open socket: requests pipelined and matched by id, events sorted by topic.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::value::RawValue;
use shoal_wire::envelope::Incoming;
use shoal_wire::frame::{Fed, FrameReader};
use shoal_wire::{Method, Request, RpcError, limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot, watch};

use crate::attach::{Attach, Attached};
use crate::error::{CallError, ConnectError};
use crate::subscription::{Subscribed, Subscription, Topics};

type Answer = Result<Box<RawValue>, CallError>;

/// Frames waiting to be written: enough to keep the socket busy, few enough that callers feel a kernel that does not
/// read.
const QUEUED_FRAMES: usize = 64;
/// Bytes asked for in one read.
const READ_BYTES: usize = 64 * 1024;

/// A connection to a kernel. Clones share it; it closes when the last one is dropped.
#[derive(Clone)]
pub struct Connection {
    outgoing: mpsc::Sender<Vec<u8>>,
    shared: Arc<Shared>,
}

struct Shared {
    next_id: AtomicU64,
    waiting: Mutex<Waiting>,
    topics: Topics,
    ended: watch::Sender<bool>,
}

#[derive(Default)]
struct Waiting {
    closed: bool,
    answers: HashMap<u64, oneshot::Sender<Answer>>,
}

impl Connection {
    /// Connects to the kernel that listens on `path`, and to nobody else's.
    pub async fn open(path: &Path) -> Result<Connection, ConnectError> {
        let failed = |error| ConnectError::Socket { path: path.to_owned(), error };
        let stream = UnixStream::connect(path).await.map_err(failed)?;
        let uid = stream.peer_cred().map_err(failed)?.uid();
        if uid != rustix::process::geteuid().as_raw() {
            return Err(ConnectError::Foreign { path: path.to_owned(), uid });
        }
        Ok(Connection::over(stream))
    }

    /// Speaks over a stream that is connected already.
    pub fn over(stream: UnixStream) -> Connection {
        let (reader, writer) = stream.into_split();
        let (outgoing, frames) = mpsc::channel(QUEUED_FRAMES);
        let shared = Arc::new(Shared {
            next_id: AtomicU64::new(1),
            waiting: Mutex::default(),
            topics: Topics::default(),
            ended: watch::Sender::new(false),
        });
        tokio::spawn(write(writer, frames));
        tokio::spawn(read(reader, Arc::clone(&shared)));
        Connection { outgoing, shared }
    }

    /// Calls a method; the result is its JSON text.
    pub async fn call(&self, method: Method, params: &impl Serialize) -> Answer {
        self.call_named(method.name(), params).await
    }

    /// [`Connection::call`] with a method name this build may not know.
    pub async fn call_named(&self, method: &str, params: &impl Serialize) -> Answer {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let frame = Request::encode(id, method, params).map_err(|error| CallError::Decode(error.to_string()))?;
        if frame.len() > limits::FRAME_BYTES {
            return Err(CallError::TooLarge { bytes: frame.len() });
        }
        let (answer, answered) = oneshot::channel();
        self.shared.wait_for(id, answer)?;
        let forget = Forget { shared: &self.shared, id };
        self.outgoing.send(frame).await.map_err(|_| CallError::Lost)?;
        let outcome = answered.await.unwrap_or(Err(CallError::Lost));
        drop(forget);
        outcome
    }

    /// Attaches, replacing an earlier attachment and its subscriptions.
    pub async fn attach(&self, attach: &Attach) -> Result<Attached, CallError> {
        let text = self.call(Method::SessionAttach, attach).await?;
        Attached::decode(text.get()).map_err(|error| CallError::Decode(error.to_string()))
    }

    /// Subscribes to a topic: retained events after `since`, if given, then live ones.
    pub async fn subscribe(
        &self,
        channel: &str,
        since: Option<u64>,
        owner: Option<&str>,
    ) -> Result<(Subscribed, Subscription), CallError> {
        #[derive(Serialize)]
        struct Params<'p> {
            channel: &'p str,
            since: Option<u64>,
            owner: Option<&'p str>,
        }
        let subscription = self.shared.topics.open(channel, owner);
        match self.call(Method::EventsSubscribe, &Params { channel, since, owner }).await {
            Ok(text) => {
                let subscribed =
                    serde_json::from_str(text.get()).map_err(|error| CallError::Decode(error.to_string()))?;
                Ok((subscribed, subscription))
            }
            Err(error) => {
                self.shared.topics.close(channel, owner);
                Err(error)
            }
        }
    }

    /// Ends a subscription; none of its events is delivered from here on.
    pub async fn unsubscribe(&self, channel: &str, owner: Option<&str>) -> Result<(), CallError> {
        let params = match owner {
            Some(owner) => serde_json::json!({ "channel": channel, "owner": owner }),
            None => serde_json::json!({ "channel": channel }),
        };
        // Closed before the call: a subscription made while it is under way is another one.
        self.shared.topics.close(channel, owner);
        self.call(Method::EventsUnsubscribe, &params).await?;
        Ok(())
    }

    /// Whether the connection is lost.
    pub fn is_lost(&self) -> bool {
        *self.shared.ended.borrow()
    }

    /// Resolves when the connection is lost.
    pub async fn lost(&self) {
        let mut ended = self.shared.ended.subscribe();
        // The sender lives in `shared`, so waiting can only end with the value.
        drop(ended.wait_for(|ended| *ended).await);
    }
}

/// Forgets a call whose caller is gone, so that its answer is dropped on arrival.
struct Forget<'c> {
    shared: &'c Shared,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.shared.locked().answers.remove(&self.id);
    }
}

impl Shared {
    fn locked(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, id: u64, answer: oneshot::Sender<Answer>) -> Result<(), CallError> {
        let mut waiting = self.locked();
        if waiting.closed {
            return Err(CallError::Lost);
        }
        waiting.answers.insert(id, answer);
        Ok(())
    }

    fn on_frame(&self, frame: &[u8]) -> Result<(), String> {
        match Incoming::decode(frame)? {
            Incoming::Answer(Some(id), outcome) => {
                if let Some(answer) = self.locked().answers.remove(&id) {
                    // A caller that gave up between the lookup and now does not want it.
                    drop(answer.send(outcome.map_err(CallError::Kernel)));
                }
            }
            Incoming::Answer(None, Err(error)) => self.end(Some(&error)),
            Incoming::Answer(None, Ok(_)) => return Err("a result without an id".to_owned()),
            Incoming::Event(event) => self.topics.deliver(event),
            Incoming::Other => {}
        }
        Ok(())
    }

    /// Ends every call in flight: with the kernel's own word if it left one, else as lost.
    fn end(&self, error: Option<&RpcError>) {
        let mut waiting = self.locked();
        waiting.closed = true;
        let answers = std::mem::take(&mut waiting.answers);
        drop(waiting);
        for answer in answers.into_values() {
            let outcome = error.map_or(CallError::Lost, |error| CallError::Kernel(error.clone()));
            drop(answer.send(Err(outcome)));
        }
        self.topics.close_all();
        self.ended.send_replace(true);
    }
}

async fn write(mut writer: OwnedWriteHalf, mut frames: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        if writer.write_all(&frame).await.is_err() {
            // The reader sees the same end and tells every caller.
            return;
        }
    }
}

async fn read(mut reader: OwnedReadHalf, shared: Arc<Shared>) {
    let mut cutter = FrameReader::new(limits::FRAME_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    'open: while let Ok(count) = reader.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        let mut input = &buffer[..count];
        loop {
            match cutter.feed(&mut input) {
                Fed::NeedMore => break,
                Fed::Frame(frame) if shared.on_frame(&frame).is_ok() => {}
                // A peer that breaks the protocol is as good as gone.
                Fed::Frame(_) | Fed::TooLong => break 'open,
            }
        }
    }
    shared.end(None);
}
