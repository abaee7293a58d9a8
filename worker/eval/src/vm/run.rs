//! The loop over operations.

use shoal_value::ops::{self, BinaryOp};
use shoal_value::{Value, code};

use super::frame::{Active, Handler, Linked, Loop, LoopState};
use crate::code::Op;
use crate::ctx::condition;
use crate::machine::Machine;
use crate::scope::BindingKind;
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
        let mut callers: Vec<Active> = Vec::new();
        let mut active = self.activate();
        loop {
            let mut pc = active.pc;
            let left = self.execute(&active, &mut pc);
            active.pc = pc;
            match left {
                Ok(Exit::Entered) => {
                    let entered = self.activate();
                    callers.push(std::mem::replace(&mut active, entered));
                }
                Ok(Exit::Returned(value)) => {
                    self.pop_frame();
                    match callers.pop() {
                        Some(caller) => active = caller,
                        None => return Ok(value),
                    }
                    self.stack.push(value);
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

    /// Runs operations of the frame on top until it calls, returns or raises. `pc` is one after the last operation.
    fn execute(&mut self, active: &Active, pc: &mut usize) -> Eval<Exit> {
        let (code, linked, base, cells) = (&active.lambda.code, &*active.linked, active.base, active.cells);
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
                        *pc = next;
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
                    if !matches!(right, Value::Int(right) if int_in_place(op, slot, right)) {
                        let left = std::mem::replace(slot, Value::Null);
                        attempt!(self.update_local(base + at as usize, op, left, right));
                    }
                }
                // Ints are combined in place: a value that is made and then moved costs more than the sum.
                Op::Binary(op) => {
                    if let [.., left, Value::Int(right)] = &mut self.stack[..]
                        && int_in_place(op, left, *right)
                    {
                        self.stack.pop();
                    } else {
                        let right = pop!();
                        let left = pop!();
                        let value = attempt!(ops::binary(op, left, right));
                        self.stack.push(value);
                    }
                }
                Op::BinaryInt(op, right) => {
                    let right = i64::from(right);
                    if !self.stack.last_mut().is_some_and(|left| int_in_place(op, left, right)) {
                        let left = pop!();
                        let value = attempt!(ops::binary(op, left, Value::Int(right)));
                        self.stack.push(value);
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
                Op::Root(name) => match linked.cell(name).value() {
                    Some(value) => self.stack.push(value),
                    None => call!(self.root_value(linked, name, false)),
                },
                Op::AssignRoot(name) if self.assign_root_var(linked, name) => {}
                Op::UpdateRoot(name, binary) if self.update_root_int(linked, name, binary) => {}
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
                Op::Field(name) => {
                    let name = &code.tables.names[name as usize];
                    let member = match self.stack.last() {
                        Some(Value::Record(record)) => record.get(name).cloned(),
                        _ => None,
                    };
                    match (member, self.stack.last_mut()) {
                        (Some(member), Some(top)) => *top = member,
                        _ => call!(self.field(name)),
                    }
                }
                op => {
                    self.here = code.places[next - 1];
                    attempt!(self.rare(op, active, &mut next));
                }
            }
        }
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
            self.restore(handler.heights);
            self.handlers.pop();
            self.stack.truncate(handler.stack);
            self.stack.push(Value::Error(error.clone()));
            return Ok(handler.target);
        }
        while self.frames.len() > floor {
            self.pop_frame();
        }
        Err(unwind)
    }

    /// Assigns the value on top to a `var`; false if it is none, with the stack as it was.
    #[inline]
    fn assign_root_var(&mut self, linked: &Linked, name: u32) -> bool {
        let mut slot = linked.cell(name).lock();
        let Some(binding) = slot.binding.as_mut().filter(|binding| binding.kind == BindingKind::Var) else {
            return false;
        };
        let Some(right) = self.stack.pop() else { return false };
        let before = std::mem::replace(&mut binding.value, right);
        slot.touched = true;
        drop(slot);
        // Dropped outside the lock: a value may own cells of its own.
        drop(before);
        true
    }

    /// A compound assignment of an int to an int; false if it is something else, with the stack as it was.
    #[inline]
    fn update_root_int(&mut self, linked: &Linked, name: u32, op: BinaryOp) -> bool {
        let Some(Value::Int(right)) = self.stack.last() else { return false };
        let mut slot = linked.cell(name).lock();
        let Some(binding) = slot.binding.as_mut().filter(|binding| binding.kind == BindingKind::Var) else {
            return false;
        };
        if !int_in_place(op, &mut binding.value, *right) {
            return false;
        }
        slot.touched = true;
        drop(slot);
        self.stack.pop();
        true
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

/// `left op right` in the place of `left`; false if it is no int, or the result needs the general way.
#[inline]
fn int_in_place(op: BinaryOp, left: &mut Value, right: i64) -> bool {
    let Value::Int(a) = left else { return false };
    let truth = match op {
        BinaryOp::Less => *a < right,
        BinaryOp::LessEqual => *a <= right,
        BinaryOp::Greater => *a > right,
        BinaryOp::GreaterEqual => *a >= right,
        BinaryOp::Equal => *a == right,
        BinaryOp::NotEqual => *a != right,
        _ => {
            let result = match op {
                BinaryOp::Add => a.checked_add(right),
                BinaryOp::Sub => a.checked_sub(right),
                BinaryOp::Mul => a.checked_mul(right),
                BinaryOp::Rem if right > 0 => Some(*a % right),
                _ => None,
            };
            let Some(result) = result else { return false };
            *a = result;
            return true;
        }
    };
    *left = Value::Bool(truth);
    true
}

/// The error of control flow that has nowhere to go.
pub(crate) fn stray(word: &str, place: &str) -> shoal_value::ErrorValue {
    shoal_value::ErrorValue::new(code::CUSTOM, format!("`{word}` outside {place}"))
}
