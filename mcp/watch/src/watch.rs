//! The life of a watch.
//!
//! It starts by subscribing, reads once when that is acknowledged, and is active from then on. An update makes one
//! read; updates during a read make exactly one more. When its subscription ends it waits, subscribes and reads again,
//! and what changed meanwhile is delivered; after five failures in a row it has failed and says so. Two deadlines, the
//! batch and the wait are its only timers.

use serde_json::Value;

use crate::batch::Batch;
use crate::filter::{Errors, Filter};
use crate::limits::{ACK_MS, READ_MS, RETRY_MS};
use crate::progress::{Body, Progress, object_key};
use crate::spec::Account;
use crate::{Millis, Notice, Shape, Spec, State, diff, line};

/// Something the driver has to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Connect if need be and subscribe; answer with [`Watch::on_subscribed`] or [`Watch::on_ended`].
    Subscribe,
    /// Read the resource; answer with [`Watch::on_read`].
    Read,
    /// Publish on `watch.NAME`.
    Publish(Notice),
    /// Write a log line.
    Log(Log),
}

/// A log event and its extra members.
#[derive(Clone, Debug, PartialEq)]
pub enum Log {
    /// A subscription is acknowledged.
    Subscribed,
    /// An event was processed.
    Event {
        /// Its type.
        kind: String,
        /// Whether a line of it was kept.
        kept: bool,
        /// Why it was lost.
        error: Option<String>,
    },
    /// A subscription ended and is tried again.
    Resubscribing {
        /// Which attempt comes, from 1.
        attempt: usize,
        /// After how long.
        wait_ms: Millis,
        /// Why.
        error: String,
    },
    /// The watch gave up.
    Failed {
        /// Why.
        error: String,
    },
}

/// How a subscription ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended(pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until the acknowledgement, or the deadline.
    AwaitAck { until: Millis },
    /// Until the read after an acknowledgement, or the deadline.
    AwaitRead { until: Millis },
    /// Subscribed; `until` while a read is under way.
    Active { until: Option<Millis>, again: bool },
    /// Until the next attempt.
    AwaitRetry { at: Millis },
    /// For good.
    Failed,
}

/// One watch.
pub struct Watch {
    spec: Spec,
    phase: Phase,
    progress: Option<Progress>,
    failures: usize,
    batch: Batch,
    errors: Errors,
    account: Account,
}

impl Watch {
    /// A new watch, and what to do first.
    pub fn start(spec: Spec, now: Millis) -> (Watch, Act) {
        let watch = Watch {
            spec,
            phase: Phase::AwaitAck { until: now + ACK_MS },
            progress: None,
            failures: 0,
            batch: Batch::default(),
            errors: Errors::default(),
            account: Account::default(),
        };
        (watch, Act::Subscribe)
    }

    /// What it was asked to do.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How the resource is read, once that is known.
    pub fn shape(&self) -> Option<Shape> {
        self.progress.as_ref().map(Progress::shape)
    }

    /// How it stands.
    pub fn state(&self) -> State {
        match self.phase {
            Phase::Failed => State::Failed,
            Phase::Active { .. } => State::Active,
            _ if self.progress.is_some() => State::Resubscribing,
            _ => State::Starting,
        }
    }

    /// The WatchRecord.
    pub fn record(&self) -> Value {
        self.spec.record(self.shape(), self.state(), &self.account, false)
    }

    /// When it wants to be woken by [`Watch::on_time`].
    pub fn due(&self) -> Option<Millis> {
        let phase = match self.phase {
            Phase::AwaitAck { until } | Phase::AwaitRead { until } => Some(until),
            Phase::Active { until, .. } => until,
            Phase::AwaitRetry { at } => Some(at),
            Phase::Failed => None,
        };
        [phase, self.batch.due()].into_iter().flatten().min()
    }

