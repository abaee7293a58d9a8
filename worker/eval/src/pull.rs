//! Items of a stream for a host: what a client fetches of a result that is a stream.

use std::sync::Arc;

use shoal_value::{ErrorValue, StreamSource, Value};

use crate::host::Run;
use crate::machine::Machine;
use crate::request::{Evaluators, State};
use crate::scope::{Root, RootKind};
use crate::stream::{self, Taken};
use crate::unwind::Unwind;

/// A stream taken from its value. Must be used on a thread made by [`crate::stack::spawn_evaluator`]: its source may call
/// closures.
pub struct Pulled {
    source: Taken,
    machine: Machine,
}

impl Evaluators {
    /// Takes a stream to pull its items in a state; `stream_consumed` if a program has taken it.
    pub fn pull(&self, of: &Arc<dyn StreamSource>, state: &State, run: Run) -> Result<Pulled, ErrorValue> {
        let root = Root::new(RootKind::Session, state.bindings.clone());
        let mut machine = Machine::new(self.0.clone(), run, state.place.clone(), root);
        machine.transcript.clone_from(&state.transcript);
        let source = stream::take(&mut machine, of).map_err(raised)?;
        Ok(Pulled { source, machine })
    }
}

impl Pulled {
    /// The next item; none at the end. It is not asked again after an end or an error.
    pub fn next_item(&mut self) -> Result<Option<Value>, ErrorValue> {
        self.source.next(&mut self.machine).map_err(raised)
    }
}

fn raised(unwind: Unwind) -> ErrorValue {
    match unwind {
        Unwind::Raise(error) => error,
        Unwind::Stop(stop) => stop
            .error()
            .unwrap_or_else(|| ErrorValue::new(shoal_value::code::CUSTOM, "the source of the stream ended with exit")),
    }
}
