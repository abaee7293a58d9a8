//! Calls of functions that only compute: they run on the operand stack without a frame.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use shoal_value::handle::concrete;
use shoal_value::{ErrorValue, Value};

use super::bind::{self, downcast};
use super::callees::{Body, Callees};
use super::frame::{Lambda, Linked, Position};
use super::run::Exit;
use super::short::{Arg, Short, Site};
use crate::code::{CodeKind, MethodSite};
use crate::ctx::condition;
use crate::dispatch;
use crate::machine::Machine;
use crate::registry::{Touches, Types};
use crate::unwind::{Eval, Unwind};

/// A callee that is called for many items: what calls have in common is looked up once.
pub struct Prepared<'v> {
    callee: &'v Value,
    body: Option<Body>,
    callees: Arc<Callees>,
    short: Option<Short>,
    /// Whether the short way is worth a try.
    is_short: Cell<bool>,
}

impl Machine {
    pub(crate) fn prepare<'v>(&mut self, callee: &'v Value) -> Prepared<'v> {
        let body = match callee {
            Value::Closure(callable) if concrete::<Lambda>(&**callable).is_some() => {
                Some(self.body(downcast(callable)))
            }
            _ => None,
        };
        let short = body.as_ref().and_then(Short::of);
        Prepared { callee, body, callees: self.callees.clone(), is_short: Cell::new(short.is_some()), short }
    }

    /// Calls what was prepared with arguments where they lie, and writes its value where it is to be.
    #[inline]
    pub(crate) fn apply_into<const N: usize>(
        &mut self,
        prepared: &Prepared<'_>,
        args: [Arg<'_>; N],
        slot: &mut Value,
    ) -> Eval<()> {
        match self.shortly(prepared, &args, |site, machine| site.value(machine, slot))? {
            Some(()) => {}
            None => *slot = self.apply(prepared, args.map(Arg::to_value))?,
        }
        Ok(())
    }

    /// Calls a prepared predicate with an item where it lies and takes its value as a condition.
    #[inline]
    pub(crate) fn satisfies(&mut self, prepared: &Prepared<'_>, item: Arg<'_>) -> Eval<bool> {
        match self.shortly(prepared, &[item], |site, machine| site.holds(machine))? {
            Some(truth) => Ok(truth),
            None => Ok(condition(&self.apply(prepared, [item.to_value()])?)?),
        }
    }

    /// What the short way gives; nothing if it cannot do it, and it is not tried again then.
    #[inline]
    fn shortly<T>(
        &mut self,
        prepared: &Prepared<'_>,
        args: &[Arg<'_>],
        run: impl FnOnce(Site<'_>, &mut Self) -> Option<T>,
    ) -> Eval<Option<T>> {
        let (Some(short), Some(body)) = (&prepared.short, &prepared.body) else { return Ok(None) };
        if !prepared.is_short.get() || short.params != args.len() || !self.has_room_for(0) {
            return Ok(None);
        }
        let result = run(short.on(body, &prepared.callees, args), self);
        match result {
            Some(_) => self.step(1)?,
            None => prepared.is_short.set(false),
        }
        Ok(result)
    }

    /// Calls what was prepared.
    #[inline]
    pub(crate) fn apply<const N: usize>(&mut self, prepared: &Prepared<'_>, args: [Value; N]) -> Eval<Value> {
        self.stack.extend(args);
        let mut given = N;
        if let Some(leaf) = &prepared.body
            && self.fit_leaf(&leaf.lambda, N)?
        {
            given = leaf.lambda.code.params.len();
            self.stack.truncate(self.stack.len() - (N - given));
            if let Some(value) = self.run_leaf(leaf)? {
                return Ok(value);
            }
        }
        self.call_to_end(prepared.callee, given, Vec::new())
    }

    /// The links of a lambda's unit in the root scope it runs in.
    pub(super) fn linked_of(&mut self, lambda: &Lambda) -> Arc<Linked> {
        match &lambda.linked {
            Some(linked) => linked.clone(),
            None => self.link(&lambda.code.unit),
        }
    }

    /// Whether `n` topmost values are arguments a leaf can be run with; a block ignores the surplus.
    #[inline]
    pub(super) fn fit_leaf(&mut self, lambda: &Lambda, n: usize) -> Eval<bool> {
        let code = &lambda.code;
        let params = code.params.len();
        if !code.leaf.load(Ordering::Relaxed) || n < params || n > params && code.kind != CodeKind::Thunk {
            return Ok(false);
        }
        if !self.has_room_for(0) {
            return Ok(false);
        }
        self.step(1)?;
        Ok(true)
    }

    /// Runs a leaf whose arguments are the topmost values, and takes them. Nothing, and the arguments left as they are, if
    /// it turns out to need a frame: it has changed nothing by then.
    #[inline]
    pub(super) fn run_leaf(&mut self, leaf: &Body) -> Eval<Option<Value>> {
        let code = &leaf.lambda.code;
        let params = code.params.len();
        let base = self.stack.len() - params;
        self.stack.fill_to(base + code.locals as usize);
        let mut at = Position { kept: None, base, cells: self.cells.len(), pc: 0 };
        match self.execute(leaf, &mut at, None) {
            Ok(Exit::Returned) => {
                let value = self.stack.pop().unwrap_or(Value::Null);
                self.stack.truncate(base);
                Ok(Some(value))
            }
            Ok(Exit::Bailed | Exit::Entered) => {
                code.leaf.store(false, Ordering::Relaxed);
                self.stack.truncate(base + params);
                Ok(None)
            }
            Err(Unwind::Raise(error)) if error.span.is_none() => {
                self.stack.truncate(base);
                Err(error.or_span(code.unit.span(code.places[at.pc.saturating_sub(1)])).into())
            }
            Err(unwind) => {
                self.stack.truncate(base);
                Err(unwind)
            }
        }
    }

    /// Whether a call of this method, with its receiver and arguments on the stack, runs nothing of the program and
    /// changes nothing.
    pub(super) fn only_computes(&self, site: &MethodSite) -> bool {
        let Some(at) = self.stack.len().checked_sub(site.positional as usize + 1) else { return false };
        let recv = &self.stack[at];
        let found = site.row.and_then(|row| row.of(Types::index(recv)));
        let plain = match recv {
            Value::Record(record) => !matches!(record.get(&site.name), Some(Value::Closure(_) | Value::Command(_))),
            recv => dispatch::is_plain(recv),
        };
        site.named.is_empty() && plain && found.is_some_and(|method| method.touches == Touches::Nothing)
    }
}

/// The error of a call that nests too deep.
pub(super) fn too_deep() -> ErrorValue {
    ErrorValue::new(shoal_value::code::RECURSION_LIMIT, format!("more than {} nested calls", bind::MAX_CALLS))
}