    /// The subscription is acknowledged.
    pub fn on_subscribed(&mut self, now: Millis) -> Vec<Act> {
        if !matches!(self.phase, Phase::AwaitAck { .. }) {
            return Vec::new();
        }
        self.phase = Phase::AwaitRead { until: now + READ_MS };
        vec![Act::Log(Log::Subscribed), Act::Read]
    }

    /// The resource, or a part of it, changed.
    pub fn on_updated(&mut self, now: Millis) -> Vec<Act> {
        match &mut self.phase {
            Phase::Active { until: until @ None, .. } => {
                *until = Some(now + READ_MS);
                vec![Act::Read]
            }
            Phase::Active { again, .. } => {
                *again = true;
                Vec::new()
            }
            // The read that follows the acknowledgement sees it.
            _ => Vec::new(),
        }
    }

    /// A read came back. A failed one is as good as the end of the subscription.
    pub fn on_read(
        &mut self,
        read: Result<Body, String>,
        filter: Option<&mut (dyn Filter + '_)>,
        now: Millis,
    ) -> Vec<Act> {
        let again = match self.phase {
            Phase::AwaitRead { .. } => false,
            Phase::Active { until: Some(_), again } => again,
            // Too late: the read was given up before.
            _ => return Vec::new(),
        };
        let mut acts = Vec::new();
        match read.and_then(|body| self.take(&body, filter, now, &mut acts)) {
            Err(error) => acts.extend(self.on_ended(&Ended(error), now)),
            Ok(()) => {
                self.failures = 0;
                self.account.last_error = None;
                self.phase = Phase::Active { until: None, again: false };
                if again {
                    acts.extend(self.on_updated(now));
                }
            }
        }
        acts
    }

    fn take(
        &mut self,
        body: &Body,
        mut filter: Option<&mut (dyn Filter + '_)>,
        now: Millis,
        acts: &mut Vec<Act>,
    ) -> Result<(), String> {
        let Some(mut progress) = self.progress.take() else {
            self.progress = Some(Progress::baseline(body)?);
            return Ok(());
        };
        loop {
            let pass = progress.advance(body);
            let Ok(pass) = pass else {
                self.progress = Some(progress);
                return pass.map(drop);
            };
            for event in pass.events {
                let log = self.on_event(event, filter.as_deref_mut(), now);
                acts.extend(log.map(Act::Log));
            }
            if !pass.more {
                break;
            }
        }
        self.progress = Some(progress);
        Ok(())
    }

    fn on_event(&mut self, mut event: Value, filter: Option<&mut (dyn Filter + '_)>, now: Millis) -> Option<Log> {
        if diff::is_noise(&event) {
            return None;
        }
        self.account.events += 1;
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        let object = object_key(&event);
        let (text, error) = match filter {
            None => (Some(line::default(&event)), None),
            Some(filter) => {
                event["watch"] = self.spec.name.as_str().into();
                event["uri"] = self.spec.uri.as_str().into();
                match filter.run(&event) {
                    Ok(text) => {
                        self.errors.success();
                        (text, None)
                    }
                    Err(error) => (self.errors.line(&error), Some(error.to_string())),
                }
            }
        };
        let object = object.filter(|_| error.is_none());
        let kept = text.is_some_and(|text| self.batch.push(line::clean(&text), object.as_deref(), now));
        if error.is_some() {
            self.account.last_error.clone_from(&error);
        }
        Some(Log::Event { kind, kept: kept && error.is_none(), error })
    }

    /// The subscription ended, by answer, error or loss of the server, or could not be made.
    pub fn on_ended(&mut self, ended: &Ended, now: Millis) -> Vec<Act> {
        let error = ended.0.clone();
        self.account.last_error = Some(error.clone());
        // A watch that never was active fails in its caller's turn.
        let wait = RETRY_MS.get(self.failures).filter(|_| self.progress.is_some());
        match (self.phase, wait) {
            (Phase::Failed | Phase::AwaitRetry { .. }, _) => Vec::new(),
            (_, Some(wait)) => {
                self.failures += 1;
                self.phase = Phase::AwaitRetry { at: now + wait };
                vec![Act::Log(Log::Resubscribing { attempt: self.failures, wait_ms: *wait, error })]
            }
            (_, None) => {
                self.phase = Phase::Failed;
                let mut acts = vec![Act::Log(Log::Failed { error: error.clone() })];
                if self.progress.is_some() {
                    acts.extend(self.publish(Notice::word(&self.spec, line::clean(&format!("watch failed: {error}")))));
                }
                acts
            }
        }
    }

    /// Time passed.
    pub fn on_time(&mut self, now: Millis) -> Vec<Act> {
        let mut acts = Vec::new();
        if let Some(batch) = self.batch.flush(now) {
            acts.extend(self.publish(Notice::of(&self.spec, batch)));
        }
        match self.phase {
            Phase::AwaitAck { until } if until <= now => {
                acts.extend(self.on_ended(&Ended("the subscription was not acknowledged in time".to_owned()), now));
            }
            Phase::AwaitRead { until } | Phase::Active { until: Some(until), .. } if until <= now => {
                acts.extend(self.on_ended(&Ended("the resource was not read in time".to_owned()), now));
            }
            Phase::AwaitRetry { at } if at <= now => {
                self.phase = Phase::AwaitAck { until: now + ACK_MS };
                acts.push(Act::Subscribe);
            }
            _ => {}
        }
        acts
    }

    fn publish(&mut self, notice: Notice) -> Option<Act> {
        self.account.notices += 1;
        Some(Act::Publish(notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::FilterError;
    use serde_json::json;
    use shoal_wire::EVENTS_MIME;

    fn spec() -> Spec {
        let (name, uri) = ("cm".to_owned(), "memo://notes".to_owned());
        Spec { name, uri, on_event: None, lang: "shoal".to_owned(), persist: true }
    }

    fn state(value: Value) -> Result<Body, String> {
        Ok(Body { mime: "application/json".to_owned(), text: value.to_string() })
    }

    fn active() -> Watch {
        let (mut watch, first) = Watch::start(spec(), 0);
        assert_eq!((first, watch.state()), (Act::Subscribe, State::Starting));
        assert_eq!(watch.on_subscribed(0), [Act::Log(Log::Subscribed), Act::Read]);
        assert_eq!(watch.on_read(state(json!({"a": 1})), None, 0), []);
        assert_eq!((watch.state(), watch.shape(), watch.due()), (State::Active, Some(Shape::State), None));
        watch
    }

    fn lines(acts: &[Act]) -> Vec<String> {
        let notices = acts.iter().filter_map(|act| match act {
            Act::Publish(notice) => Some(notice.lines.clone()),
            _ => None,
        });
        notices.flatten().collect()
    }

    #[test]
    fn a_change_becomes_a_notice_after_three_quiet_seconds() {
        let mut watch = active();
        assert_eq!(watch.on_updated(100), [Act::Read]);
        watch.on_read(state(json!({"a": 2, "b": 1})), None, 200);
        assert_eq!(watch.due(), Some(3200));
        assert_eq!(lines(&watch.on_time(3200)), ["MODIFIED a", "ADDED b"]);
        assert_eq!(watch.due(), None, "nothing to wait for, nothing to wake for");
        assert_eq!((&watch.record()["events"], &watch.record()["notices"]), (&json!(2), &json!(1)));
    }

    #[test]
    fn updates_during_a_read_make_exactly_one_more() {
        let mut watch = active();
        assert_eq!(watch.on_updated(0), [Act::Read]);
        assert_eq!(watch.on_updated(1), []);
        assert_eq!(watch.on_updated(2), []);
        assert_eq!(watch.on_read(state(json!({"a": 1})), None, 3), [Act::Read]);
        assert_eq!(watch.on_read(state(json!({"a": 1})), None, 4), []);
    }

    #[test]
    fn a_lost_subscription_is_tried_five_times() {
        let mut watch = active();
        let mut waits = Vec::new();
        let mut now = 0;
        let mut acts = watch.on_ended(&Ended("gone".to_owned()), now);
        while let [Act::Log(Log::Resubscribing { wait_ms, .. })] = &acts[..] {
            waits.push(*wait_ms);
            now += wait_ms;
            assert_eq!(watch.state(), State::Resubscribing);
            assert_eq!(watch.on_time(now), [Act::Subscribe]);
            acts = watch.on_ended(&Ended("gone".to_owned()), now);
        }
        assert_eq!(waits, RETRY_MS);
        assert_eq!(watch.state(), State::Failed);
        assert_eq!(lines(&acts), ["watch failed: gone"]);
        assert_eq!(watch.due(), None);
        assert_eq!(watch.on_ended(&Ended("again".to_owned()), now), []);
    }

    #[test]
    fn what_changed_during_a_loss_is_delivered() {
        let mut watch = active();
        watch.on_ended(&Ended("gone".to_owned()), 0);
        assert_eq!(watch.on_time(1000), [Act::Subscribe]);
        watch.on_subscribed(1000);
        watch.on_read(state(json!({"b": 1})), None, 1000);
        assert_eq!(lines(&watch.on_time(4000)), ["DELETED a", "ADDED b"]);
        let again = watch.on_ended(&Ended("gone".to_owned()), 5000);
        assert!(
            matches!(again[..], [Act::Log(Log::Resubscribing { attempt: 1, wait_ms: 1000, .. })]),
            "a success resets"
        );
    }

    #[test]
    fn a_start_that_fails_is_not_tried_again() {
        let (mut watch, _) = Watch::start(spec(), 0);
        assert_eq!(watch.due(), Some(ACK_MS));
        let acts = watch.on_time(ACK_MS);
        assert!(matches!(&acts[..], [Act::Log(Log::Failed { .. })]), "{acts:?}");
        assert_eq!(watch.state(), State::Failed);
        let (mut watch, _) = Watch::start(spec(), 0);
        watch.on_subscribed(0);
        watch.on_read(Err("no such resource".to_owned()), None, 0);
        assert_eq!((watch.state(), &watch.record()["last_error"]), (State::Failed, &json!("no such resource")));
    }

    struct Script(Vec<Result<Option<String>, FilterError>>);

    impl Filter for Script {
        fn run(&mut self, event: &Value) -> Result<Option<String>, FilterError> {
            assert_eq!((&event["watch"], &event["uri"]), (&json!("cm"), &json!("memo://notes")));
            self.0.remove(0)
        }
    }

    #[test]
    fn filters_choose_the_lines_and_their_errors_are_said_once() {
        let (mut watch, _) = Watch::start(spec(), 0);
        watch.on_subscribed(0);
        let log = |seqs: std::ops::Range<u64>| {
            let events: Vec<Value> = seqs.map(|seq| json!({"seq": seq, "type": "T"})).collect();
            Ok(Body { mime: EVENTS_MIME.to_owned(), text: json!({ "events": events }).to_string() })
        };
        watch.on_read(log(0..3), None, 0);
        watch.on_updated(0);
        let slow = || FilterError { code: "timeout".to_owned(), message: "the filter ran longer than 2 s".to_owned() };
        let mut script = Script(vec![Ok(Some("one\ntwo".to_owned())), Ok(None), Err(slow()), Err(slow())]);
        let acts = watch.on_read(log(0..7), Some(&mut script), 0);
        let kept: Vec<bool> = acts
            .iter()
            .filter_map(|act| match act {
                Act::Log(Log::Event { kept, .. }) => Some(*kept),
                _ => None,
            })
            .collect();
        assert_eq!(kept, [true, false, false, false]);
        assert_eq!(lines(&watch.on_time(3000)), ["one two", "filter error: timeout: the filter ran longer than 2 s"]);
    }
}
