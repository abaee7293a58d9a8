//! The loop: lines in, one task for each request, answers out.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use shoal_client::{Flags, Vars};
use shoal_wire::{Code, RpcError, envelope};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::ask::Asker;
use crate::call::{Call, Failure};
use crate::eras::{self, Cache, Era, legacy, modern};
use crate::kernel::Kernel;
use crate::line::{self, Id, Message, NotAMessage};
use crate::stdio::{self, Gone, Input, Output};
use crate::subscriptions::Hub;
use crate::{resources, subscriptions, tools};

/// Requests in work; more are answered "busy" so that `notifications/cancelled` is still read.
const IN_FLIGHT: usize = 256;
/// Listen streams open at a time. They last, so they are counted apart: calls go on however many there are.
const STREAMS: usize = 64;
/// How long answers to lines already read may take after the end of stdin.
const GRACE: Duration = Duration::from_millis(500);
/// How long the last frames may take to be written.
const FLUSH: Duration = Duration::from_millis(250);

/// Everything requests share.
pub(crate) struct Server {
    pub(crate) kernel: Kernel,
    pub(crate) hub: Hub,
    pub(crate) out: Output,
    pub(crate) asker: Asker,
    handshake: Mutex<Option<legacy::Version>>,
    in_flight: Mutex<HashMap<Id, InFlight>>,
    one_less: Notify,
    closing: watch::Sender<bool>,
}

struct InFlight {
    /// Set as soon as the task is spawned.
    task: Option<AbortHandle>,
    /// Whether it is a listen stream.
    listens: bool,
    /// The source it runs, for the note that it goes on after a cancel.
    runs: Option<String>,
}

/// Serves stdin and stdout until either ends.
pub(crate) async fn serve(flags: Flags, vars: Vars) {
    let (out, written) = Output::to(std::io::stdout());
    let lines = stdio::read_from(std::io::stdin());
    let server = Arc::new(Server {
        kernel: Kernel::new(flags, vars),
        hub: Hub::default(),
        out,
        asker: Asker::new(),
        handshake: Mutex::default(),
        in_flight: Mutex::default(),
        one_less: Notify::new(),
        closing: watch::Sender::new(false),
    });
    let mut written = written;
    tokio::select! {
        () = server.read_lines(lines) => {
            server.close().await;
            drop(server);
            // What cannot be written by now is for a client that does not read.
            drop(timeout(FLUSH, &mut written).await);
        }
        // Whatever became of the writer, there is nobody left to write to.
        _ = &mut written => {}
    }
}

impl Server {
    async fn read_lines(self: &Arc<Self>, mut lines: tokio::sync::mpsc::Receiver<Input>) {
        while let Some(input) = lines.recv().await {
            let outcome = match input {
                Input::Line(line) => self.on_line(&line).await,
                Input::TooLong => {
                    let message = format!("a message has at most {} bytes", shoal_wire::limits::FRAME_BYTES);
                    self.refuse(None, &RpcError::invalid_request(message)).await
                }
            };
            if outcome.is_err() || self.out.room().await.is_err() {
                return;
            }
        }
    }

    /// Ends open subscriptions with their result and gives calls in work a moment.
    async fn close(&self) {
        self.closing.send_replace(true);
        let idle = async {
            loop {
                let one_less = self.one_less.notified();
                if self.table().is_empty() {
                    return;
                }
                one_less.await;
            }
        };
        drop(timeout(GRACE, idle).await);
        for (_, flying) in self.table().drain() {
            if let Some(task) = flying.task {
                task.abort();
            }
        }
        self.hub.close();
    }

    /// Resolves when stdin has ended.
    pub(crate) async fn closing(&self) {
        let mut closing = self.closing.subscribe();
        // The sender lives in `self`, so waiting can only end with the value.
        drop(closing.wait_for(|closing| *closing).await);
    }

