//! Functions that only compute, as trees: what [`super`] evaluates for the items of large collections.

use std::sync::Arc;

use shoal_value::ops::BinaryOp;
use shoal_value::record::Shape;
use shoal_value::{Str, Value};

use crate::code::{Code, Op};
use crate::registry::MethodRow;

/// Nodes a tree may have. A condition doubles what comes after it, so a longer function takes the usual way.
const ROOM: usize = 48;

/// What a function without variables of its own gives.
pub(crate) struct Formula {
    pub(super) root: Expr,
    /// Variables from around the function.
    pub(super) free: Vec<Free>,
    /// How many fields are read.
    pub(super) fields: usize,
    /// Whether it calls functions.
    pub(super) calls: bool,
}

/// A variable from around the function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Free {
    Root(u32),
    Captured(u32),
}

#[derive(Clone)]
pub(super) enum Expr {
    Int(i64),
    Truth(bool),
    Const(Value),
    /// An argument, by number.
    Arg(usize),
    /// A variable from around, by number.
    Free(usize),
    /// A member of a record; the number is that of the place where the key was found last.
    Field(Box<Expr>, Str, usize),
    Compute(Binary),
    /// The same for an operator that gives a bool.
    Compare(Binary),
    Not(Box<Expr>),
    /// Condition, and what it is if it holds and if not.
    If(Box<[Expr; 3]>),
    Record(Arc<Shape>, Vec<Expr>),
    Interp(Vec<Expr>),
    /// Receiver and arguments.
    Method(&'static MethodRow, Vec<Expr>),
    /// A function of the root scope, by the number of its name in the unit, and arguments.
    Call(u32, Vec<Expr>),
}

/// An operation on two values.
#[derive(Clone)]
pub(super) struct Binary {
    pub(super) op: BinaryOp,
    pub(super) sides: Box<[Expr; 2]>,
    /// Whether it consists of operations on what is at hand, or is known to be an int: trying it on ints first costs next
    /// to nothing.
    pub(super) is_light: bool,
}

impl Expr {
    fn is_light(&self) -> bool {
        match self {
            Self::Compute(binary) | Self::Compare(binary) => binary.is_light,
            Self::Int(_) | Self::Truth(_) | Self::Const(_) | Self::Arg(_) | Self::Free(_) | Self::Field(..) => true,
            Self::Method(row, parts) => row.gives_int() && matches!(&parts[..], [Self::Arg(_) | Self::Field(..)]),
            Self::Not(_) | Self::If(_) | Self::Record(..) | Self::Interp(_) | Self::Call(..) => false,
        }
    }
}

impl Formula {
    /// The tree of a function that has one.
    pub(super) fn of(code: &Code) -> Option<Self> {
        let is_plain = code.simple && code.ret.is_none() && code.cells == 0 && code.kind.is_function();
        if !is_plain {
            return None;
        }
        let mut building = Building { code, free: Vec::new(), fields: 0, calls: false, left: ROOM };
        let root = building.follow(0, Vec::new())?;
        Some(Self { root, free: building.free, fields: building.fields, calls: building.calls })
    }
}

struct Building<'c> {
    code: &'c Code,
    free: Vec<Free>,
    fields: usize,
    calls: bool,
    left: usize,
}

