//! The operand stack.
//!
//! Its slots stay when their values are popped, so that an int is written where it is to be: a value that is made elsewhere
//! and then moved is read in other widths than it was written in, which a processor has to wait for.

use std::ops::{Deref, DerefMut, Index, IndexMut};

use shoal_value::Value;

/// Slots a stack begins with.
const FIRST: usize = 64;

/// A stack of values; as a slice, those that lie on it.
#[derive(Default)]
pub(crate) struct Operands {
    /// Those from `height` on hold nothing that has to be dropped.
    slots: Vec<Value>,
    height: usize,
}

/// Whether a value owns nothing, so that it can be forgotten.
#[inline(always)]
fn is_scalar(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_))
}

/// Puts an int where a value is; over another int, only its number is written.
#[inline(always)]
pub(crate) fn put_int(slot: &mut Value, n: i64) {
    match slot {
        Value::Int(old) => *old = n,
        other => *other = Value::Int(n),
    }
}

impl Operands {
    /// A slot on top, holding nothing that has to be dropped.
    #[inline(always)]
    fn fresh(&mut self) -> &mut Value {
        if self.height == self.slots.len() {
            self.grow(1);
        }
        let at = self.height;
        self.height += 1;
        &mut self.slots[at]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, more: usize) {
        self.slots.resize((self.height + more).max(FIRST).next_power_of_two(), Value::Null);
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: Value) {
        // What the slot held before needs no drop, and forgetting it spares the look.
        std::mem::forget(std::mem::replace(self.fresh(), value));
    }

    #[inline(always)]
    pub(crate) fn push_int(&mut self, n: i64) {
        match self.fresh() {
            Value::Int(old) => *old = n,
            other => std::mem::forget(std::mem::replace(other, Value::Int(n))),
        }
    }

    #[inline(always)]
    pub(crate) fn push_bool(&mut self, truth: bool) {
        match self.fresh() {
            Value::Bool(old) => *old = truth,
            other => std::mem::forget(std::mem::replace(other, Value::Bool(truth))),
        }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.height
    }

    #[inline(always)]
    pub(crate) fn last(&self) -> Option<&Value> {
        self.slots.get(self.height.checked_sub(1)?)
    }

    #[inline(always)]
    pub(crate) fn last_mut(&mut self) -> Option<&mut Value> {
        self.slots.get_mut(self.height.checked_sub(1)?)
    }

    /// Pushes a copy.
    #[inline(always)]
    pub(crate) fn push_copy(&mut self, value: &Value) {
        match value {
            Value::Int(n) => self.push_int(*n),
            other => self.push(other.clone()),
        }
    }

    /// Pushes a copy of the value at `at`.
    #[inline(always)]
    pub(crate) fn copy_up(&mut self, at: usize) {
        match &self[at] {
            Value::Int(n) => {
                let n = *n;
                self.push_int(n);
            }
            other => {
                let value = other.clone();
                self.push(value);
            }
        }
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Value> {
        self.height = self.height.checked_sub(1)?;
        Some(std::mem::replace(&mut self.slots[self.height], Value::Null))
    }

    /// Drops the value on top.
    #[inline(always)]
    pub(crate) fn drop_top(&mut self) {
        let Some(top) = self.height.checked_sub(1) else { return };
        self.height = top;
        let slot = &mut self.slots[top];
        if !is_scalar(slot) {
            *slot = Value::Null;
        }
    }

    /// Drops what lies above `height`.
    #[inline(always)]
    pub(crate) fn truncate(&mut self, height: usize) {
        while self.height > height {
            self.drop_top();
        }
    }

    /// Lets nulls lie up to `height`.
    #[inline(always)]
    pub(crate) fn fill_to(&mut self, height: usize) {
        if height > self.slots.len() {
            self.grow(height - self.height);
        }
        while self.height < height {
            std::mem::forget(std::mem::replace(&mut self.slots[self.height], Value::Null));
            self.height += 1;
        }
    }

    /// Takes the `n` topmost values, in order.
    pub(crate) fn take(&mut self, n: usize) -> Vec<Value> {
        let from = self.height - n;
        let taken = (**self)[from..].iter_mut().map(|slot| std::mem::replace(slot, Value::Null)).collect();
        self.height = from;
        taken
    }

    /// Takes the value at `at`; those above it move down.
    pub(crate) fn remove(&mut self, at: usize) -> Value {
        (**self)[at..].rotate_left(1);
        self.pop().unwrap_or(Value::Null)
    }

    /// Takes the value on top down to `base`, dropping what is between.
    #[inline(always)]
    pub(crate) fn lower_top(&mut self, base: usize) {
        match self.last() {
            Some(Value::Int(n)) => {
                let n = *n;
                self.truncate(base);
                self.push_int(n);
            }
            _ => {
                let value = self.pop().unwrap_or(Value::Null);
                self.truncate(base);
                self.push(value);
            }
        }
    }
}

impl Extend<Value> for Operands {
    #[inline]
    fn extend<I: IntoIterator<Item = Value>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl Deref for Operands {
    type Target = [Value];

    #[inline(always)]
    fn deref(&self) -> &[Value] {
        &self.slots[..self.height]
    }
}

impl DerefMut for Operands {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Value] {
        &mut self.slots[..self.height]
    }
}

impl Index<usize> for Operands {
    type Output = Value;

    #[inline(always)]
    fn index(&self, at: usize) -> &Value {
        debug_assert!(at < self.height, "a value lies there");
        &self.slots[at]
    }
}

impl IndexMut<usize> for Operands {
    #[inline(always)]
    fn index_mut(&mut self, at: usize) -> &mut Value {
        debug_assert!(at < self.height, "a value lies there");
        &mut self.slots[at]
    }
}
