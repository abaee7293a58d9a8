//! The thread of one watch: carries out what its state machine asks for.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value as Json, json};
use shoal_eval::host::Clock as _;
use shoal_proto::broker_worker::UpMethod;
use shoal_watch::filter::Filter;
use shoal_watch::{Act, Ended, Log, Millis, Notice, Shape, Spec, State, Watch};
use shoal_wire::RpcError;

use super::filter::ShoalFilter;
use super::inbox::Signals;
use super::source::Source;
use super::{Running, log};
use crate::clock::SystemClock;
use crate::session::Session;

/// How a watch began: its shape, or why it did not.
pub(crate) type Began = Result<Shape, RpcError>;

/// Milliseconds on the worker's monotonic clock.
pub(crate) fn millis() -> Millis {
    SystemClock.monotonic_ns() / 1_000_000
}

/// One watch while it lives.
pub(crate) struct Driver {
    watch: Watch,
    filter: Option<ShoalFilter>,
    source: Arc<dyn Source>,
    running: Arc<Running>,
    session: Weak<Session>,
    /// Whoever started it, until they were told.
    starter: Option<SyncSender<Began>>,
    /// The newest refusal of the server.
    trouble: Option<RpcError>,
}

impl Driver {
    /// A watch that has not begun; the starter is told how it began.
    pub(crate) fn new(
        spec: Spec,
        filter: Option<ShoalFilter>,
        source: Arc<dyn Source>,
        running: Arc<Running>,
        session: Weak<Session>,
        starter: SyncSender<Began>,
    ) -> Self {
        let (watch, _) = Watch::start(spec, millis());
        Self { watch, filter, source, running, session, starter: Some(starter), trouble: None }
    }

    /// Runs the watch to its end.
    pub(crate) fn run(mut self) {
        self.carry_out(vec![Act::Subscribe]);
        self.settle();
        while self.watch.state() != State::Failed {
            let now = millis();
            let longest = self.watch.due().map(|due| Duration::from_millis(due.saturating_sub(now)));
            let signals = self.running.inbox.wait(longest);
            if signals.stopped {
                break;
            }
            let acts = self.on_signals(signals);
            self.carry_out(acts);
            self.settle();
        }
        self.source.unsubscribe(&self.running.inbox);
    }

    fn on_signals(&mut self, signals: Signals) -> Vec<Act> {
        let now = millis();
        if let Some(why) = signals.ended {
            return self.watch.on_ended(&Ended(why), now);
        }
        let mut acts = if signals.changed { self.watch.on_updated(now) } else { Vec::new() };
        acts.extend(self.watch.on_time(now));
        acts
    }

    fn carry_out(&mut self, acts: Vec<Act>) {
        let mut acts = VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Subscribe => acts.extend(self.subscribe()),
                Act::Read => acts.extend(self.read()),
                Act::Publish(notice) => self.publish(&notice),
                Act::Log(said) => self.note(&said),
            }
        }
    }

    fn subscribe(&mut self) -> Vec<Act> {
        // What an earlier subscription still had to say is about an earlier state.
        self.running.inbox.wait(Some(Duration::ZERO));
        match self.source.subscribe(&self.running.inbox) {
            Ok(()) => self.watch.on_subscribed(millis()),
            Err(error) => self.refused(error),
        }
    }

    fn refused(&mut self, error: RpcError) -> Vec<Act> {
        let why = Ended(error.message.clone());
        self.trouble = Some(error);
        self.watch.on_ended(&why, millis())
    }

    fn read(&mut self) -> Vec<Act> {
        let read = self.source.read().map_err(|error| {
            let message = error.message.clone();
            self.trouble = Some(error);
            message
        });
        let filter = self.filter.as_mut().map(|filter| filter as &mut dyn Filter);
        self.watch.on_read(read, filter, millis())
    }

    /// Tells of where the watch stands: its record, and the starter once that is decided.
    fn settle(&mut self) {
        self.running.set_record(self.watch.record(), self.watch.state());
        let began = match self.watch.state() {
            State::Starting => return,
            State::Active | State::Resubscribing => Ok(self.watch.shape().unwrap_or(Shape::State)),
            State::Failed => Err(self.failure()),
        };
        match self.starter.take() {
            // A starter that gave up has stopped the watch.
            Some(starter) => drop(starter.send(began)),
            None if self.watch.state() == State::Failed => self.tell_failed(),
            None => {}
        }
    }

    fn failure(&mut self) -> RpcError {
        let uri = self.watch.spec().uri.clone();
        let detail = self.watch.record()["last_error"].as_str().unwrap_or_default().to_owned();
        let message = || format!("watching `{uri}` failed: {detail}");
        match self.trouble.take() {
            Some(error) if error.is(shoal_wire::Code::WatchFailed) => error,
            _ => RpcError::watch_failed(&uri, Some(self.source.server()), "failed", &message(), &detail),
        }
    }

    fn tell_failed(&self) {
        let reason = self.watch.record()["last_error"].clone();
        let told = json!({"action": "failed", "name": self.watch.spec().name, "reason": reason});
        if let Some(session) = self.session.upgrade()
            && let Err(error) = session.broker.request(UpMethod::Watch, &told)
        {
            log::untold(&self.watch.spec().name, &error);
        }
    }

    fn publish(&self, notice: &Notice) {
        let Some(session) = self.session.upgrade() else { return };
        if let Err(error) = emit(&session, notice) {
            log::untold(&notice.name, &error);
        }
    }

    fn note(&self, said: &Log) {
        let Some(session) = self.session.upgrade() else { return };
        let (event, more) = match said {
            Log::Subscribed => ("watch.subscribed", json!({"server": self.source.server()})),
            Log::Event { kind, kept, error } => ("watch.event", event(kind, *kept, error.as_deref())),
            Log::Resubscribing { attempt, wait_ms, error } => {
                ("watch.resubscribing", json!({"attempt": attempt, "wait_ms": wait_ms, "error": error}))
            }
            Log::Failed { error } => ("watch.failed", json!({"error": error})),
        };
        log::event(&session, event, &self.watch.spec().name, more);
    }
}

fn event(kind: &str, kept: bool, error: Option<&str>) -> Json {
    let mut more = json!({"type": kind, "kept": kept});
    if let Some(error) = error {
        more["error"] = error.into();
    }
    more
}

/// Publishes a notice. A broker that died meanwhile took its ring along, so the next one is told again.
pub(crate) fn emit(session: &Session, notice: &Notice) -> Result<(), RpcError> {
    let name = session.facts["session"].as_str().unwrap_or_default();
    let channel = format!("watch.{}", notice.name);
    session.broker.request(UpMethod::Emit, &json!({"channel": channel, "payload": notice.payload(name)})).map(drop)
}