    async fn on_line(self: &Arc<Self>, bytes: &[u8]) -> Result<(), Gone> {
        match line::read(bytes) {
            Ok(Message { id: None, method, params }) => {
                if method.as_deref() == Some("notifications/cancelled") {
                    self.on_cancelled(&params.unwrap_or_default());
                }
                Ok(())
            }
            Ok(Message { id: Some(id), method, params }) => self.on_request(id, method, params).await,
            Err(NotAMessage::Ignored) => Ok(()),
            Err(NotAMessage::Invalid(message)) => self.refuse(None, &RpcError::invalid_request(message)).await,
            Err(NotAMessage::Unreadable(detail)) => {
                let error = RpcError::new(Code::ParseError, "parse error").with(json!({ "detail": detail }));
                self.refuse(None, &error).await
            }
        }
    }

    async fn on_request(
        self: &Arc<Self>,
        id: Id,
        method: Option<String>,
        params: Option<Map<String, Value>>,
    ) -> Result<(), Gone> {
        let Some(method) = method else {
            return self.refuse(Some(&id), &RpcError::invalid_request("`method` must be a string")).await;
        };
        if self.table().contains_key(&id) {
            let error = RpcError::invalid_request("a request with this `id` is still in work");
            return self.refuse(Some(&id), &error).await;
        }
        let Some(params) = params else {
            return self.refuse(Some(&id), &RpcError::mistyped("params", "an object")).await;
        };
        let seen = *self.handshake.lock().unwrap_or_else(PoisonError::into_inner);
        let era = match eras::decide(&method, &params, seen) {
            Ok(era) => era,
            Err(error) => return self.refuse(Some(&id), &error).await,
        };
        if let Some(outcome) = self.at_once(&method, &era, &params) {
            return self.answer(&id, &era, outcome).await;
        }
        if let Err(busy) = self.take_off(&id, &method, &params) {
            return self.refuse(Some(&id), &RpcError::new(Code::Internal, busy)).await;
        }
        self.spawn(id, method, Call { server: Arc::clone(self), era, params });
        Ok(())
    }

