//! The short way for the items of large collections: a function that only computes is evaluated as a tree, with its
//! arguments where they lie and without operands on a stack.
//!
//! Whatever the tree cannot do (another type, an error) it leaves to the usual way, which begins anew: nothing has happened
//! by then.

mod formula;
mod operand;

use std::sync::{Arc, OnceLock};

use shoal_value::ops::{self, BinaryOp};
use shoal_value::record::Shape;
use shoal_value::{Record, Value};

pub(crate) use self::formula::Formula;
use self::formula::{Binary, Expr, Free};
pub(crate) use self::operand::Arg;
use self::operand::Operand;
use super::callees::{Body, Callees};
use super::frame::Linked;
use super::growth;
use super::ints::{Ints, combine};
use super::operands::put_int;
use crate::Ctx;
use crate::dispatch;
use crate::interp;
use crate::machine::Machine;
use crate::registry::{Args, MethodRow, Touches, Types};

/// Members of a record that are put together without a buffer of their own.
const FEW: usize = 8;
/// Arguments a function called in a tree may have.
pub(super) const ARGS: usize = 4;
/// Calls inside each other; deeper ones take the usual way, which needs no native stack.
const DEEPEST: u32 = 128;

/// Where a key was found in the first record it was looked for in.
type Found = OnceLock<(Arc<Shape>, Option<usize>)>;

/// What the evaluations of one function have in common.
pub(super) struct Short {
    formula: Arc<Formula>,
    pub(super) params: usize,
    /// Variables from around it. It cannot change them, so they are read once.
    free: Vec<Value>,
    found: Vec<Found>,
}

impl Short {
    /// For a function that has a tree, all of whose variables are bound.
    pub(super) fn of(body: &Body) -> Option<Self> {
        let code = &body.lambda.code;
        let formula = code.formula.get_or_init(|| Formula::of(code).map(Arc::new)).clone()?;
        let free = formula.free.iter().map(|free| match *free {
            Free::Root(name) => body.linked.cell(name).value(),
            Free::Captured(at) => body.lambda.captures[at as usize].lock().clone(),
        });
        let free = free.collect::<Option<_>>()?;
        let found = (0..formula.fields).map(|_| OnceLock::new()).collect();
        Some(Self { free, found, params: code.params.len(), formula })
    }

    /// For a function that is called again while variables around it change: it must have none.
    pub(super) fn of_callee(body: &Body) -> Option<Self> {
        Self::of(body).filter(|short| short.free.is_empty() && short.params <= ARGS)
    }

    /// An evaluation of the function, whose body this is, for these arguments; there must be one for each parameter.
    #[inline]
    pub(super) fn on<'a>(&'a self, body: &'a Body, callees: &'a Callees, args: &'a [Arg<'a>]) -> Site<'a> {
        Site { short: self, linked: &body.linked, callees, args, depth: 0, once: self.formula.calls }
    }
}

/// One evaluation.
pub(super) struct Site<'a> {
    short: &'a Short,
    linked: &'a Linked,
    callees: &'a Callees,
    args: &'a [Arg<'a>],
    /// Calls around it.
    depth: u32,
    /// Whether what is computed from calls has to be an int, as it is in functions worth this way. It is tried as nothing
    /// else then: calls inside each other that were evaluated for two types would double their work each time.
    once: bool,
}

impl<'a> Site<'a> {
    /// What the function gives, written where it is to be.
    #[inline]
    pub(super) fn value(&self, machine: &mut Machine, slot: &mut Value) -> Option<()> {
        self.write(machine, &self.short.formula.root, slot)
    }

    /// What the function gives, if it is a bool.
    #[inline]
    pub(super) fn holds(&self, machine: &mut Machine) -> Option<bool> {
        self.truth(machine, &self.short.formula.root)
    }

    fn write(&self, machine: &mut Machine, expr: &'a Expr, slot: &mut Value) -> Option<()> {
        match expr {
            Expr::Field(record, name, at) => match self.member(record, name, *at)? {
                Value::Int(n) => put_int(slot, *n),
                other => *slot = other.clone(),
            },
            Expr::Call(name, args) => {
                return self.call(machine, *name, args, |site, machine| site.value(machine, slot));
            }
            Expr::If(parts) => {
                let part = self.part(machine, parts)?;
                return self.write(machine, part, slot);
            }
            Expr::Method(row, parts) => return self.method(machine, row, parts, slot),
            expr => match self.operand(machine, expr)? {
                Operand::Int(n) => put_int(slot, n),
                other => *slot = other.into_value(),
            },
        }
        Some(())
    }

    /// An expression that is an int.
    fn int(&self, machine: &mut Machine, expr: &'a Expr) -> Option<i64> {
        match expr {
            Expr::Compute(Binary { op, sides, .. }) => {
                let (a, b) = (self.near_int(machine, &sides[0])?, self.near_int(machine, &sides[1])?);
                match combine(*op, a, b) {
                    Ints::Int(n) => Some(n),
                    Ints::Truth(_) | Ints::General => None,
                }
            }
            Expr::If(parts) => {
                let part = self.part(machine, parts)?;
                self.int(machine, part)
            }
            Expr::Call(name, args) => {
                self.call(machine, *name, args, |site, machine| site.int(machine, &site.short.formula.root))
            }
            expr => self.near_int(machine, expr),
        }
    }

