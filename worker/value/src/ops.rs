//! The operators on values. Assignment, `&&`, `||` and `??` choose which operand to evaluate and belong to the evaluator.

use crate::equal::equal;
use crate::order::{compare, condition, contains};
use crate::record::Record;
use crate::{ErrorValue, List, MAX_ITEMS, MAX_TEXT, Range, Table, Value};

/// A binary operator that needs both operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named by its symbol below")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Range,
    RangeInclusive,
}

impl BinaryOp {
    /// As written in source.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::In => "in",
            Self::Range => "..",
            Self::RangeInclusive => "..=",
        }
    }
}

/// `a op b`. Operands are taken by value so that a list which is not shared grows in place.
pub fn binary(op: BinaryOp, a: Value, b: Value) -> Result<Value, ErrorValue> {
    let truth = match op {
        BinaryOp::Equal => equal(&a, &b)?,
        BinaryOp::NotEqual => !equal(&a, &b)?,
        BinaryOp::Less => compare(&a, &b)?.is_lt(),
        BinaryOp::LessEqual => compare(&a, &b)?.is_le(),
        BinaryOp::Greater => compare(&a, &b)?.is_gt(),
        BinaryOp::GreaterEqual => compare(&a, &b)?.is_ge(),
        BinaryOp::In => contains(&b, &a)?,
        BinaryOp::Range | BinaryOp::RangeInclusive => return range(op, &a, &b),
        BinaryOp::Add => return add(a, b),
        BinaryOp::Sub => return subtract(&a, &b),
        BinaryOp::Mul => return multiply(&a, &b),
        BinaryOp::Div => return divide(&a, &b),
        BinaryOp::Rem => return remainder(&a, &b),
    };
    Ok(Value::Bool(truth))
}

/// `-value`: int (checked), float, duration.
pub fn negate(value: &Value) -> Result<Value, ErrorValue> {
    match value {
        Value::Int(n) => n.checked_neg().map(Value::Int).ok_or_else(int_overflow),
        Value::Float(f) => Ok(Value::Float(-f)),
        Value::Duration(d) => d.checked_neg().map(Value::Duration).ok_or_else(duration_overflow),
        other => Err(ErrorValue::type_error(format!("cannot apply `-` to {}", other.type_name()))),
    }
}

/// `!value` of a condition.
pub fn not(value: &Value) -> Result<Value, ErrorValue> {
    condition(value).map(|truth| Value::Bool(!truth))
}

fn range(op: BinaryOp, a: &Value, b: &Value) -> Result<Value, ErrorValue> {
    match (a, b) {
        (Value::Int(start), Value::Int(end)) => {
            Ok(Range { start: *start, end: *end, inclusive: op == BinaryOp::RangeInclusive }.into())
        }
        _ => Err(mismatch(op, a, b)),
    }
}

fn add(a: Value, b: Value) -> Result<Value, ErrorValue> {
    use Value as V;
    match (&a, &b) {
        (V::Int(x), V::Int(y)) => x.checked_add(*y).map(V::Int).ok_or_else(int_overflow),
        (V::Int(_) | V::Float(_), V::Int(_) | V::Float(_)) => floats(&a, &b, |x, y| x + y),
        (V::Str(x), V::Str(y)) => join_text(x, y),
        (V::List(_) | V::Table(_), V::List(_) | V::Table(_)) => join_lists(a, b),
        (V::Size(x), V::Size(y)) => x.checked_add(*y).map(V::Size).ok_or_else(size_overflow),
        (V::Duration(x), V::Duration(y)) => x.checked_add(*y).map(V::Duration).ok_or_else(duration_overflow),
        (V::DateTime(at), V::Duration(d)) | (V::Duration(d), V::DateTime(at)) => at.plus_nanos(*d).map(V::DateTime),
        _ => Err(mismatch(BinaryOp::Add, &a, &b)),
    }
}

