//! The short way for the items of large collections: a function that only compares, computes with ints and takes fields is
//! evaluated where its arguments lie.

use shoal_value::ops::BinaryOp;
use shoal_value::{Record, Value};

use super::frame::Linked;
use super::ints::{Ints, combine};
use crate::code::{Code, Op};

/// An argument where it lies.
#[derive(Clone, Copy)]
pub(crate) enum Arg<'a> {
    Value(&'a Value),
    /// A row of a table.
    Row(&'a Record),
    /// An item of a range.
    Int(i64),
}

impl<'a> Arg<'a> {
    pub(crate) fn to_value(self) -> Value {
        match self {
            Self::Value(value) => value.clone(),
            Self::Row(row) => Value::Record(row.clone()),
            Self::Int(n) => Value::Int(n),
        }
    }

    fn field(self, name: &str) -> Option<&'a Value> {
        match self {
            Self::Value(Value::Record(record)) | Self::Row(record) => record.get(name),
            Self::Value(_) | Self::Int(_) => None,
        }
    }

    fn int(self) -> Option<i64> {
        match self {
            Self::Value(Value::Int(n)) => Some(*n),
            Self::Int(n) => Some(n),
            Self::Value(_) | Self::Row(_) => None,
        }
    }
}

/// An operand.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a> {
    Int(i64),
    Truth(bool),
    /// Some other value, where it lies.
    Lying(Arg<'a>),
}

impl<'a> Operand<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Int(n) => Self::Int(*n),
            Value::Bool(truth) => Self::Truth(*truth),
            other => Self::Lying(Arg::Value(other)),
        }
    }

    pub(crate) fn to_value(self) -> Value {
        match self {
            Self::Int(n) => Value::Int(n),
            Self::Truth(truth) => Value::Bool(truth),
            Self::Lying(arg) => arg.to_value(),
        }
    }

    fn truth(self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(truth),
            Self::Int(_) | Self::Lying(_) => None,
        }
    }
}

/// Operands an expression may have at once; one with more takes the usual way.
const ROOM: usize = 6;

/// Operands of an expression.
struct Operands<'a> {
    items: [Operand<'a>; ROOM],
    len: usize,
}

impl<'a> Operands<'a> {
    #[inline]
    fn push(&mut self, operand: Operand<'a>) -> Option<()> {
        *self.items.get_mut(self.len)? = operand;
        self.len += 1;
        Some(())
    }

    #[inline]
    fn pop(&mut self) -> Option<Operand<'a>> {
        self.len = self.len.checked_sub(1)?;
        Some(self.items[self.len])
    }
}

