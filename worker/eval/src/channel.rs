//! Channels: named rings of events that all evaluators of a session share.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use shoal_value::{DateTime, ErrorValue, Record, Str, Value, code, wire};

use crate::machine::Machine;
use crate::stream::Source;
use crate::unwind::Eval;
use crate::wait::Watched;

/// Events a channel keeps; older ones are forgotten.
const RING: usize = 1024;
/// Channels of a session: one that makes more has lost count of its names.
const MAX_CHANNELS: usize = 4096;
/// Names that the host's event bus knows too begin with this.
const CROSSING: &str = "user.";
/// What the host's bus takes: bytes of an encoded payload, and levels of containers.
const MAX_CROSSING: (usize, usize) = (64 * 1024, 64);

/// The channels of a session.
#[derive(Default)]
pub(crate) struct Channels {
    known: Mutex<HashMap<Str, Watched<Ring>>>,
    closed: AtomicBool,
}

/// The newest events of a channel.
#[derive(Default)]
struct Ring {
    /// Number of the next event.
    next: u64,
    events: VecDeque<Event>,
}

#[derive(Clone)]
struct Event {
    seq: u64,
    ts: DateTime,
    payload: Value,
}

impl Channels {
    fn ring(&self, name: &str) -> Result<Watched<Ring>, ErrorValue> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ring) = known.get(name) {
            return Ok(ring.clone());
        }
        if known.len() >= MAX_CHANNELS {
            return Err(ErrorValue::too_large(format!("a session has at most {MAX_CHANNELS} channels"))
                .with_hint("use one channel and tell events apart by their payload"));
        }
        let ring = Watched::new(Ring::default());
        known.insert(name.into(), ring.clone());
        Ok(ring)
    }

    /// From here on nothing can be emitted.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Adds an event.
    pub(crate) fn push(&self, name: &str, ts: DateTime, payload: Value) -> Result<(), ErrorValue> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(ErrorValue::new(code::CHANNEL_CLOSED, format!("channel `{name}`: the session is over")));
        }
        let forgotten = self.ring(name)?.change(|ring| {
            let event = Event { seq: ring.next, ts, payload };
            ring.next += 1;
            ring.events.push_back(event);
            if ring.events.len() > RING { ring.events.pop_front() } else { None }
        });
        // Dropped outside the lock: a payload may be large.
        drop(forgotten);
        Ok(())
    }
}

impl Ring {
    /// The first event with this number or a later one.
    fn at(&self, seq: u64) -> Option<&Event> {
        let oldest = self.events.front()?.seq;
        let behind = usize::try_from(seq.saturating_sub(oldest)).unwrap_or(usize::MAX);
        self.events.get(behind)
    }
}

/// The events of a channel from `next` on; those that were forgotten before they were pulled are skipped.
pub(crate) struct Events {
    name: Str,
    ring: Watched<Ring>,
    next: u64,
}

impl Events {
    /// Events that are still kept, or only those above `since`, and then those to come.
    pub(crate) fn replay(machine: &Machine, name: &Str, since: Option<u64>) -> Result<Self, ErrorValue> {
        let ring = machine.session.channels.ring(name)?;
        Ok(Self { name: name.clone(), ring, next: since.map_or(0, |since| since.saturating_add(1)) })
    }

    /// Only events to come.
    pub(crate) fn from_now(machine: &Machine, name: &Str) -> Result<Self, ErrorValue> {
        let ring = machine.session.channels.ring(name)?;
        let next = ring.lock().next;
        Ok(Self { name: name.clone(), ring, next })
    }

    /// The next event, or nothing if the clock reaches `due` before.
    fn wait(&mut self, machine: &Machine, due: Option<u64>) -> Eval<Option<Event>> {
        let (clock, next) = (machine.session.host.clock(), self.next);
        let event = self.ring.wait(clock, &machine.run.cancel, due, |ring| ring.at(next).cloned())?;
        if let Some(event) = &event {
            self.next = event.seq + 1;
        }
        Ok(event)
    }

    /// The next payload, or nothing if the clock reaches `due` before.
    pub(crate) fn payload(&mut self, machine: &Machine, due: Option<u64>) -> Eval<Option<Value>> {
        Ok(self.wait(machine, due)?.map(|event| event.payload))
    }
}

impl Source for Events {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let Some(event) = self.wait(machine, None)? else { return Ok(None) };
        let members = [
            (Str::from("channel"), Value::Str(self.name.clone())),
            ("seq".into(), Value::Int(i64::try_from(event.seq).unwrap_or(i64::MAX))),
            ("ts".into(), event.ts.into()),
            ("payload".into(), event.payload),
        ];
        Ok(Some(Value::Record(Record::new(members)?)))
    }
}

/// The last payload, null if there is none.
pub(crate) fn latest(machine: &Machine, name: &str) -> Result<Value, ErrorValue> {
    let ring = machine.session.channels.ring(name)?;
    let newest = ring.lock().events.back().map(|event| event.payload.clone());
    Ok(newest.unwrap_or(Value::Null))
}

/// Adds an event that the program emits; one on a `user.` channel is told to the host's bus too.
pub(crate) fn emit(machine: &Machine, name: &Str, payload: Value) -> Eval<()> {
    if let Some(live) = live_part(&payload) {
        let text = format!("emit: a payload is data, found {}", live.type_name());
        return Err(ErrorValue::type_error(text).with_hint("emit what it gives: a value or a text").into());
    }
    if name.starts_with(CROSSING) {
        let encoded = encode(name, &payload)?;
        if let Some(bus) = machine.session.host.bus() {
            bus.publish(name, &encoded)?;
        }
    }
    let clock = machine.session.host.clock();
    let ts = DateTime::from(clock.now().to_zoned_datetime(clock.zone()));
    Ok(machine.session.channels.push(name, ts, payload)?)
}

fn encode(name: &str, payload: &Value) -> Result<String, ErrorValue> {
    let (bytes, levels) = MAX_CROSSING;
    if payload.depth() > levels {
        return Err(ErrorValue::too_large(format!("a payload on `{name}` is nested at most {levels} levels")));
    }
    wire::to_wire(payload, bytes).ok_or_else(|| {
        ErrorValue::too_large(format!("a payload on `{name}` has at most 64 KiB encoded"))
            .with_hint("save it to a file and emit the path")
    })
}

/// The part of a value that is no data: it runs, or holds something that does.
fn live_part(value: &Value) -> Option<&Value> {
    match value {
        Value::Closure(_) | Value::Command(_) | Value::Stream(_) | Value::Task(_) | Value::Secret(_) => Some(value),
        Value::List(list) => list.iter().find_map(live_part),
        Value::Record(record) => record.values().iter().find_map(live_part),
        Value::Table(table) => table.rows().iter().find_map(|row| row.values().iter().find_map(live_part)),
        _ => None,
    }
}