fn subtract(a: &Value, b: &Value) -> Result<Value, ErrorValue> {
    use Value as V;
    match (a, b) {
        (V::Int(x), V::Int(y)) => x.checked_sub(*y).map(V::Int).ok_or_else(int_overflow),
        (V::Int(_) | V::Float(_), V::Int(_) | V::Float(_)) => floats(a, b, |x, y| x - y),
        (V::Size(x), V::Size(y)) => x.checked_sub(*y).map(V::Size).ok_or_else(negative_size),
        (V::Duration(x), V::Duration(y)) => x.checked_sub(*y).map(V::Duration).ok_or_else(duration_overflow),
        (V::DateTime(at), V::Duration(d)) => at.minus_nanos(*d).map(V::DateTime),
        (V::DateTime(at), V::DateTime(other)) => at.nanos_since(other).map(V::Duration),
        _ => Err(mismatch(BinaryOp::Sub, a, b)),
    }
}

fn multiply(a: &Value, b: &Value) -> Result<Value, ErrorValue> {
    use Value as V;
    match (a, b) {
        (V::Int(x), V::Int(y)) => x.checked_mul(*y).map(V::Int).ok_or_else(int_overflow),
        (V::Int(_) | V::Float(_), V::Int(_) | V::Float(_)) => floats(a, b, |x, y| x * y),
        (V::Size(size), V::Int(n)) | (V::Int(n), V::Size(size)) => {
            let times = u64::try_from(*n).map_err(|_| negative_size())?;
            size.checked_mul(times).map(V::Size).ok_or_else(size_overflow)
        }
        (V::Size(size), V::Float(f)) | (V::Float(f), V::Size(size)) => scale_size(*size, *f),
        (V::Duration(d), V::Int(n)) | (V::Int(n), V::Duration(d)) => {
            d.checked_mul(*n).map(V::Duration).ok_or_else(duration_overflow)
        }
        (V::Duration(d), V::Float(f)) | (V::Float(f), V::Duration(d)) => scale_duration(*d, *f),
        _ => Err(mismatch(BinaryOp::Mul, a, b)),
    }
}

fn divide(a: &Value, b: &Value) -> Result<Value, ErrorValue> {
    use Value as V;
    match (a, b) {
        (V::Int(_) | V::Size(_) | V::Duration(_), V::Int(0))
        | (V::Size(_), V::Size(0))
        | (V::Duration(_), V::Duration(0)) => Err(ErrorValue::div_zero()),
        (V::Int(x), V::Int(y)) => x.checked_div(*y).map(V::Int).ok_or_else(int_overflow),
        (V::Int(_) | V::Float(_), V::Int(_) | V::Float(_)) => floats(a, b, |x, y| x / y),
        (V::Size(size), V::Int(n)) => {
            let by = u64::try_from(*n).map_err(|_| negative_size())?;
            Ok(V::Size(size / by))
        }
        (V::Size(x), V::Size(y)) => Ok(V::Float(*x as f64 / *y as f64)),
        (V::Duration(d), V::Int(n)) => d.checked_div(*n).map(V::Duration).ok_or_else(duration_overflow),
        (V::Duration(x), V::Duration(y)) => Ok(V::Float(*x as f64 / *y as f64)),
        _ => Err(mismatch(BinaryOp::Div, a, b)),
    }
}

fn remainder(a: &Value, b: &Value) -> Result<Value, ErrorValue> {
    use Value as V;
    match (a, b) {
        (V::Int(_), V::Int(0)) => Err(ErrorValue::div_zero()),
        // The one case that overflows in the processor, i64::MIN % -1, is 0.
        (V::Int(x), V::Int(y)) => Ok(V::Int(x.wrapping_rem(*y))),
        (V::Int(_) | V::Float(_), V::Int(_) | V::Float(_)) => floats(a, b, |x, y| x % y),
        _ => Err(mismatch(BinaryOp::Rem, a, b)),
    }
}