/// What a leaf gives for these arguments; nothing if it needs more than this way can do, and then nothing has happened.
pub(super) fn evaluate<'a>(code: &'a Code, linked: &Linked, args: &[Arg<'a>]) -> Option<Operand<'a>> {
    let mut operands = Operands { items: [Operand::Truth(false); ROOM], len: 0 };
    let mut next = 0;
    loop {
        let op = *code.ops.get(next)?;
        next += 1;
        match op {
            Op::Step => {}
            Op::Int(n) => operands.push(Operand::Int(n.into()))?,
            Op::Bool(truth) => operands.push(Operand::Truth(truth))?,
            Op::Const(at) => operands.push(Operand::of(&code.tables.consts[at as usize]))?,
            Op::Local(at) => {
                let arg = *args.get(at as usize)?;
                operands.push(match arg {
                    Arg::Value(value) => Operand::of(value),
                    Arg::Int(n) => Operand::Int(n),
                    row @ Arg::Row(_) => Operand::Lying(row),
                })?;
            }
            Op::LocalField(at, name) => {
                let member = args.get(at as usize)?.field(&code.tables.names[name as usize])?;
                operands.push(Operand::of(member))?;
            }
            Op::Root(name) => match linked.cell(name).lock().binding.as_ref()?.value {
                Value::Int(n) => operands.push(Operand::Int(n))?,
                Value::Bool(truth) => operands.push(Operand::Truth(truth))?,
                _ => return None,
            },
            Op::Binary(op) => {
                let (right, left) = (operands.pop()?, operands.pop()?);
                operands.push(binary(op, left, right)?)?;
            }
            Op::BinaryInt(op, n) => {
                let left = operands.pop()?;
                operands.push(binary(op, left, Operand::Int(n.into()))?)?;
            }
            Op::BinaryLocals(op, a, b) => {
                let (a, b) = (args.get(a as usize)?.int()?, args.get(b as usize)?.int()?);
                operands.push(ints(op, a, b)?)?;
            }
            Op::BinaryLocalInt(op, a, n) => {
                let a = args.get(a as usize)?.int()?;
                operands.push(ints(op, a, n.into())?)?;
            }
            Op::UnlessLocals(op, a, b, target) => {
                let (a, b) = (args.get(a as usize)?.int()?, args.get(b as usize)?.int()?);
                if !ints(op, a, b)?.truth()? {
                    next = target as usize;
                }
            }
            Op::UnlessLocalInt(op, a, n, target) => {
                let a = args.get(a as usize)?.int()?;
                if !ints(op, a, n.into())?.truth()? {
                    next = target as usize;
                }
            }
            Op::UnlessInt(op, n, target) => {
                let left = operands.pop()?;
                if !binary(op, left, Operand::Int(n.into()))?.truth()? {
                    next = target as usize;
                }
            }
            Op::Not => {
                let truth = operands.pop()?.truth()?;
                operands.push(Operand::Truth(!truth))?;
            }
            Op::Jump(target) => next = target as usize,
            Op::JumpUnless(target) => {
                if !operands.pop()?.truth()? {
                    next = target as usize;
                }
            }
            Op::And(target, _) | Op::Or(target, _) => {
                let left = operands.pop()?;
                if left.truth()? == matches!(op, Op::Or(..)) {
                    operands.push(left)?;
                    next = target as usize;
                }
            }
            Op::Return => return operands.pop(),
            _ => return None,
        }
    }
}

/// Whether [`evaluate`] knows the operation.
pub(crate) fn is_known(op: &Op) -> bool {
    matches!(
        op,
        Op::Step
            | Op::Int(_)
            | Op::Bool(_)
            | Op::Const(_)
            | Op::Local(_)
            | Op::LocalField(..)
            | Op::Root(_)
            | Op::Binary(_)
            | Op::BinaryInt(..)
            | Op::BinaryLocals(..)
            | Op::BinaryLocalInt(..)
            | Op::UnlessLocals(..)
            | Op::UnlessLocalInt(..)
            | Op::UnlessInt(..)
            | Op::Not
            | Op::Jump(_)
            | Op::JumpUnless(_)
            | Op::And(_, false)
            | Op::Or(_, false)
            | Op::Return
            | Op::Nop
    )
}

#[inline]
fn ints<'a>(op: BinaryOp, a: i64, b: i64) -> Option<Operand<'a>> {
    match combine(op, a, b) {
        Ints::Int(n) => Some(Operand::Int(n)),
        Ints::Truth(truth) => Some(Operand::Truth(truth)),
        Ints::General => None,
    }
}

#[inline]
fn binary<'a>(op: BinaryOp, left: Operand<'a>, right: Operand<'a>) -> Option<Operand<'a>> {
    match (left, right) {
        (Operand::Int(a), Operand::Int(b)) => ints(op, a, b),
        (Operand::Lying(Arg::Value(Value::Str(a))), Operand::Lying(Arg::Value(Value::Str(b)))) => match op {
            BinaryOp::Equal => Some(Operand::Truth(a == b)),
            BinaryOp::NotEqual => Some(Operand::Truth(a != b)),
            _ => None,
        },
        _ => None,
    }
}
