//! Calls of closures: binding arguments to parameters.

use std::sync::Arc;

use shoal_value::{Callable, ErrorValue, Str, Value};

use super::callees::Body;
use super::frame::{Function, Lambda, More};
use super::leaf::too_deep;
use super::run::Call;
use crate::Ctx;
use crate::code::{Code, CodeKind, Parameter};
use crate::command::Word;
use crate::machine::Machine;
use crate::native::NativeFunction;
use crate::registry::{Args, Given};
use crate::types::{Misfit, Type};
use crate::unwind::Eval;

/// What the frame of a function takes.
#[derive(Clone, Copy)]
struct Room {
    locals: usize,
    cells: usize,
}

impl Room {
    fn of(code: &Code) -> Self {
        Self { locals: code.locals as usize, cells: code.cells as usize }
    }
}

/// Nested calls over all routes; one more is `recursion_limit`.
pub(crate) const MAX_CALLS: usize = 10_000;

impl Machine {
    /// Calls `callee` with the `n` topmost values as positionals and `named` ones.
    pub(crate) fn call_with(&mut self, callee: &Value, n: usize, named: Vec<(Str, Value)>) -> Eval<Call> {
        match callee {
            Value::Closure(callable) => self.call_closure(callable.clone(), n, named),
            Value::Command(alias) => {
                if !named.is_empty() {
                    let text = "an alias takes no named arguments";
                    return Err(ErrorValue::arg_error(text).into());
                }
                let words = self.take(n as u32).into_iter().map(Word::Value).collect();
                self.call_alias(&**alias, words)
            }
            other => Err(not_callable(other).into()),
        }
    }

    /// Calls a closure with the `n` topmost values as positionals and `named` ones.
    pub(crate) fn call_closure(
        &mut self,
        callable: Arc<dyn Callable>,
        n: usize,
        named: Vec<(Str, Value)>,
    ) -> Eval<Call> {
        let any: Arc<dyn std::any::Any + Send + Sync> = callable;
        let native = match any.downcast::<Lambda>() {
            Ok(lambda) => return self.call_lambda(lambda, n, named),
            Err(other) => other.downcast::<NativeFunction>(),
        };
        let native = native.map_err(|_| ErrorValue::type_error("closure is not callable here"))?;
        let positional = self.take(n as u32);
        let args = Args::bind(&native.name, native.row.params, Given { positional, named }, "")?;
        (native.row.run)(&mut Ctx::new(self), args).map(Call::Done)
    }

    /// Calls a lambda with the `n` topmost values as positionals and `named` ones.
    fn call_lambda(&mut self, lambda: Arc<Lambda>, n: usize, named: Vec<(Str, Value)>) -> Eval<Call> {
        if named.is_empty() && self.fit_leaf(&lambda, n)? {
            let surplus = n - lambda.code.params.len();
            self.stack.truncate(self.stack.len() - surplus);
            let leaf = self.body(lambda);
            return match self.run_leaf(&leaf)? {
                Some(value) => Ok(Call::Done(value)),
                None => self.enter(leaf.lambda, n - surplus, named),
            };
        }
        self.enter(lambda, n, named)
    }

    /// Pushes the frame of a closure whose positionals are the `n` topmost values.
    pub(crate) fn enter(&mut self, lambda: Arc<Lambda>, n: usize, named: Vec<(Str, Value)>) -> Eval<Call> {
        self.step(1)?;
        let code = &lambda.code;
        let base = self.stack.len() - n;
        let mut more = None;
        let n = if code.kind == CodeKind::Thunk && n > code.params.len() {
            self.stack.truncate(base + code.params.len());
            code.params.len()
        } else {
            n
        };
        if !(named.is_empty() && self.admit_in_place(code, n)?) {
            let given = Given { positional: self.take(n as u32), named };
            let missing = self.bind_params(&lambda, given)?;
            more = (!missing.is_empty()).then(|| Box::new(More { missing, ..More::default() }));
        }
        self.push_frame(lambda, base, more)?;
        Ok(Call::Entered)
    }

    /// Pushes a frame whose parameters are on the stack from `base`.
    pub(crate) fn push_frame(&mut self, lambda: Arc<Lambda>, base: usize, more: Option<Box<More>>) -> Eval<()> {
        let room = Room::of(&lambda.code);
        self.push(Function::Own(lambda), room, base, more)
    }

    /// Pushes the frame of a function called by name whose positionals are the `n` topmost values; false, and nothing
    /// done, if they have to be bound one by one.
    #[inline(always)]
    pub(super) fn enter_callee(&mut self, number: usize, callee: &Body, n: usize) -> Eval<bool> {
        let code = &callee.lambda.code;
        let fits = code.simple && n == code.params.len();
        if !fits && !self.admit_in_place(code, n)? {
            return Ok(false);
        }
        self.step(1)?;
        let base = self.stack.len() - n;
        self.push(Function::Callee(number), Room::of(code), base, None)?;
        Ok(true)
    }

    /// Checks the `n` topmost values as the parameters they are; false, and nothing done, if they are not one for each.
    fn admit_in_place(&mut self, code: &Code, n: usize) -> Result<bool, ErrorValue> {
        if n != code.params.len() || code.rest.is_some() {
            return Ok(false);
        }
        if !code.simple {
            let base = self.stack.len() - n;
            for (at, param) in (base..).zip(&code.params) {
                if param.ty.is_some() {
                    let value = std::mem::replace(&mut self.stack[at], Value::Null);
                    self.stack[at] = self.admit(param, value)?;
                }
            }
        }
        Ok(true)
    }