fn floats(a: &Value, b: &Value, apply: impl Fn(f64, f64) -> f64) -> Result<Value, ErrorValue> {
    let float = |v: &Value| match v {
        Value::Int(n) => *n as f64,
        Value::Float(f) => *f,
        _ => f64::NAN,
    };
    Ok(Value::Float(apply(float(a), float(b))))
}

fn scale_size(size: u64, factor: f64) -> Result<Value, ErrorValue> {
    /// 2^64, the first float above every size.
    const ABOVE: f64 = 18_446_744_073_709_551_616.0;
    let bytes = (size as f64 * factor).round();
    if factor < 0.0 {
        Err(negative_size())
    } else if !factor.is_finite() || !bytes.is_finite() || bytes >= ABOVE {
        Err(size_overflow())
    } else {
        Ok(Value::Size(bytes as u64))
    }
}

fn scale_duration(nanos: i64, factor: f64) -> Result<Value, ErrorValue> {
    /// 2^63, the first float above every duration.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    let scaled = (nanos as f64 * factor).round();
    let fits = scaled.is_finite() && (-ABOVE..ABOVE).contains(&scaled);
    if fits { Ok(Value::Duration(scaled as i64)) } else { Err(duration_overflow()) }
}

fn join_text(a: &str, b: &str) -> Result<Value, ErrorValue> {
    if a.len() + b.len() > MAX_TEXT {
        return Err(ErrorValue::too_large("str is longer than 256 MiB"));
    }
    Ok(Value::from([a, b].concat()))
}

/// Concatenation; a table counts as the list of its rows. Two tables, or a table and a list of records, make a table.
fn join_lists(a: Value, b: Value) -> Result<Value, ErrorValue> {
    if rows_of(&a) && rows_of(&b) && (matches!(a, Value::Table(_)) || matches!(b, Value::Table(_))) {
        let columns = [&a, &b].into_iter().flat_map(columns_of).cloned().collect::<Vec<_>>();
        let rows = [a, b].into_iter().flat_map(|v| into_list(v).into_items()).filter_map(|v| match v {
            Value::Record(row) => Some(row),
            _ => None,
        });
        return joined_table(columns, rows.collect());
    }
    let (a, b) = (into_list(a), into_list(b));
    if a.len() + b.len() > MAX_ITEMS {
        return Err(ErrorValue::too_large("list has more than 50,000,000 items"));
    }
    Ok(Value::List(a.concat(&b)))
}

fn joined_table(columns: Vec<crate::Str>, rows: Vec<Record>) -> Result<Value, ErrorValue> {
    if rows.len() > MAX_ITEMS {
        return Err(ErrorValue::too_large("table has more than 50,000,000 rows"));
    }
    Table::with_columns(columns, rows).map(Value::Table)
}

fn rows_of(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::List(list) => list.iter().all(|item| matches!(item, Value::Record(_))),
        _ => false,
    }
}

fn columns_of(value: &Value) -> &[crate::Str] {
    match value {
        Value::Table(table) => table.columns(),
        _ => &[],
    }
}

fn into_list(value: Value) -> List {
    match value {
        Value::List(list) => list,
        Value::Table(table) => table.to_list(),
        _ => List::empty(),
    }
}

fn mismatch(op: BinaryOp, a: &Value, b: &Value) -> ErrorValue {
    let msg = format!("cannot apply `{}` to {} and {}", op.symbol(), a.type_name(), b.type_name());
    ErrorValue::type_error(msg)
}

fn int_overflow() -> ErrorValue {
    ErrorValue::overflow("int overflow: the result is outside -9223372036854775808 to 9223372036854775807")
}

fn duration_overflow() -> ErrorValue {
    ErrorValue::overflow("duration overflow: the result is beyond about 292 years")
}

fn size_overflow() -> ErrorValue {
    ErrorValue::overflow("size overflow: the result is not a finite number of bytes below 2^64")
}

fn negative_size() -> ErrorValue {
    ErrorValue::type_error("a size cannot be negative")
}

#[cfg(test)]
mod tests;