    /// The same; what lies at hand needs no call.
    #[inline(always)]
    fn near_int(&self, machine: &mut Machine, expr: &'a Expr) -> Option<i64> {
        let value = match expr {
            Expr::Int(n) => return Some(*n),
            Expr::Arg(at) => return self.args.get(*at)?.int(),
            Expr::Field(record, name, at) => self.member(record, name, *at)?,
            Expr::Free(at) => &self.short.free[*at],
            Expr::Method(row, parts) => {
                let mut made = Value::Null;
                self.method(machine, row, parts, &mut made)?;
                return if let Value::Int(n) = made { Some(n) } else { None };
            }
            Expr::Compute(_) | Expr::If(_) | Expr::Call(..) => return self.int(machine, expr),
            _ => return None,
        };
        if let Value::Int(n) = value { Some(*n) } else { None }
    }

    /// An expression that is a bool.
    fn truth(&self, machine: &mut Machine, expr: &'a Expr) -> Option<bool> {
        match expr {
            Expr::Truth(truth) => Some(*truth),
            Expr::Not(expr) => Some(!self.truth(machine, expr)?),
            Expr::If(parts) => {
                let part = self.part(machine, parts)?;
                self.truth(machine, part)
            }
            Expr::Compare(binary) => {
                if self.once || binary.is_light {
                    let (a, b) = (&binary.sides[0], &binary.sides[1]);
                    if let (Some(a), Some(b)) = (self.near_int(machine, a), self.near_int(machine, b)) {
                        return match combine(binary.op, a, b) {
                            Ints::Truth(truth) => Some(truth),
                            Ints::Int(_) | Ints::General => None,
                        };
                    }
                    if !binary.is_light {
                        return None;
                    }
                }
                self.binary(machine, binary)?.truth()
            }
            Expr::Call(name, args) => self.call(machine, *name, args, |site, machine| site.holds(machine)),
            expr => self.operand(machine, expr)?.truth(),
        }
    }

