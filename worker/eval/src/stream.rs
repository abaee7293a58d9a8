//! Streams: lazy, pulled, used once.

pub(crate) mod ahead;
pub(crate) mod combine;
pub(crate) mod fork;
pub(crate) mod timed;

use std::sync::{Arc, Mutex, PoisonError};

use shoal_value::handle::concrete;
use shoal_value::{ErrorValue, MAX_ITEMS, Str, StreamSource, Value, code};

use crate::machine::Machine;
use crate::unwind::Eval;

/// Where items come from.
pub(crate) trait Source: Send {
    /// The next item; none at the end. It is not asked again after that.
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>>;
}

/// A stream before or after its use.
pub(crate) struct Stream {
    facts: Facts,
    source: Mutex<Option<Box<dyn Source>>>,
}

impl StreamSource for Stream {
    fn label(&self) -> Str {
        self.facts.label.clone()
    }
}

/// What is known of a stream without pulling it.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) label: Str,
    /// It ends by itself.
    pub(crate) bounded: bool,
    /// Its items come when something happens: a pull may wait.
    pub(crate) live: bool,
}

impl Facts {
    /// Those of a stream derived by the combinator `name`.
    #[must_use]
    pub(crate) fn through(&self, name: &str) -> Self {
        Self { label: format!("{}.{name}", self.label).into(), ..self.clone() }
    }

    fn gatherable(&self) -> Result<(), ErrorValue> {
        if self.bounded {
            return Ok(());
        }
        let text = format!("stream<{}> has no end and cannot be gathered", self.label);
        Err(ErrorValue::new(code::STREAM_UNBOUNDED, text)
            .with_hint("bound it with `.take(n)` or `.take_until(p)`, or use `.each(f)`"))
    }
}

/// A stream over a source.
pub(crate) fn new(facts: Facts, source: impl Source + 'static) -> Value {
    Value::Stream(Arc::new(Stream { facts, source: Mutex::new(Some(Box::new(source))) }))
}

/// An endless stream over a source that waits for things to happen.
pub(crate) fn live(label: &str, source: impl Source + 'static) -> Value {
    new(Facts { label: label.into(), bounded: false, live: true }, source)
}

/// A bounded stream of these values.
pub(crate) fn bounded(label: &str, values: Vec<Value>) -> Value {
    new(Facts { label: label.into(), bounded: true, live: false }, Values(values.into_iter()))
}

struct Values(std::vec::IntoIter<Value>);

impl Source for Values {
    fn next(&mut self, _machine: &mut Machine) -> Eval<Option<Value>> {
        Ok(self.0.next())
    }
}

/// A source taken from its stream.
pub(crate) struct Taken {
    pub(crate) facts: Facts,
    source: Box<dyn Source>,
}

impl Taken {
    /// The next item.
    pub(crate) fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        machine.step(1)?;
        self.source.next(machine)
    }

    /// All items; unbounded ones are refused.
    pub(crate) fn gather(mut self, machine: &mut Machine) -> Eval<Vec<Value>> {
        self.facts.gatherable()?;
        let mut items = Vec::new();
        while let Some(item) = self.next(machine)? {
            if items.len() >= MAX_ITEMS {
                return Err(ErrorValue::too_large("a stream has more than 50,000,000 items").into());
            }
            items.push(item);
        }
        machine.sized(items.len())?;
        Ok(items)
    }
}

/// Takes the source of a stream; `stream_consumed` if it was taken before.
pub(crate) fn take(_machine: &mut Machine, stream: &Arc<dyn StreamSource>) -> Eval<Taken> {
    let Some(stream) = concrete::<Stream>(&**stream) else {
        return Err(ErrorValue::type_error("stream of another evaluator").into());
    };
    let source = stream.source.lock().unwrap_or_else(PoisonError::into_inner).take();
    match source {
        Some(source) => Ok(Taken { facts: stream.facts.clone(), source }),
        None => Err(ErrorValue::new(code::STREAM_CONSUMED, format!("stream<{}> has been used", stream.facts.label))
            .with_hint("a stream is used once: make a new one, or keep a list with `.collect()`")
            .into()),
    }
}

/// Takes a stream and gathers its items.
pub(crate) fn gather(machine: &mut Machine, stream: &Arc<dyn StreamSource>) -> Eval<Vec<Value>> {
    if let Some(known) = concrete::<Stream>(&**stream) {
        known.facts.gatherable()?;
    }
    take(machine, stream)?.gather(machine)
}
