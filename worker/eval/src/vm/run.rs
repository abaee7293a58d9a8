//! Running frames: calls, returns, errors.

use std::sync::Arc;

use shoal_value::{Value, code};

use super::callees::Body;
use super::frame::{Calls, Frame, Function, Lambda, Position};
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
        let calls = Calls { floor, first: &first, callees: &callees };
        // Functions of frames above the first that nothing else keeps.
        let mut own: Vec<Body> = Vec::new();
        let mut at = self.position(floor, calls);
        loop {
            let body = at.kept.or(own.last()).unwrap_or(&first);
            match self.execute(body, &mut at, Some(calls)) {
                Ok(Exit::Entered) => {
                    let top = self.frames.len() - 1;
                    self.frames[top - 1].pc = at.pc;
                    at = self.position(top, calls);
                    if at.kept.is_none() {
                        own.push(self.top_body());
                    }
                }
                Ok(Exit::Returned | Exit::Bailed) => {
                    if at.kept.is_none() {
                        own.pop();
                    }
                    self.leave_frame();
                    if self.frames.len() == floor {
                        return Ok(self.stack.pop().unwrap_or(Value::Null));
                    }
                    at = self.position(self.frames.len() - 1, calls);
                }
                Err(unwind) => {
                    let code = &at.kept.or(own.last()).unwrap_or(&first).lambda.code;
                    let place = code.places[at.pc.saturating_sub(1)];
                    let (target, left) = self.catch(unwind, || code.unit.span(place), floor)?;
                    own.truncate(own.len() - left);
                    at = Position { pc: target, ..self.position(self.frames.len() - 1, calls) };
                }
            }
        }
    }

    /// Where frame number `at` goes on.
    #[inline]
    pub(super) fn position<'a>(&self, at: usize, calls: Calls<'a>) -> Position<'a> {
        let frame = &self.frames[at];
        let kept = match &frame.function {
            Function::Callee(number) => Some(calls.callees.body(*number)),
            Function::Own(_) if at == calls.floor => Some(calls.first),
            Function::Own(_) => None,
        };
        Position { kept, base: frame.base, cells: frame.cells, pc: frame.pc }
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

    /// The operation to go on at, of the nearest handler above `floor`, with the number of frames left that had their own
    /// function; or leaves all frames above `floor`.
    fn catch(
        &mut self,
        unwind: Unwind,
        span: impl FnOnce() -> shoal_value::Span,
        floor: usize,
    ) -> Eval<(usize, usize)> {
        let unwind = match unwind {
            Unwind::Raise(error) if error.span.is_none() => Unwind::Raise(error.or_span(span())),
            other => other,
        };
        let handler = self.handlers.last().copied().filter(|handler| handler.frame >= floor);
        if let (Unwind::Raise(error), Some(handler)) = (&unwind, handler) {
            let mut left = 0;
            while self.frames.len() > handler.frame + 1 {
                left += usize::from(matches!(self.frames.last(), Some(Frame { function: Function::Own(_), .. })));
                self.pop_frame();
            }
            // Also drops this handler, and leaves those around it.
            self.restore(handler.heights);
            self.stack.truncate(handler.stack);
            self.stack.push(Value::Error(error.clone()));
            return Ok((handler.target, left));
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
