//! What a sum is about to make, announced to the meter before it is made: a loop that doubles a value has filled any memory
//! long before the next look at the clock.

use shoal_value::Value;
use shoal_value::ops::BinaryOp;

use crate::machine::Machine;
use crate::unwind::Eval;

/// Sums below this are not worth a call.
const SMALL: usize = 4096;

impl Machine {
    /// Before `left op right`, which makes a value of its own.
    #[inline(never)]
    pub(super) fn announce(&self, op: BinaryOp, left: &Value, right: &Value) -> Eval<()> {
        self.announce_bytes(if op == BinaryOp::Add { size(left).saturating_add(size(right)) } else { 0 })
    }

    /// Before `left op= right`: a list grows where it is, a text is made anew.
    #[inline(never)]
    pub(super) fn announce_update(&self, op: BinaryOp, left: &Value, right: &Value) -> Eval<()> {
        match left {
            Value::List(_) | Value::Table(_) if op == BinaryOp::Add => self.announce_bytes(size(right)),
            _ => self.announce(op, left, right),
        }
    }

    fn announce_bytes(&self, bytes: usize) -> Eval<()> {
        if bytes > SMALL { self.alloc(bytes) } else { Ok(()) }
    }
}

/// Whether a sum of these needs no announcement.
pub(super) fn is_small(left: &Value, right: &Value) -> bool {
    size(left).saturating_add(size(right)) <= SMALL
}

/// Bytes of the outermost buffer of what can be summed into something larger.
fn size(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(items) => items.len().saturating_mul(size_of::<Value>()),
        Value::Table(table) => table.len().saturating_mul(size_of::<Value>()),
        _ => 0,
    }
}
