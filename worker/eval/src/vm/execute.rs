//! The loop over the operations of one function.

use shoal_value::{Value, ops};

use super::callees::Body;
use super::frame::{Calls, Handler, Here, Loop, LoopState, Position};
use super::ints::{Ints, combine, int_in_place};
use super::operands::put_int;
use super::run::{Call, Exit};
use super::steps::settled;
use crate::code::{Code, Op};
use crate::ctx::condition;
use crate::machine::Machine;
use crate::unwind::{Eval, Unwind};

impl Machine {
    /// Runs operations from `at` until a function that is not kept calls, returns or is entered, or something raises;
    /// `at` is then one after the last operation. Without `calls` it runs a leaf: there is no frame, and it may only compute.
    pub(super) fn execute<'a>(&mut self, body: &Body, at: &mut Position<'a>, calls: Option<Calls<'a>>) -> Eval<Exit> {
        let mut body = body;
        let mut code: &Code = &body.lambda.code;
        let mut ops = &code.ops[..];
        let Position { mut kept, mut base, mut cells, pc: mut next } = *at;
        // Goes on in another frame.
        macro_rules! go {
            ($position:expr) => {{
                Position { kept, base, cells, pc: next } = $position;
                if let Some(kept) = kept {
                    body = kept;
                }
                code = &body.lambda.code;
                ops = &code.ops[..];
            }};
        }
        macro_rules! leave {
            ($exit:expr) => {{
                *at = Position { kept, base, cells, pc: next };
                return $exit;
            }};
        }
        macro_rules! pop {
            () => {
                self.stack.pop().unwrap_or(Value::Null)
            };
        }
        macro_rules! attempt {
            ($e:expr) => {
                match $e {
                    Ok(value) => value,
                    Err(unwind) => leave!(Err(Unwind::from(unwind))),
                }
            };
        }
        // A call: the frame remembers where to go on, and the place is known to natives.
        macro_rules! call {
            ($e:expr) => {{
                self.here = code.places[next - 1];
                match $e {
                    Ok(Call::Done(value)) => self.stack.push(value),
                    Ok(Call::Entered) => leave!(Ok(Exit::Entered)),
                    Err(unwind) => leave!(Err(unwind)),
                }
            }};
        }
        macro_rules! push_ints {
            ($op:expr, $left:expr, $right:expr) => {
                match combine($op, $left, $right) {
                    Ints::Int(n) => self.stack.push_int(n),
                    Ints::Truth(truth) => self.stack.push_bool(truth),
                    Ints::General => {
                        let value = attempt!(ops::binary($op, Value::Int($left), Value::Int($right)));
                        self.stack.push(value);
                    }
                }
            };
        }
        loop {
            let op = ops[next];
            next += 1;
            match op {
                Op::Nop => {}
                Op::Const(at) => self.stack.push_copy(&code.tables.consts[at as usize]),
                Op::Int(n) => self.stack.push_int(n.into()),
                Op::Null => self.stack.push(Value::Null),
                Op::Bool(truth) => self.stack.push_bool(truth),
                Op::Pop => self.stack.drop_top(),
                Op::Settle => {
                    if let Some(Value::Outcome(outcome)) = self.stack.last() {
                        attempt!(settled(outcome));
                    }
                    self.stack.drop_top();
                }
                Op::Dup => self.stack.copy_up(self.stack.len() - 1),
                Op::Local(at) => self.stack.copy_up(base + at as usize),
                Op::SetLocal(at) => {
                    if let Some(Value::Int(n)) = self.stack.last() {
                        let n = *n;
                        put_int(&mut self.stack[base + at as usize], n);
                        self.stack.drop_top();
                    } else {
                        self.stack[base + at as usize] = pop!();
                    }
                }
                Op::UpdateLocal(at, op) => {
                    let at = base + at as usize;
                    let number = if let Some(Value::Int(right)) = self.stack.last() { Some(*right) } else { None };
                    if number.is_some_and(|right| int_in_place(op, &mut self.stack[at], right)) {
                        self.stack.drop_top();
                    } else {
                        let right = pop!();
                        attempt!(self.update_slot(at, op, right));
                    }
                }
                Op::UpdateLocalInt(op, at, right) => {
                    let at = base + usize::from(at);
                    if !int_in_place(op, &mut self.stack[at], right.into()) {
                        attempt!(self.update_slot(at, op, Value::Int(right.into())));
                    }
                }
                Op::UpdateLocals(op, at, right) => {
                    let (at, right) = (base + usize::from(at), base + usize::from(right));
                    let number = if let Value::Int(n) = &self.stack[right] { Some(*n) } else { None };
                    if !number.is_some_and(|n| int_in_place(op, &mut self.stack[at], n)) {
                        attempt!(self.update_slot(at, op, self.stack[right].clone()));
                    }
                }
                // Ints are combined in place: a value that is made and then moved costs more than the sum.
                Op::Binary(op) => {
                    if let [.., left, Value::Int(right)] = &mut *self.stack
                        && int_in_place(op, left, *right)
                    {
                        self.stack.drop_top();
                    } else {
                        let right = pop!();
                        let left = pop!();
                        attempt!(self.announce(op, &left, &right));
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
                Op::BinaryLocals(op, left, right) => {
                    match (&self.stack[base + left as usize], &self.stack[base + right as usize]) {
                        (Value::Int(left), Value::Int(right)) => {
                            let (left, right) = (*left, *right);
                            push_ints!(op, left, right);
                        }
                        (left, right) => {
                            attempt!(self.announce(op, left, right));
                            let value = attempt!(ops::binary(op, left.clone(), right.clone()));
                            self.stack.push(value);
                        }
                    }
                }
                Op::BinaryLocalInt(op, local, right) => match &self.stack[base + local as usize] {
                    Value::Int(left) => {
                        let left = *left;
                        push_ints!(op, left, i64::from(right));
                    }
                    left => {
                        let value = attempt!(ops::binary(op, left.clone(), Value::Int(right.into())));
                        self.stack.push(value);
                    }
                },
                Op::UnlessLocals(op, left, right, target) => {
                    let truth = match (&self.stack[base + left as usize], &self.stack[base + right as usize]) {
                        (Value::Int(left), Value::Int(right)) => {
                            matches!(combine(op, *left, *right), Ints::Truth(true))
                        }
                        (left, right) => attempt!(is_true(op, left.clone(), right.clone())),
                    };
                    if !truth {
                        next = target as usize;
                    }
                }
                Op::UnlessLocalInt(op, local, right, target) => {
                    let truth = match &self.stack[base + local as usize] {
                        Value::Int(left) => matches!(combine(op, *left, right.into()), Ints::Truth(true)),
                        left => attempt!(is_true(op, left.clone(), Value::Int(right.into()))),
                    };
                    if !truth {
                        next = target as usize;
                    }
                }
                Op::UnlessInt(op, right, target) => {
                    let truth = match self.stack.last() {
                        Some(Value::Int(left)) => {
                            let truth = matches!(combine(op, *left, right.into()), Ints::Truth(true));
                            self.stack.drop_top();
                            truth
                        }
                        _ => attempt!(is_true(op, pop!(), Value::Int(right.into()))),
                    };
                    if !truth {
                        next = target as usize;
                    }
                }
                Op::LocalField(local, name) => {
                    let local = base + local as usize;
                    let name = &code.tables.names[name as usize];
                    let member = match &self.stack[local] {
                        Value::Record(record) => record.get(name).cloned(),
                        _ => None,
                    };
                    match member {
                        Some(member) => self.stack.push(member),
                        None => {
                            self.stack.copy_up(local);
                            call!(self.field(name));
                        }
                    }
                }
                Op::Not => {
                    let truth = attempt!(condition(self.stack.last().unwrap_or(&Value::Null)));
                    self.stack.drop_top();
                    self.stack.push_bool(!truth);
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
                    let truth = attempt!(condition(self.stack.last().unwrap_or(&Value::Null)));
                    self.stack.drop_top();
                    if !truth {
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
                    Some(Value::Null) => self.stack.drop_top(),
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
                    if !self.push_item() {
                        next = target as usize;
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
                    if !self.matches(code, &body.linked, (base, cells), pattern, &value) {
                        next = target as usize;
                    }
                }
                Op::Given(param, target) => {
                    let more = self.frames.last().and_then(|frame| frame.more.as_ref());
                    if more.is_none_or(|more| !more.missing.contains(&param)) {
                        next = target as usize;
                    }
                }
                Op::Return => {
                    if code.ret.is_some() {
                        let value = attempt!(self.returned(code));
                        self.stack.push(value);
                    }
                    let waiting = match calls {
                        Some(calls) if kept.is_some() && self.frames.len() > calls.floor + 1 => {
                            self.position(self.frames.len() - 2, calls)
                        }
                        _ => leave!(Ok(Exit::Returned)),
                    };
                    if waiting.kept.is_none() {
                        leave!(Ok(Exit::Returned));
                    }
                    self.leave_frame();
                    go!(waiting);
                }
                Op::Method(site) => {
                    let site = &code.tables.methods[site as usize];
                    if calls.is_none() && !self.only_computes(site) {
                        leave!(Ok(Exit::Bailed));
                    }
                    call!(self.method_site(site));
                }
                Op::CallName(site) => {
                    let site = &code.tables.calls[site as usize];
                    let n = site.positional as usize;
                    let known = match calls {
                        Some(calls) if site.named.is_empty() => self.callee(calls.callees, body.linked.cell(site.name)),
                        _ => None,
                    };
                    if let (Some(calls), Some((_, callee))) = (calls, known)
                        && attempt!(self.call_shortly(calls.callees, callee, n))
                    {
                        continue;
                    }
                    let entered = match (known, self.frames.last_mut()) {
                        (Some((number, callee)), Some(waiting)) => {
                            waiting.pc = next;
                            let body = &callee.body;
                            attempt!(self.enter_callee(number, body, n)).then_some(body)
                        }
                        _ => None,
                    };
                    match entered {
                        None => call!(self.call_name(site, &body.linked)),
                        Some(_) if kept.is_none() => leave!(Ok(Exit::Entered)),
                        Some(callee) => {
                            let base = self.stack.len() - callee.lambda.code.locals as usize;
                            let cells = self.cells.len() - callee.lambda.code.cells as usize;
                            go!(Position { kept: Some(callee), base, cells, pc: 0 });
                        }
                    }
                }
                Op::Call(site) => call!(self.call_site(&code.tables.calls[site as usize])),
                Op::Root(name) => {
                    if !self.push_root(body.linked.cell(name)) {
                        if calls.is_none() {
                            leave!(Ok(Exit::Bailed));
                        }
                        call!(self.root_value(&body.linked, name, false));
                    }
                }
                Op::AssignRoot(name) if self.assign_root_var(&body.linked, name) => {}
                Op::UpdateRoot(name, binary) if self.update_root_int(&body.linked, name, binary) => {}
                Op::RootReceiver(name) => call!(self.root_value(&body.linked, name, true)),
                Op::Command(site) => call!(self.command_op(&code.tables.commands[site as usize], &body.linked)),
                Op::Feed(site) => {
                    let fed = self.feed_op(&code.tables.feeds[site as usize], &body.linked);
                    call!(fed.map(Call::Done));
                }
                Op::Plan(site) => {
                    let plan = self.plan(&code.tables.plans[site as usize], &code.unit, &body.linked.root);
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
                    let here = Here { lambda: &body.lambda, linked: &body.linked, base, cells };
                    attempt!(self.rare(op, here, &mut next));
                }
            }
        }
    }
}

/// A comparison as a condition.
fn is_true(op: ops::BinaryOp, left: Value, right: Value) -> Result<bool, shoal_value::ErrorValue> {
    condition(&ops::binary(op, left, right)?)
}
