//! Arguments where they lie, and what an expression gives.

use shoal_value::{Record, Value};

use crate::vm::operands::put_int;

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

    /// Copies it to where it is to be.
    #[inline(always)]
    pub(crate) fn copy_to(self, slot: &mut Value) {
        match self {
            Self::Value(Value::Int(n)) => put_int(slot, *n),
            Self::Value(Value::Str(text)) => *slot = Value::Str(text.clone()),
            other => *slot = other.to_value(),
        }
    }

    pub(super) fn record(self) -> Option<&'a Record> {
        match self {
            Self::Value(Value::Record(record)) | Self::Row(record) => Some(record),
            Self::Value(_) | Self::Int(_) => None,
        }
    }

    #[inline]
    pub(super) fn int(self) -> Option<i64> {
        match self {
            Self::Value(Value::Int(n)) => Some(*n),
            Self::Int(n) => Some(n),
            Self::Value(_) | Self::Row(_) => None,
        }
    }
}

/// What an expression gives.
pub(super) enum Operand<'a> {
    Int(i64),
    Truth(bool),
    /// Some other value, where it lies.
    Lying(&'a Value),
    Row(&'a Record),
    Made(Value),
}

impl<'a> Operand<'a> {
    #[inline]
    pub(super) fn of(value: &'a Value) -> Self {
        match value {
            Value::Int(n) => Self::Int(*n),
            Value::Bool(truth) => Self::Truth(*truth),
            other => Self::Lying(other),
        }
    }

    #[inline]
    pub(super) fn made(value: Value) -> Self {
        match value {
            Value::Int(n) => Self::Int(n),
            Value::Bool(truth) => Self::Truth(truth),
            other => Self::Made(other),
        }
    }

    pub(super) fn truth(self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(truth),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn into_value(self) -> Value {
        match self {
            Self::Int(n) => Value::Int(n),
            Self::Truth(truth) => Value::Bool(truth),
            Self::Lying(value) => value.clone(),
            Self::Row(row) => Value::Record(row.clone()),
            Self::Made(value) => value,
        }
    }

    pub(super) fn lying(&self) -> Option<&Value> {
        match self {
            Self::Lying(value) => Some(value),
            Self::Made(value) => Some(value),
            Self::Int(_) | Self::Truth(_) | Self::Row(_) => None,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        self.lying().and_then(Value::as_str)
    }
}
