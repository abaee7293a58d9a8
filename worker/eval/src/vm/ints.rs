//! Operators on ints, and assignments that combine: the short ways of the loop.

use shoal_value::Value;
use shoal_value::ops::{self, BinaryOp};

use super::frame::Linked;
use crate::machine::Machine;
use crate::scope::{BindingKind, RootCell};
use crate::unwind::Eval;

impl Machine {
    /// Pushes what a name of the root scope is bound to; false if it is not.
    #[inline]
    pub(super) fn push_root(&mut self, cell: &RootCell) -> bool {
        let slot = cell.lock();
        let Some(binding) = &slot.binding else { return false };
        self.stack.push_copy(&binding.value);
        true
    }

    /// Assigns the value on top to a `var`; false if it is none, with the stack as it was.
    #[inline]
    pub(super) fn assign_root_var(&mut self, linked: &Linked, name: u32) -> bool {
        let mut slot = linked.cell(name).lock();
        let Some(binding) = slot.binding.as_mut().filter(|binding| binding.kind == BindingKind::Var) else {
            return false;
        };
        if let (Value::Int(n), Some(Value::Int(right))) = (&mut binding.value, self.stack.last()) {
            *n = *right;
            slot.touched = true;
            drop(slot);
            self.stack.drop_top();
            return true;
        }
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
    pub(super) fn update_root_int(&mut self, linked: &Linked, name: u32, op: BinaryOp) -> bool {
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
        self.stack.drop_top();
        true
    }

    /// `left op= right` for the variable that lies at `at`.
    #[inline(never)]
    pub(super) fn update_slot(&mut self, at: usize, op: BinaryOp, right: Value) -> Eval<()> {
        self.announce_update(op, &self.stack[at], &right)?;
        let left = std::mem::replace(&mut self.stack[at], Value::Null);
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
                Err(error.into())
            }
        }
    }
}

/// The result of an operator on two ints.
pub(super) enum Ints {
    Int(i64),
    Truth(bool),
    /// It needs the general way: a division, an overflow.
    General,
}

/// `a op b`.
#[inline]
pub(super) fn combine(op: BinaryOp, a: i64, b: i64) -> Ints {
    let truth = match op {
        BinaryOp::Less => a < b,
        BinaryOp::LessEqual => a <= b,
        BinaryOp::Greater => a > b,
        BinaryOp::GreaterEqual => a >= b,
        BinaryOp::Equal => a == b,
        BinaryOp::NotEqual => a != b,
        BinaryOp::Add => return a.checked_add(b).map_or(Ints::General, Ints::Int),
        BinaryOp::Sub => return a.checked_sub(b).map_or(Ints::General, Ints::Int),
        BinaryOp::Mul => return a.checked_mul(b).map_or(Ints::General, Ints::Int),
        BinaryOp::Rem if b > 0 => return Ints::Int(a % b),
        _ => return Ints::General,
    };
    Ints::Truth(truth)
}

/// `left op right` in the place of `left`; false if it is no int, or the result needs the general way.
#[inline]
pub(super) fn int_in_place(op: BinaryOp, left: &mut Value, right: i64) -> bool {
    let Value::Int(a) = left else { return false };
    match combine(op, *a, right) {
        Ints::Int(result) => *a = result,
        Ints::Truth(truth) => *left = Value::Bool(truth),
        Ints::General => return false,
    }
    true
}
