//! Running frames: calls, returns, errors.

use std::sync::Arc;

use shoal_value::{Value, code};

use super::callees::Body;
use super::frame::{Caller, Calls, Frame, Function, Lambda, Position};
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
        let callees = self.callees.clone();
        let first = self.top_body();
        let mut calls = Calls { callers: Vec::new(), callees: &callees };
        // The function of the running frame, if nothing else keeps it.
        let mut own: Option<Body> = None;
        let mut at = self.top_position(Some(&first));
        loop {
            let body = at.kept.or(own.as_ref()).unwrap_or(&first);
            match self.execute(body, &mut at, Some(&mut calls)) {
                Ok(Exit::Entered) => {
                    let caller = Caller { own: own.take(), at };
                    calls.callers.push(caller);
                    (own, at) = match self.frames.last().map(|frame| &frame.function) {
                        Some(Function::Callee(number)) => (None, self.top_position(Some(callees.body(*number)))),
                        _ => (Some(self.top_body()), self.top_position(None)),
                    };
                }
                Ok(Exit::Returned | Exit::Bailed) => {
                    self.leave_frame();
                    match calls.callers.pop() {
                        Some(caller) => Caller { own, at } = caller,
                        None => return Ok(self.stack.pop().unwrap_or(Value::Null)),
                    }
                }
                Err(unwind) => {
                    let code = &at.kept.or(own.as_ref()).unwrap_or(&first).lambda.code;
                    let place = code.places[at.pc.saturating_sub(1)];
                    let target = self.catch(unwind, || code.unit.span(place), floor)?;
                    // One waiting frame per frame above the floor but the running one.
                    while self.frames.len() - floor <= calls.callers.len()
                        && let Some(caller) = calls.callers.pop()
                    {
                        Caller { own, at } = caller;
                    }
                    at.pc = target;
                }
            }
        }
    }

    /// The function of a frame.
    pub(crate) fn lambda_of<'a>(&'a self, frame: &'a Frame) -> &'a Arc<Lambda> {
        match &frame.function {
            Function::Own(lambda) => lambda,
            Function::Callee(number) => &self.callees.body(*number).lambda,
        }
    }

    /// The function of the frame on top, with its links.
    fn top_body(&mut self) -> Body {
        let frame = self.frames.last().unwrap_or_else(|| unreachable!("the caller has pushed a frame"));
        self.body(self.lambda_of(frame).clone())
    }

    /// A function with its links.
    pub(super) fn body(&mut self, lambda: Arc<Lambda>) -> Body {
        let linked = self.linked_of(&lambda);
        Body { lambda, linked }
    }

    /// The start of the frame on top.
    fn top_position<'a>(&self, kept: Option<&'a Body>) -> Position<'a> {
        let frame = self.frames.last().unwrap_or_else(|| unreachable!("the caller has pushed a frame"));
        Position { kept, base: frame.base, cells: frame.cells, pc: 0 }
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
