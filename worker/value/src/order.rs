//! Order, membership and conditions.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::equal::equal;
use crate::{ErrorValue, Value};

/// `a` against `b`. Both must be numbers, or of the same ordered type; anything else, NaN included, is `type_error`
/// "cannot compare A with B".
pub fn compare(a: &Value, b: &Value) -> Result<Ordering, ErrorValue> {
    use Value as V;
    let order = match (a, b) {
        (V::Int(a), V::Int(b)) => Some(a.cmp(b)),
        (V::Float(a), V::Float(b)) => a.partial_cmp(b),
        (V::Int(i), V::Float(f)) => int_vs_float(*i, *f),
        (V::Float(f), V::Int(i)) => int_vs_float(*i, *f).map(Ordering::reverse),
        (V::Str(a), V::Str(b)) => Some(a.cmp(b)),
        (V::Path(a), V::Path(b)) => Some(a.cmp(b)),
        (V::Size(a), V::Size(b)) => Some(a.cmp(b)),
        (V::Duration(a), V::Duration(b)) => Some(a.cmp(b)),
        (V::DateTime(a), V::DateTime(b)) => Some(a.instant().cmp(&b.instant())),
        (V::Time(a), V::Time(b)) => Some(a.cmp(b)),
        (V::Bool(a), V::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    };
    order.ok_or_else(|| {
        let name = |v: &Value| match v {
            V::Float(f) if f.is_nan() => "nan",
            other => other.type_name(),
        };
        ErrorValue::type_error(format!("cannot compare {} with {}", name(a), name(b)))
    })
}

/// An int against a float, exactly: the float is not rounded and the int not converted. None for NaN.
pub(crate) fn int_vs_float(int: i64, float: f64) -> Option<Ordering> {
    /// 2^63, the first float above every int.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    if float.is_nan() {
        return None;
    }
    if float >= ABOVE {
        return Some(Ordering::Less);
    }
    if float < -ABOVE {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(int.cmp(&(whole as i64)).then_with(|| whole.partial_cmp(&float).unwrap_or(Ordering::Equal)))
}

/// `item in container`. An ok outcome on the right stands for its out, a failed one raises `cmd_failed`.
pub fn contains(container: &Value, item: &Value) -> Result<bool, ErrorValue> {
    match (container, item) {
        (Value::Outcome(outcome), _) => contains(outcome.out()?, item),
        (Value::List(list), _) => any_equal(list.iter(), item),
        (Value::Table(table), Value::Record(_)) => any_equal(table.rows().iter().cloned().map(Value::Record), item),
        (Value::Str(text), Value::Str(part)) => Ok(text.contains(&**part)),
        (Value::Record(record), Value::Str(key)) => Ok(record.get(key).is_some()),
        (Value::Range(range), Value::Int(n)) => Ok(range.contains(*n)),
        _ => Err(ErrorValue::type_error(format!(
            "cannot apply `in` to {} and {}",
            item.type_name(),
            container.type_name()
        ))),
    }
}

fn any_equal<V: Borrow<Value>>(items: impl IntoIterator<Item = V>, wanted: &Value) -> Result<bool, ErrorValue> {
    for item in items {
        if equal(item.borrow(), wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A value as a condition: a bool, or an outcome, which stands for its ok. Anything else is `type_error`.
pub fn condition(value: &Value) -> Result<bool, ErrorValue> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        Value::Outcome(outcome) => Ok(outcome.ok),
        other => {
            let msg = format!(
                "a condition must be a bool or an outcome, found {}: there is no truthiness",
                other.type_name()
            );
            Err(ErrorValue::type_error(msg).with_hint("compare it: x != null, x != 0, !x.is_empty()"))
        }
    }
}
