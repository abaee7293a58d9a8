//! Running frames: calls, returns, errors.

use shoal_value::{Value, code};

use super::frame::Active;
use crate::machine::Machine;
use crate::unwind::{Eval, Unwind};

/// Why the loop over operations ended.
pub(super) enum Exit {
    /// Another frame is on top.
    Entered,
    /// The function's value is on top of the stack.
    Returned,
    /// It has no frame and met something that needs one.
    Bailed,
}

/// What an operation that may call did.
pub(crate) enum Call {
    /// It has a value.
    Done(Value),
    /// It pushed a frame, whose value will be its own.
    Entered,
}

impl Machine {
    /// Runs until `floor` frames are left, and gives the value of the last one removed.
    pub(crate) fn run(&mut self, floor: usize) -> Eval<Value> {
        debug_assert!(self.frames.len() > floor, "there is a frame to run");
        if floor > crate::stack::DEEP {
            self.run.meter.went_deep();
        }
        let mut callers: Vec<Active> = Vec::new();
        let mut active = self.activate();
        loop {
            let mut pc = active.pc;
            let left = self.execute(active.here(), &mut pc);
            active.pc = pc;
            match left {
                Ok(Exit::Entered) => {
                    let entered = self.activate();
                    callers.push(std::mem::replace(&mut active, entered));
                }
                Ok(Exit::Returned | Exit::Bailed) => {
                    self.leave_frame();
                    match callers.pop() {
                        Some(caller) => active = caller,
                        None => return Ok(self.stack.pop().unwrap_or(Value::Null)),
                    }
                }
                Err(unwind) => {
                    let code = &active.lambda.code;
                    let place = code.places[pc.saturating_sub(1)];
                    let target = self.catch(unwind, || code.unit.span(place), floor)?;
                    // One held frame per frame above the floor.
                    while self.frames.len() - floor <= callers.len()
                        && let Some(caller) = callers.pop()
                    {
                        active = caller;
                    }
                    active.pc = target;
                }
            }
        }
    }

    /// The frame on top, to be run from its start.
    fn activate(&mut self) -> Active {
        let frame = self.frames.last().unwrap_or_else(|| unreachable!("the caller has pushed a frame"));
        let (lambda, base, cells) = (frame.lambda.clone(), frame.base, frame.cells);
        let linked = match &lambda.linked {
            Some(linked) => linked.clone(),
            None => self.link(&lambda.code.unit),
        };
        Active { lambda, linked, base, cells, pc: 0 }
    }

    /// The operation to go on at, of the nearest handler above `floor`; or leaves all frames above it.
    fn catch(&mut self, unwind: Unwind, span: impl FnOnce() -> shoal_value::Span, floor: usize) -> Eval<usize> {
        let unwind = match unwind {
            Unwind::Raise(error) if error.span.is_none() => Unwind::Raise(error.or_span(span())),
            other => other,
        };
        let handler = self.handlers.last().copied().filter(|handler| handler.frame >= floor);
        if let (Unwind::Raise(error), Some(handler)) = (&unwind, handler) {
            while self.frames.len() > handler.frame + 1 {
                self.pop_frame();
            }
            // Also drops this handler, and leaves those around it.
            self.restore(handler.heights);
            self.stack.truncate(handler.stack);
            self.stack.push(Value::Error(error.clone()));
            return Ok(handler.target);
        }
        while self.frames.len() > floor {
            self.pop_frame();
        }
        Err(unwind)
    }
}

/// The error of control flow that has nowhere to go.
pub(crate) fn stray(word: &str, place: &str) -> shoal_value::ErrorValue {
    shoal_value::ErrorValue::new(code::CUSTOM, format!("`{word}` outside {place}"))
}