    /// The part of a condition that counts.
    #[inline]
    fn part(&self, machine: &mut Machine, parts: &'a [Expr; 3]) -> Option<&'a Expr> {
        let [condition, then, otherwise] = parts;
        Some(if self.truth(machine, condition)? { then } else { otherwise })
    }

    /// Any expression.
    fn operand(&self, machine: &mut Machine, expr: &'a Expr) -> Option<Operand<'a>> {
        Some(match expr {
            Expr::Int(n) => Operand::Int(*n),
            Expr::Truth(truth) => Operand::Truth(*truth),
            Expr::Const(value) => Operand::of(value),
            Expr::Free(at) => Operand::of(&self.short.free[*at]),
            Expr::Arg(at) => match *self.args.get(*at)? {
                Arg::Value(value) => Operand::of(value),
                Arg::Row(row) => Operand::Row(row),
                Arg::Int(n) => Operand::Int(n),
            },
            Expr::Field(record, name, at) => Operand::of(self.member(record, name, *at)?),
            Expr::Compute(binary) => {
                if self.once || binary.is_light {
                    match self.int(machine, expr) {
                        Some(n) => return Some(Operand::Int(n)),
                        None if binary.is_light => {}
                        None => return None,
                    }
                }
                return self.binary(machine, binary);
            }
            Expr::Compare(..) => Operand::Truth(self.truth(machine, expr)?),
            Expr::Not(expr) => Operand::Truth(!self.truth(machine, expr)?),
            Expr::If(parts) => {
                let part = self.part(machine, parts)?;
                return self.operand(machine, part);
            }
            Expr::Record(shape, exprs) => {
                let mut values = [const { Value::Null }; FEW];
                let Some(few) = values.get_mut(..exprs.len()) else {
                    let values = self.values(machine, exprs)?;
                    return Record::with_shape(shape, values).ok().map(|record| Operand::Made(record.into()));
                };
                for (expr, slot) in exprs.iter().zip(&mut *few) {
                    self.write(machine, expr, slot)?;
                }
                Operand::Made(Record::of_taken(shape, few).ok()?.into())
            }
            Expr::Interp(exprs) => {
                let parts = self.values(machine, exprs)?;
                let text = interp::join(&parts).ok()?;
                machine.sized_text(text.len()).ok()?;
                Operand::Made(Value::str(text))
            }
            Expr::Call(name, args) => {
                let mut made = Value::Null;
                self.call(machine, *name, args, |site, machine| site.value(machine, &mut made))?;
                Operand::made(made)
            }
            Expr::Method(row, parts) => {
                let mut made = Value::Null;
                self.method(machine, row, parts, &mut made)?;
                Operand::made(made)
            }
        })
    }

    fn binary(&self, machine: &mut Machine, binary: &'a Binary) -> Option<Operand<'a>> {
        let (op, [left, right]) = (binary.op, &*binary.sides);
        let (left, right) = (self.operand(machine, left)?, self.operand(machine, right)?);
        if let (Operand::Int(a), Operand::Int(b)) = (&left, &right) {
            match combine(op, *a, *b) {
                Ints::Int(n) => return Some(Operand::Int(n)),
                Ints::Truth(truth) => return Some(Operand::Truth(truth)),
                Ints::General => {}
            }
        }
        if let (BinaryOp::Equal | BinaryOp::NotEqual, Some(a), Some(b)) = (op, left.as_str(), right.as_str()) {
            return Some(Operand::Truth((a == b) == (op == BinaryOp::Equal)));
        }
        let (left, right) = (left.into_value(), right.into_value());
        // What grows is announced first, which the usual way does.
        if op == BinaryOp::Add && !growth::is_small(&left, &right) {
            return None;
        }
        ops::binary(op, left, right).ok().map(Operand::made)
    }

    /// A member of a record. Where its key is was found out for the first record; those made alike have it in the same place.
    #[inline]
    fn member(&self, record: &'a Expr, name: &str, at: usize) -> Option<&'a Value> {
        let record = match record {
            Expr::Arg(at) => self.args.get(*at)?.record()?,
            Expr::Free(at) => Arg::Value(&self.short.free[*at]).record()?,
            Expr::Field(outer, name, at) => Arg::Value(self.member(outer, name, *at)?).record()?,
            _ => return None,
        };
        let (shape, place) = self.short.found[at].get_or_init(|| (record.shape().clone(), record.shape().place(name)));
        if Arc::ptr_eq(shape, record.shape()) { record.values().get((*place)?) } else { record.get(name) }
    }

    /// A method that only computes, of a value that has no methods of its own.
    #[inline]
    fn method(
        &self,
        machine: &mut Machine,
        row: &'static MethodRow,
        parts: &'a [Expr],
        slot: &mut Value,
    ) -> Option<()> {
        if self.text_method(row, parts, slot).is_none() {
            *slot = self.any_method(machine, row, parts)?;
        }
        Some(())
    }

    /// A method of a text where it lies, if it is one that needs nothing else.
    #[inline]
    fn text_method(&self, row: &'static MethodRow, parts: &'a [Expr], slot: &mut Value) -> Option<()> {
        let value = match parts {
            [Expr::Arg(at)] => match self.args.get(*at)? {
                Arg::Value(value) => value,
                Arg::Row(_) | Arg::Int(_) => return None,
            },
            [Expr::Field(record, name, at)] => self.member(record, name, *at)?,
            [Expr::Free(at)] => &self.short.free[*at],
            _ => return None,
        };
        let Value::Str(text) = value else { return None };
        let run = row.of(Types::index(value))?.of_text.filter(|_| dispatch::is_plain(value))?;
        run(text, slot).ok()
    }

    fn any_method(&self, machine: &mut Machine, row: &'static MethodRow, parts: &'a [Expr]) -> Option<Value> {
        let (recv, args) = parts.split_first()?;
        let recv = self.operand(machine, recv)?.into_value();
        let method = row.of(Types::index(&recv)).filter(|method| method.touches == Touches::Nothing)?;
        if !dispatch::is_plain(&recv) {
            return None;
        }
        let args = self.values(machine, args)?;
        let n = args.len();
        machine.stack.extend(args);
        let args = Args::from_stack(method, &mut machine.stack, n).ok()?;
        (method.run)(&mut Ctx::new(machine), recv, args).ok()
    }

    /// Evaluates a function of the root scope, if it has a tree too.
    #[inline(always)]
    fn call<T>(
        &self,
        machine: &mut Machine,
        name: u32,
        exprs: &'a [Expr],
        run: impl FnOnce(&Site<'_>, &mut Machine) -> Option<T>,
    ) -> Option<T> {
        let (_, callee) = machine.callee(self.callees, self.linked.cell(name))?;
        let short = callee.short.as_ref().filter(|short| short.params == exprs.len())?;
        let depth = self.depth + 1;
        if depth > DEEPEST || !machine.has_room_for(depth as usize) {
            return None;
        }
        machine.step(1).ok()?;
        let mut args = [Arg::Int(0); ARGS];
        for (expr, arg) in exprs.iter().zip(&mut args) {
            *arg = match expr {
                Expr::Arg(at) => *self.args.get(*at)?,
                Expr::Const(value) => Arg::Value(value),
                Expr::Field(record, name, at) => Arg::Value(self.member(record, name, *at)?),
                Expr::Free(at) => Arg::Value(&self.short.free[*at]),
                // What is made here is an int: other values would need a place to lie in.
                expr => Arg::Int(self.near_int(machine, expr)?),
            };
        }
        let args = &args[..exprs.len()];
        run(&Site { short, linked: &callee.body.linked, callees: self.callees, args, depth, once: true }, machine)
    }

    fn values(&self, machine: &mut Machine, exprs: &'a [Expr]) -> Option<Vec<Value>> {
        let mut values = vec![Value::Null; exprs.len()];
        for (expr, slot) in exprs.iter().zip(&mut values) {
            self.write(machine, expr, slot)?;
        }
        Some(values)
    }
}