impl Building<'_> {
    /// What the operations from `next` on give, with these operands.
    fn follow(&mut self, mut next: usize, mut operands: Vec<Expr>) -> Option<Expr> {
        let tables = &self.code.tables;
        loop {
            self.left = self.left.checked_sub(1)?;
            let op = *self.code.ops.get(next)?;
            next += 1;
            let made = match op {
                Op::Nop | Op::Step => continue,
                Op::Int(n) => Expr::Int(n.into()),
                Op::Bool(truth) => Expr::Truth(truth),
                Op::Null => Expr::Const(Value::Null),
                Op::Const(at) => Expr::Const(tables.consts[at as usize].clone()),
                Op::Local(at) => self.argument(at)?,
                Op::Root(name) => self.variable(Free::Root(name)),
                Op::Captured(at) => self.variable(Free::Captured(at)),
                Op::LocalField(at, name) => {
                    let record = self.argument(at)?;
                    self.field(record, name)
                }
                Op::Field(name) => {
                    let record = operands.pop()?;
                    self.field(record, name)
                }
                Op::Binary(op) => {
                    let right = operands.pop()?;
                    binary(op, operands.pop()?, right)
                }
                Op::BinaryInt(op, n) => binary(op, operands.pop()?, Expr::Int(n.into())),
                Op::BinaryLocals(op, a, b) => binary(op, self.argument(a.into())?, self.argument(b.into())?),
                Op::BinaryLocalInt(op, a, n) => binary(op, self.argument(a.into())?, Expr::Int(n.into())),
                Op::Not => Expr::Not(Box::new(operands.pop()?)),
                Op::Jump(target) => {
                    next = later(next, target)?;
                    continue;
                }
                Op::JumpUnless(target) => {
                    let condition = operands.pop()?;
                    return self.either(condition, next, target, operands);
                }
                Op::UnlessLocals(op, a, b, target) => {
                    let condition = binary(op, self.argument(a.into())?, self.argument(b.into())?);
                    return self.either(condition, next, target, operands);
                }
                Op::UnlessLocalInt(op, a, n, target) => {
                    let condition = binary(op, self.argument(a.into())?, Expr::Int(n.into()));
                    return self.either(condition, next, target, operands);
                }
                Op::UnlessInt(op, n, target) => {
                    let condition = binary(op, operands.pop()?, Expr::Int(n.into()));
                    return self.either(condition, next, target, operands);
                }
                Op::And(target, false) | Op::Or(target, false) => {
                    let condition = operands.pop()?;
                    let target = later(next, target)?;
                    let is_or = matches!(op, Op::Or(..));
                    let mut decided = operands.clone();
                    decided.push(Expr::Truth(is_or));
                    let (decided, open) = (self.follow(target, decided)?, self.follow(next, operands)?);
                    let [then, otherwise] = if is_or { [decided, open] } else { [open, decided] };
                    return Some(Expr::If(Box::new([condition, then, otherwise])));
                }
                Op::Record(shape) => {
                    let shape = &tables.shapes[shape as usize];
                    let values = operands.split_off(operands.len().checked_sub(shape.keys().len())?);
                    Expr::Record(shape.clone(), values)
                }
                Op::Interp(n) => Expr::Interp(operands.split_off(operands.len().checked_sub(n as usize)?)),
                Op::Method(site) => {
                    let site = &tables.methods[site as usize];
                    let row = site.row.filter(|_| site.named.is_empty())?;
                    let parts = operands.split_off(operands.len().checked_sub(site.positional as usize + 1)?);
                    Expr::Method(row, parts)
                }
                Op::CallName(site) => {
                    let site = tables.calls.get(site as usize).filter(|site| site.named.is_empty())?;
                    let args = operands.split_off(operands.len().checked_sub(site.positional as usize)?);
                    self.calls = true;
                    Expr::Call(site.name, args)
                }
                Op::Return => return operands.pop(),
                _ => return None,
            };
            operands.push(made);
        }
    }

    /// What follows a condition: the operations from `next` on, or those from `target` on.
    fn either(&mut self, condition: Expr, next: usize, target: u32, operands: Vec<Expr>) -> Option<Expr> {
        let target = later(next, target)?;
        let then = self.follow(next, operands.clone())?;
        let otherwise = self.follow(target, operands)?;
        Some(Expr::If(Box::new([condition, then, otherwise])))
    }

    fn argument(&self, at: u32) -> Option<Expr> {
        let at = at as usize;
        (at < self.code.params.len()).then_some(Expr::Arg(at))
    }

    fn variable(&mut self, free: Free) -> Expr {
        let known = self.free.iter().position(|known| *known == free);
        Expr::Free(known.unwrap_or_else(|| {
            self.free.push(free);
            self.free.len() - 1
        }))
    }

    fn field(&mut self, record: Expr, name: u32) -> Expr {
        self.fields += 1;
        Expr::Field(Box::new(record), self.code.tables.names[name as usize].clone(), self.fields - 1)
    }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    let is_light = left.is_light() && right.is_light();
    let binary = Binary { op, sides: Box::new([left, right]), is_light };
    match op {
        Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual => Expr::Compare(binary),
        _ => Expr::Compute(binary),
    }
}

/// The target of a jump, if it leads forward: a loop has no tree.
fn later(next: usize, target: u32) -> Option<usize> {
    Some(target as usize).filter(|target| *target >= next)
}
