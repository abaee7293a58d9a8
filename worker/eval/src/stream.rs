//! Streams: lazy, pulled, used once.

pub(crate) mod combine;
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
    label: Str,
    bounded: bool,
    source: Mutex<Option<Box<dyn Source>>>,
}

impl StreamSource for Stream {
    fn label(&self) -> Str {
        self.label.clone()
    }
}

/// A stream over a source.
pub(crate) fn new(label: &str, bounded: bool, source: impl Source + 'static) -> Value {
    Value::Stream(Arc::new(Stream { label: label.into(), bounded, source: Mutex::new(Some(Box::new(source))) }))
}

/// A bounded stream of these values.
pub(crate) fn bounded(label: &str, values: Vec<Value>) -> Value {
    new(label, true, Values(values.into_iter()))
}

struct Values(std::vec::IntoIter<Value>);

impl Source for Values {
    fn next(&mut self, _machine: &mut Machine) -> Eval<Option<Value>> {
        Ok(self.0.next())
    }
}

/// A source taken from its stream.
pub(crate) struct Taken {
    pub(crate) label: Str,
    pub(crate) bounded: bool,
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
        if !self.bounded {
            let text = format!("stream<{}> has no end and cannot be gathered", self.label);
            return Err(ErrorValue::new(code::STREAM_UNBOUNDED, text)
                .with_hint("bound it with `.take(n)` or `.take_until(p)`, or use `.each(f)`")
                .into());
        }
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
        Some(source) => Ok(Taken { label: stream.label.clone(), bounded: stream.bounded, source }),
        None => Err(ErrorValue::new(code::STREAM_CONSUMED, format!("stream<{}> has been used", stream.label))
            .with_hint("a stream is used once: make a new one, or keep a list with `.collect()`")
            .into()),
    }
}

/// Takes a stream and gathers its items.
pub(crate) fn gather(machine: &mut Machine, stream: &Arc<dyn StreamSource>) -> Eval<Vec<Value>> {
    if let Some(known) = concrete::<Stream>(&**stream)
        && !known.bounded
    {
        let text = format!("stream<{}> has no end and cannot be gathered", known.label);
        return Err(ErrorValue::new(code::STREAM_UNBOUNDED, text)
            .with_hint("bound it with `.take(n)` or `.take_until(p)`, or use `.each(f)`")
            .into());
    }
    take(machine, stream)?.gather(machine)
}
