//! The state of one evaluator.

use std::sync::Arc;

use shoal_value::{Value, error::Span};

use crate::host::{Host, Run};
use crate::place::{Place, PlaceChanges};
use crate::registry::Given;
use crate::scope::Root;
use crate::unwind::{Eval, Stop};

/// What all evaluators of a session share.
pub(crate) struct Session {
    pub(crate) host: Arc<dyn Host>,
}

/// Steps between two looks at the token and the meter.
const STEPS_PER_CHECK: u32 = 64;

pub(crate) struct Machine {
    pub(crate) session: Arc<Session>,
    pub(crate) run: Run,
    pub(crate) place: Place,
    pub(crate) changes: PlaceChanges,
    pub(crate) root: Arc<Root>,
    steps: u32,
}

impl Machine {
    pub(crate) fn span_here(&self) -> Option<Span> {
        None
    }

    pub(crate) fn in_function(&self) -> bool {
        false
    }

    /// Counts `n` steps; now and then looks whether the run is to end.
    #[inline]
    pub(crate) fn step(&mut self, n: u32) -> Eval<()> {
        self.steps += n;
        if self.steps < STEPS_PER_CHECK { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&mut self) -> Eval<()> {
        let steps = std::mem::take(&mut self.steps);
        if let Some(reason) = self.run.cancel.reason() {
            return Err(Stop::Cancelled(reason).into());
        }
        self.run.meter.step(u64::from(steps)).map_err(|text| Stop::Budget(text).into())
    }

    pub(crate) fn call_value(&mut self, callee: &Value, args: &[Value]) -> Eval<Value> {
        let _ = args;
        Ok(callee.clone())
    }

    pub(crate) fn call_given(&mut self, callee: &Value, _given: Given) -> Eval<Value> {
        Ok(callee.clone())
    }

    pub(crate) fn call_method(&mut self, receiver: Value, _name: &str, _given: Given) -> Eval<Value> {
        Ok(receiver)
    }
}