    #[inline(always)]
    fn push(&mut self, function: Function, room: Room, base: usize, more: Option<Box<More>>) -> Eval<()> {
        if !self.has_room_for(0) {
            self.stack.truncate(base);
            return Err(too_deep().into());
        }
        self.stack.fill_to(base + room.locals);
        let cells = self.cells.len();
        if room.cells > 0 {
            self.cells.resize_with(cells + room.cells, Arc::default);
        }
        let (loops, places, handlers) = (self.loops.len(), self.places.len(), self.handlers.len());
        let frame = self.frames.push();
        frame.function = function;
        (frame.base, frame.cells, frame.pc) = (base, cells, 0);
        (frame.heights.loops, frame.heights.places, frame.heights.handlers) = (loops, places, handlers);
        if more.is_some() {
            frame.more = more;
        }
        Ok(())
    }

    /// Whether one more call may nest, inside `more` that have no frame.
    #[inline(always)]
    pub(super) fn has_room_for(&self, more: usize) -> bool {
        self.frames.len() + self.depth + more <= MAX_CALLS
    }

    /// Binds arguments and pushes them in the order of the parameters; gives the parameters that take their default.
    fn bind_params(&mut self, lambda: &Lambda, given: Given) -> Result<Vec<u32>, ErrorValue> {
        let code = &lambda.code;
        let (params, rest) = (&code.params, &code.rest);
        if rest.is_none() && given.positional.len() > params.len() {
            return Err(arity(params.len(), given.positional.len()));
        }
        let mut slots: Vec<Option<Value>> = vec![None; params.len()];
        for (name, value) in given.named {
            let at = params.iter().position(|p| p.name == name);
            let at = at.ok_or_else(|| ErrorValue::arg_error(format!("unknown argument `{name}`")))?;
            if slots[at].replace(self.admit(&params[at], value)?).is_some() {
                return Err(ErrorValue::arg_error(format!("argument `{name}` is given twice")));
            }
        }
        let mut free = (0..params.len()).filter(|at| slots[*at].is_none()).collect::<Vec<_>>().into_iter();
        let (mut surplus, total) = (Vec::new(), given.positional.len());
        for value in given.positional {
            match free.next() {
                Some(at) => slots[at] = Some(self.admit(&params[at], value)?),
                None if rest.is_some() => surplus.push(value),
                None => return Err(arity(params.len(), total)),
            }
        }
        let mut missing = Vec::new();
        for (at, (slot, param)) in slots.into_iter().zip(params).enumerate() {
            let value = match slot {
                Some(value) => value,
                None if param.has_default => {
                    missing.push(at as u32);
                    Value::Null
                }
                None if param.ty.as_ref().is_some_and(|ty| ty.nullable && !ty.is_any()) => Value::Null,
                None => return Err(ErrorValue::arg_error(format!("missing argument `{}`", param.name))),
            };
            self.stack.push(value);
        }
        if let Some(rest) = rest {
            if let Some(item) = &rest.item {
                surplus = surplus.into_iter().map(|v| admit_as(&rest.name, item, v)).collect::<Result<_, _>>()?;
            }
            self.stack.push(Value::list(surplus)?);
        }
        Ok(missing)
    }

    /// An argument as the type of its parameter.
    pub(super) fn admit(&self, param: &Parameter, value: Value) -> Result<Value, ErrorValue> {
        let Some(ty) = &param.ty else { return Ok(value) };
        let value = match &ty.item {
            Some(item) => self.coerce_items(item, value)?,
            None => value,
        };
        admit_as(&param.name, ty, value)
    }

    /// Calls a value from native code.
    pub(crate) fn call_value(&mut self, callee: &Value, args: &[Value]) -> Eval<Value> {
        self.stack.extend(args.iter().cloned());
        self.call_to_end(callee, args.len(), Vec::new())
    }

    /// Calls a value from native code, with named arguments.
    pub(crate) fn call_given(&mut self, callee: &Value, given: Given) -> Eval<Value> {
        let n = given.positional.len();
        self.stack.extend(given.positional);
        self.call_to_end(callee, n, given.named)
    }

    pub(super) fn call_to_end(&mut self, callee: &Value, n: usize, named: Vec<(Str, Value)>) -> Eval<Value> {
        let (floor, height) = (self.frames.len(), self.stack.len() - n);
        let called = self.call_with(callee, n, named);
        let result = self.finish(called, floor);
        self.stack.truncate(height);
        result
    }

    /// The value of a call that was made with `floor` frames.
    pub(crate) fn finish(&mut self, called: Eval<Call>, floor: usize) -> Eval<Value> {
        match called? {
            Call::Done(value) => Ok(value),
            Call::Entered => self.run(floor),
        }
    }
}

/// A shared handle of a lambda from a shared handle of a callable that is one.
pub(crate) fn downcast(callable: &Arc<dyn Callable>) -> Arc<Lambda> {
    let any: Arc<dyn std::any::Any + Send + Sync> = callable.clone();
    any.downcast().unwrap_or_else(|_| unreachable!("the caller has looked at its type"))
}

pub(crate) fn arity(params: usize, given: usize) -> ErrorValue {
    let plural = if params == 1 { "argument" } else { "arguments" };
    ErrorValue::arg_error(format!("expected {params} {plural}, got {given}"))
}

pub(crate) fn not_callable(value: &Value) -> ErrorValue {
    ErrorValue::type_error(format!("{} is not callable", value.type_name()))
}

fn admit_as(name: &str, ty: &Type, value: Value) -> Result<Value, ErrorValue> {
    ty.admit(value).map_err(|misfit| match misfit {
        Misfit::Error(error) => error,
        Misfit::Value { expected, found } => {
            ErrorValue::arg_error(format!("argument `{name}`: expected {expected}, found {found}"))
        }
    })
}