    /// Answers from constants, in the order requests arrive.
    fn at_once(&self, method: &str, era: &Era, params: &Map<String, Value>) -> Option<Result<Finished, Failure>> {
        let lists = ["tools/list", "resources/list", "resources/templates/list"];
        if lists.contains(&method) && params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
            let message = "no list here has a next page: leave out `cursor`";
            let error = RpcError::invalid("cursor", shoal_wire::error::Reason::Range, message);
            return Some(Err(Failure::Ours(error)));
        }
        let done = |result, cache| Some(Ok(Finished { result, cache }));
        match (method, era) {
            ("initialize", Era::Legacy(_)) => done(self.on_initialize(params), Cache::Unsaid),
            ("ping", Era::Legacy(_)) => done(Map::new(), Cache::Unsaid),
            ("server/discover", Era::Modern(_)) => done(modern::discover(), Cache::Fixed),
            ("tools/list", _) => done(tools::list(), Cache::Fixed),
            ("resources/templates/list", _) => done(resources::list_templates(), Cache::Fixed),
            _ => None,
        }
    }

    fn on_initialize(&self, params: &Map<String, Value>) -> Map<String, Value> {
        let version = legacy::Version::for_request(params.get("protocolVersion"));
        *self.handshake.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
        if let Some(Value::String(name)) = params.get("clientInfo").and_then(|info| info.get("name")) {
            self.kernel.name_client(name);
        }
        legacy::initialize(version)
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<Id, InFlight>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a request, unless there are too many of its kind.
    fn take_off(&self, id: &Id, method: &str, params: &Map<String, Value>) -> Result<(), String> {
        let listens = method == "subscriptions/listen";
        let mut table = self.table();
        let alike = table.values().filter(|flying| flying.listens == listens).count();
        match listens {
            true if alike >= STREAMS => {
                return Err(format!("subscription limit reached: at most {STREAMS} listen streams; cancel one"));
            }
            false if alike >= IN_FLIGHT => {
                return Err(format!("busy: {IN_FLIGHT} requests are in work; call again when one is answered"));
            }
            _ => {}
        }
        if let Entry::Vacant(place) = table.entry(id.clone()) {
            let runs = (method == "tools/call").then(|| tools::source_that_runs(params)).flatten();
            place.insert(InFlight { task: None, listens, runs });
        }
        Ok(())
    }

    fn spawn(self: &Arc<Self>, id: Id, method: String, call: Call) {
        let server = Arc::clone(self);
        let key = id.clone();
        let task = tokio::spawn(async move {
            if let Era::Modern(modern::Client { name: Some(name), .. }) = &call.era {
                server.kernel.name_client(name);
            }
            let era = call.era.clone();
            let outcome = dispatch(&method, &id, call).await;
            // Stdout is gone only when the process ends.
            drop(server.answer(&id, &era, outcome).await);
            server.table().remove(&id);
            server.one_less.notify_waiters();
        });
        if let Some(flying) = self.table().get_mut(&key) {
            flying.task = Some(task.abort_handle());
        }
    }

    /// "Stop waiting": the request gets no answer. What it runs goes on in the kernel, and the next result says so.
    fn on_cancelled(self: &Arc<Self>, params: &Map<String, Value>) {
        let Some(id) = params.get("requestId").and_then(Id::of) else { return };
        let Some(flying) = self.table().remove(&id) else { return };
        if let Some(task) = flying.task {
            task.abort();
        }
        if let Some(src) = flying.runs {
            let server = Arc::clone(self);
            tokio::spawn(async move { tools::note_that_it_goes_on(&server.kernel, &src).await });
        }
    }

    async fn answer(&self, id: &Id, era: &Era, outcome: Result<Finished, Failure>) -> Result<(), Gone> {
        match outcome {
            Ok(Finished { result, cache }) => {
                let result = Value::Object(eras::finish(era, result, cache));
                self.out.send(envelope::success_text(&raw(id), &result.to_string())).await
            }
            Err(Failure::Ours(error)) => self.refuse(Some(id), &error).await,
            Err(Failure::Kernel(error)) => self.refuse(Some(id), &resources::kernel_error(&error)).await,
        }
    }

    async fn refuse(&self, id: Option<&Id>, error: &RpcError) -> Result<(), Gone> {
        let id = id.map(raw);
        match envelope::failure(id.as_deref(), error) {
            Ok(frame) => self.out.send(frame).await,
            // An error of ours holds strings and numbers only, which always serialise.
            Err(_) => Ok(()),
        }
    }
}

fn raw(id: &Id) -> Box<RawValue> {
    // The id was read from JSON text, so its text is JSON.
    RawValue::from_string(id.text().to_owned()).unwrap_or_default()
}

/// A result before its era has the last word.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) result: Map<String, Value>,
    pub(crate) cache: Cache,
}

async fn dispatch(method: &str, id: &Id, call: Call) -> Result<Finished, Failure> {
    let fresh = |result| Finished { result, cache: Cache::Fresh };
    let unsaid = |result| Finished { result, cache: Cache::Unsaid };
    match (method, call.era.is_modern()) {
        ("tools/call", _) => tools::call(&call).await.map(unsaid),
        ("resources/list", _) => Ok(fresh(resources::list(&call.server.kernel).await)),
        ("resources/read", _) => resources::read(&call).await.map(fresh),
        ("resources/subscribe", false) => subscriptions::legacy::subscribe(&call).await.map(unsaid),
        ("resources/unsubscribe", false) => subscriptions::legacy::unsubscribe(&call).await.map(unsaid),
        ("subscriptions/listen", true) => subscriptions::modern::listen(&call, id).await.map(unsaid),
        _ => Err(Failure::Ours(eras::no_such_method(method))),
    }
}

/// A notification frame, LF included.
pub(crate) fn notification(method: &str, params: &Value) -> Vec<u8> {
    let mut frame = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string().into_bytes();
    frame.push(b'\n');
    frame
}
