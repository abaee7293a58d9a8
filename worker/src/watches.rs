//! The watches of a session: standing interests in resources, each on a thread of its own beside the executions.
//!
//! `mcp/watch` says what a watch does; here are its clock, its servers and its place in the session. The broker counts
//! watches, remembers the persistent ones and numbers their notices.

mod dialog;
mod driver;
mod filter;
mod filter_host;
mod inbox;
mod launch;
mod log;
mod port;
mod restore;
mod servers;
mod source;

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value as Json, json};
use shoal_eval::stack;
use shoal_proto::broker_worker::UpMethod;
use shoal_watch::filter::sample;
use shoal_watch::limits::{ACK_MS, PROBE_MS, READ_MS, WATCHES};
use shoal_watch::progress::Progress;
use shoal_watch::{Shape, Spec, State};
use shoal_wire::RpcError;
use shoal_wire::error::Reason;

use crate::session::Session;
use driver::{Began, Driver};
use filter::ShoalFilter;
use inbox::Inbox;
pub(crate) use restore::restore;
use servers::{Remote, Servers};
use source::{Own, Source};

/// URIs of the session's own resources.
const OWN_SCHEME: &str = "shoal://";
/// A watch has begun or failed by then: its server is started, acknowledges and is read.
const BEGUN_WITHIN: Duration = Duration::from_millis(2 * PROBE_MS + ACK_MS + 2 * READ_MS);

/// Who starts or stops a watch, and so whether the broker has to be told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Starter {
    /// A client, by way of the broker, which knows.
    Client,
    /// The language.
    Language,
    /// The worker, from what the broker remembers.
    Restore,
}

/// A watch as others see it.
struct Running {
    spec: Spec,
    inbox: Arc<Inbox>,
    standing: Mutex<(Json, State)>,
}

impl Running {
    fn set_record(&self, record: Json, state: State) {
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = (record, state);
    }

