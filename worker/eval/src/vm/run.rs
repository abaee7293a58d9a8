//! The loop over operations.

use std::sync::Arc;

use shoal_value::ops::{self, BinaryOp};
use shoal_value::{Value, code};

use super::frame::{Handler, Linked, Loop, LoopState};
use crate::code::{Code, Op};
use crate::ctx::condition;
use crate::machine::Machine;
use crate::unwind::{Eval, Unwind};

/// Why the loop left a frame.
enum Exit {
    /// Another frame is on top.
    Entered,
    /// The function has this value.
    Returned(Value),
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
        loop {
            let Some(frame) = self.frames.last() else { return Ok(Value::Null) };
            let (lambda, linked) = (frame.lambda.clone(), frame.linked.clone());
            let mut pc = frame.pc;
            match self.execute(&lambda.code, &linked, (frame.base, frame.cells), &mut pc) {
                Ok(Exit::Entered) => {}
                Ok(Exit::Returned(value)) => {
                    self.pop_frame();
                    if self.frames.len() == floor {
                        return Ok(value);
                    }
                    self.stack.push(value);
                }
                Err(unwind) => {
                    let place = lambda.code.places[pc.saturating_sub(1)];
                    self.catch(unwind, || lambda.code.unit.span(place), floor)?;
                }
            }
        }
    }

    /// Runs operations of the frame on top until it calls, returns or raises. `pc` is one after the last operation.
    fn execute(
        &mut self,
        code: &Arc<Code>,
        linked: &Linked,
        (base, cells): (usize, usize),
        pc: &mut usize,
    ) -> Eval<Exit> {
        let ops = &code.ops;
        let mut next = *pc;
        macro_rules! pop {
            () => {
                self.stack.pop().unwrap_or(Value::Null)
            };
        }
        macro_rules! attempt {
            ($e:expr) => {
                match $e {
                    Ok(value) => value,
                    Err(unwind) => {
                        *pc = next;
                        return Err(Unwind::from(unwind));
                    }
                }
            };
        }
        // A call: the frame remembers where to go on, and the place is known to natives.
        macro_rules! call {
            ($e:expr) => {{
                self.here = code.places[next - 1];
                match $e {
                    Ok(Call::Done(value)) => self.stack.push(value),
                    Ok(Call::Entered) => {
                        let caller = self.frames.len() - 2;
                        self.frames[caller].pc = next;
                        return Ok(Exit::Entered);
                    }
                    Err(unwind) => {
                        *pc = next;
                        return Err(unwind);
                    }
                }
            }};
        }
        loop {
            let op = ops[next];
            next += 1;
            match op {
                Op::Nop => {}
                Op::Const(at) => self.stack.push(code.tables.consts[at as usize].clone()),
                Op::Int(n) => self.stack.push(Value::Int(n.into())),
                Op::Null => self.stack.push(Value::Null),
                Op::Bool(truth) => self.stack.push(Value::Bool(truth)),
                Op::Pop => drop(self.stack.pop()),
                Op::Dup => {
                    let top = self.stack.last().cloned().unwrap_or(Value::Null);
                    self.stack.push(top);
                }
                Op::Local(at) => {
                    let value = self.stack[base + at as usize].clone();
                    self.stack.push(value);
                }
                Op::SetLocal(at) => {
                    let value = pop!();
                    self.stack[base + at as usize] = value;
                }
                Op::UpdateLocal(at, op) => {
                    let right = pop!();
                    let slot = &mut self.stack[base + at as usize];
                    if let (BinaryOp::Add, Value::Int(a), Value::Int(b)) = (op, &*slot, &right)
                        && let Some(sum) = a.checked_add(*b)
                    {
                        *slot = Value::Int(sum);
                    } else {
                        let left = std::mem::replace(slot, Value::Null);
                        attempt!(self.update_local(base + at as usize, op, left, right));
                    }
                }
                Op::Binary(op) => {
                    let right = pop!();
                    let left = pop!();
                    let value = match (&left, &right) {
                        (Value::Int(a), Value::Int(b)) => int_binary(op, *a, *b),
                        _ => None,
                    };
                    match value {
                        Some(value) => self.stack.push(value),
                        None => {
                            let value = attempt!(ops::binary(op, left, right));
                            self.stack.push(value);
                        }
                    }
                }
                Op::BinaryInt(op, right) => {
                    let left = pop!();
                    let value = match &left {
                        Value::Int(a) => int_binary(op, *a, right.into()),
                        _ => None,
                    };
                    match value {
                        Some(value) => self.stack.push(value),
                        None => {
                            let value = attempt!(ops::binary(op, left, Value::Int(right.into())));
                            self.stack.push(value);
                        }
                    }
                }
                Op::Not => {
                    let value = attempt!(condition(&pop!()));
                    self.stack.push(Value::Bool(!value));
                }
                Op::Negate => {
                    let value = attempt!(ops::negate(&pop!()));
                    self.stack.push(value);
                }
                Op::Jump(target) => next = target as usize,
                Op::Loop(target) => {
                    attempt!(self.step(1));
                    next = target as usize;
                }
                Op::JumpUnless(target) => {
                    if !attempt!(condition(&pop!())) {
                        next = target as usize;
                    }
                }
                Op::And(target, echo) | Op::Or(target, echo) => {
                    let holds = attempt!(condition(self.stack.last().unwrap_or(&Value::Null)));
                    if holds == matches!(op, Op::Or(..)) {
                        next = target as usize;
                    } else {
                        let left = pop!();
                        if echo {
                            self.run.sink.value(&left, true);
                        }
                    }
                }
                Op::Coalesce(target) => match self.stack.last() {
                    Some(Value::Null) => drop(self.stack.pop()),
                    _ => next = target as usize,
                },
                Op::IfNull(target) => {
                    if let Some(Value::Null) = self.stack.last() {
                        next = target as usize;
                    }
                }
                Op::Endless => self.loops.push(LoopState { items: Loop::Endless, stack: self.stack.len() }),
                Op::Cut => {
                    if let Some(state) = self.loops.last() {
                        self.stack.truncate(state.stack);
                    }
                }
                Op::Iter => {
                    let value = pop!();
                    let items = attempt!(self.loop_over(value));
                    self.loops.push(LoopState { items, stack: self.stack.len() });
                }
                Op::IterNext(target) => {
                    attempt!(self.step(1));
                    match self.loops.last_mut().and_then(|state| state.items.next()) {
                        Some(item) => self.stack.push(item),
                        None => {
                            self.loops.pop();
                            next = target as usize;
                        }
                    }
                }
                Op::IterDrop => drop(self.loops.pop()),
                Op::Step => attempt!(self.step(1)),
                Op::Try(target) => self.handlers.push(Handler {
                    frame: self.frames.len() - 1,
                    target: target as usize,
                    stack: self.stack.len(),
                    heights: self.heights(),
                }),
                Op::TryEnd => drop(self.handlers.pop()),
                Op::Match(pattern, target) => {
                    let value = pop!();
                    if !self.matches(code, linked, (base, cells), pattern, &value) {
                        next = target as usize;
                    }
                }
                Op::Given(param, target) => {
                    if self.frames.last().is_some_and(|frame| !frame.missing.contains(&param)) {
                        next = target as usize;
                    }
                }
                Op::Return => return Ok(Exit::Returned(attempt!(self.returned(code)))),
                Op::Method(site) => call!(self.method_site(&code.tables.methods[site as usize])),
                Op::Call(site) => call!(self.call_site(&code.tables.calls[site as usize])),
                Op::CallName(site) => call!(self.call_name(&code.tables.calls[site as usize], linked)),
                Op::Root(name) => call!(self.root_value(linked, name, false)),
                Op::RootReceiver(name) => call!(self.root_value(linked, name, true)),
                Op::Command(site) => call!(self.command_op(&code.tables.commands[site as usize], linked)),
                Op::Feed(site) => {
                    let fed = self.feed_op(&code.tables.feeds[site as usize], linked);
                    call!(fed.map(Call::Done));
                }
                Op::Plan(site) => {
                    let plan = self.plan(&code.tables.plans[site as usize], &code.unit, &linked.root);
                    call!(plan.map(Call::Done));
                }
                Op::Use(site) => {
                    let module = self.use_module(&code.tables.uses[site as usize]);
                    call!(module.map(Call::Done));
                }
                Op::Field(name) => call!(self.field(&code.tables.names[name as usize])),
                op => {
                    self.here = code.places[next - 1];
                    attempt!(self.rare(op, code, linked, (base, cells), &mut next));
                }
            }
        }
    }

    /// Goes on at the nearest handler above `floor`, or leaves all frames above it.
    fn catch(&mut self, unwind: Unwind, span: impl FnOnce() -> shoal_value::Span, floor: usize) -> Eval<()> {
        let unwind = match unwind {
            Unwind::Raise(error) if error.span.is_none() => Unwind::Raise(error.or_span(span())),
            other => other,
        };
        let handler = self.handlers.last().copied().filter(|handler| handler.frame >= floor);
        if let (Unwind::Raise(error), Some(handler)) = (&unwind, handler) {
            while self.frames.len() > handler.frame + 1 {
                self.pop_frame();
            }
            self.restore(handler.heights);
            self.handlers.pop();
            self.stack.truncate(handler.stack);
            self.stack.push(Value::Error(error.clone()));
            if let Some(frame) = self.frames.last_mut() {
                frame.pc = handler.target;
            }
            return Ok(());
        }
        while self.frames.len() > floor {
            self.pop_frame();
        }
        Err(unwind)
    }

    #[inline(never)]
    fn update_local(
        &mut self,
        at: usize,
        op: BinaryOp,
        left: Value,
        right: Value,
    ) -> Result<(), shoal_value::ErrorValue> {
        // An operator that fails leaves the variable as it was.
        let kept =
            if matches!(left, Value::List(_) | Value::Table(_)) && matches!(right, Value::List(_) | Value::Table(_)) {
                None
            } else {
                Some(left.clone())
            };
        match ops::binary(op, left, right) {
            Ok(value) => {
                self.stack[at] = value;
                Ok(())
            }
            Err(error) => {
                if let Some(kept) = kept {
                    self.stack[at] = kept;
                }
                Err(error)
            }
        }
    }
}

/// Operators on ints without the paths that fail.
#[inline]
fn int_binary(op: BinaryOp, a: i64, b: i64) -> Option<Value> {
    Some(match op {
        BinaryOp::Add => Value::Int(a.checked_add(b)?),
        BinaryOp::Sub => Value::Int(a.checked_sub(b)?),
        BinaryOp::Mul => Value::Int(a.checked_mul(b)?),
        BinaryOp::Rem if b > 0 => Value::Int(a % b),
        BinaryOp::Less => Value::Bool(a < b),
        BinaryOp::LessEqual => Value::Bool(a <= b),
        BinaryOp::Greater => Value::Bool(a > b),
        BinaryOp::GreaterEqual => Value::Bool(a >= b),
        BinaryOp::Equal => Value::Bool(a == b),
        BinaryOp::NotEqual => Value::Bool(a != b),
        _ => return None,
    })
}

/// The error of control flow that has nowhere to go.
pub(crate) fn stray(word: &str, place: &str) -> shoal_value::ErrorValue {
    shoal_value::ErrorValue::new(code::CUSTOM, format!("`{word}` outside {place}"))
}