    fn standing(&self) -> (Json, State) {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The watches of a session.
#[derive(Default)]
pub(crate) struct Watches {
    running: Mutex<BTreeMap<String, Arc<Running>>>,
    /// Stored watches that failed for now; their records.
    unrestored: Mutex<BTreeMap<String, Json>>,
    /// Who listens to which channel. Held while the broker is told, so that it is told in order.
    listeners: Mutex<HashMap<String, Vec<Arc<Inbox>>>>,
    /// Configured servers.
    pub(crate) servers: Servers,
}

/// Starts a watch and waits until it has its baseline.
pub(crate) fn start(session: &Arc<Session>, spec: Spec, starter: Starter) -> Result<Shape, RpcError> {
    let watches = &session.watches;
    let filter = watches.check(session, &spec)?;
    let source = source_of(session, &spec)?;
    let filter = filter.map(|filter| try_on_sample(filter, &*source, &spec)).transpose()?;
    let running = watches.enter(&spec)?;
    let (begun, taken) = sync_channel(1);
    let driver = Driver::new(spec.clone(), filter, source, running.clone(), Arc::downgrade(session), begun);
    let thread = stack::spawn_evaluator("watch", move || driver.run());
    let began: Began = match thread {
        Ok(_) => {
            taken.recv_timeout(BEGUN_WITHIN).unwrap_or_else(|_| Err(RpcError::internal("the watch did not begin")))
        }
        Err(error) => Err(RpcError::internal(format!("no thread for the watch: {error}"))),
    };
    let began = began.and_then(|shape| {
        if starter == Starter::Language {
            session.broker.request(UpMethod::Watch, &json!({"action": "started", "spec": spec_json(&spec)}))?;
        }
        Ok(shape)
    });
    match began {
        Ok(shape) => {
            watches.unrestored().remove(&spec.name);
            log::event(
                session,
                "watch.started",
                &spec.name,
                json!({"uri": spec.uri, "shape": shape.word(), "lang": spec.lang}),
            );
            Ok(shape)
        }
        Err(error) => {
            running.inbox.stop();
            watches.running().retain(|_, other| !Arc::ptr_eq(other, &running));
            Err(error)
        }
    }
}

/// Stops a watch: whether it existed.
pub(crate) fn stop(session: &Session, name: &str, starter: Starter) -> Result<bool, RpcError> {
    let watches = &session.watches;
    let running = watches.running().remove(name);
    let unrestored = watches.unrestored().remove(name).is_some();
    let existed = running.is_some() || unrestored;
    if let Some(running) = running {
        running.inbox.stop();
        log::event(session, "watch.stopped", name, json!({}));
    }
    if existed && starter == Starter::Language {
        session.broker.request(UpMethod::Watch, &json!({"action": "stopped", "name": name}))?;
    }
    Ok(existed)
}

fn source_of(session: &Arc<Session>, spec: &Spec) -> Result<Arc<dyn Source>, RpcError> {
    if spec.uri.starts_with(OWN_SCHEME) {
        return Ok(Arc::new(Own::new(Arc::downgrade(session), &spec.name, &spec.uri)?));
    }
    Ok(Arc::new(Remote::new(session, &spec.uri)?))
}

/// Runs a filter on the newest event there is, or on a made-up one, before anything is subscribed.
fn try_on_sample(mut filter: ShoalFilter, source: &dyn Source, spec: &Spec) -> Result<ShoalFilter, RpcError> {
    let newest = source.read().ok().and_then(|body| Progress::sample(&body));
    let mut event = newest.unwrap_or_else(|| sample(&spec.name, &spec.uri));
    event["watch"] = spec.name.as_str().into();
    event["uri"] = spec.uri.as_str().into();
    filter.check_on(&event)?;
    Ok(filter)
}

/// A specification as the broker keeps it.
fn spec_json(spec: &Spec) -> Json {
    json!({"name": spec.name, "uri": spec.uri, "on_event": spec.on_event, "lang": spec.lang, "persist": spec.persist})
}

impl Watches {
    /// No watches yet; the servers of the configuration file.
    pub(crate) fn new(config: &Json) -> Self {
        Self { servers: Servers::of_config(&config["mcp"]), ..Self::default() }
    }

    /// Checks what needs no server: the name, the language, the filter.
    fn check(&self, session: &Arc<Session>, spec: &Spec) -> Result<Option<ShoalFilter>, RpcError> {
        self.room_for(&spec.name)?;
        if spec.lang != "shoal" {
            let message = format!("lang {} is not available in this build; filters are written in shoal", spec.lang);
            return Err(RpcError::invalid("lang", Reason::LangUnavailable, message));
        }
        spec.on_event.as_ref().map(|source| ShoalFilter::compile(session, source)).transpose()
    }

    fn room_for(&self, name: &str) -> Result<(), RpcError> {
        let running = self.running();
        if running.get(name).is_some_and(|watch| watch.standing().1 != State::Failed) {
            let message = format!("a watch named `{name}` exists; stop it first or choose another name");
            return Err(RpcError::invalid("name", Reason::Exists, message));
        }
        let others = running.keys().filter(|other| *other != name).count();
        if others >= WATCHES {
            let (max, used) = (WATCHES as u64, others as u64);
            return Err(RpcError::quota(
                "watches_per_session",
                max,
                used,
                format!("a session has at most {max} watches"),
            ));
        }
        Ok(())
    }

    fn enter(&self, spec: &Spec) -> Result<Arc<Running>, RpcError> {
        self.room_for(&spec.name)?;
        let record = spec.record(None, State::Starting, &Default::default(), false);
        let running = Arc::new(Running {
            spec: spec.clone(),
            inbox: Arc::default(),
            standing: Mutex::new((record, State::Starting)),
        });
        self.running().insert(spec.name.clone(), running.clone());
        Ok(running)
    }

    /// WatchRecords by name.
    pub(crate) fn records(&self) -> Vec<Json> {
        let mut records: BTreeMap<String, Json> = self.unrestored().clone();
        records.extend(self.running().iter().map(|(name, watch)| (name.clone(), watch.standing().0)));
        records.into_values().collect()
    }

    /// One WatchRecord.
    pub(crate) fn record(&self, name: &str) -> Option<Json> {
        let running = self.running().get(name).map(|watch| watch.standing().0);
        running.or_else(|| self.unrestored().get(name).cloned())
    }

    /// Listens to a channel of the broker; returns once the broker knows.
    pub(crate) fn listen(&self, session: &Session, channel: &str, inbox: &Arc<Inbox>) -> Result<(), RpcError> {
        let mut listeners = self.listeners();
        let of_channel = listeners.entry(channel.to_owned()).or_default();
        of_channel.retain(|other| !Arc::ptr_eq(other, inbox));
        of_channel.push(inbox.clone());
        tell_channels(session, &listeners)
    }

    /// Listens no more.
    pub(crate) fn forget_listener(&self, session: &Session, channel: &str, inbox: &Arc<Inbox>) {
        let mut listeners = self.listeners();
        if let Some(of_channel) = listeners.get_mut(channel) {
            of_channel.retain(|other| !Arc::ptr_eq(other, inbox));
        }
        let before = listeners.len();
        listeners.retain(|_, of_channel| !of_channel.is_empty());
        if listeners.len() < before
            && let Err(error) = tell_channels(session, &listeners)
        {
            log::untold(channel, &error);
        }
    }

    /// A channel had events.
    pub(crate) fn changed(&self, channel: &str) {
        for inbox in self.listeners().get(channel).into_iter().flatten() {
            inbox.changed();
        }
    }

    /// The broker was replaced: subscriptions went with it, and the new one has to be told what there is.
    pub(crate) fn on_new_broker(&self, session: &Session) {
        let mut specs: Vec<Json> = self.running().values().map(|watch| spec_json(&watch.spec)).collect();
        specs.extend(self.unrestored().values().cloned());
        if specs.is_empty() {
            return;
        }
        if let Err(error) = session.broker.request(UpMethod::Watch, &json!({"action": "have", "specs": specs})) {
            log::untold("*", &error);
        }
        self.listeners()
            .drain()
            .flat_map(|(_, inboxes)| inboxes)
            .for_each(|inbox| inbox.ended("the broker was replaced"));
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unrestored(&self) -> MutexGuard<'_, BTreeMap<String, Json>> {
        self.unrestored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<Inbox>>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell_channels(session: &Session, listeners: &HashMap<String, Vec<Arc<Inbox>>>) -> Result<(), RpcError> {
    let channels: Vec<&String> = listeners.keys().collect();
    session.broker.request(UpMethod::Listen, &json!({"channels": channels})).map(drop)
}
