//! Methods of collections that add items up.

use shoal_value::ops::{BinaryOp, binary};
use shoal_value::{ErrorValue, List, Range, Value};

use super::items::Items;
use super::rows::methods;
use super::text::check_text;
use crate::Ctx;
use crate::registry::{Method, Types};
use crate::unwind::Eval;

const COLLECTION: Types = Types::COLLECTION;

pub(super) const METHODS: &[Method] = methods! {
    /// The items added with `+`, from the first on; 0 if there is none.
    ///
    /// shoal> (1..=5).sum()
    /// 15
    /// shoal> ["a", "b"].sum()
    /// "ab"
    sum: COLLECTION, [], Item, Nothing, |ctx, recv, _| match recv {
        Value::List(list) => sum_list(ctx, list),
        Value::Range(range) => Ok(sum_range(*range)?),
        other => sum_any(ctx, &Items::of(other)?),
    };

    /// The mean: of numbers a float, of sizes a size, of durations a duration; null if there is no item.
    ///
    /// shoal> [1, 2].avg()
    /// 1.5
    /// shoal> [1s, 2s].avg()
    /// 1s500ms
    avg: COLLECTION, [], Item, Nothing, |ctx, recv, _| average(ctx, recv);
};

fn sum_list(ctx: &mut Ctx<'_>, list: List) -> Eval<Value> {
    match list.first() {
        Some(Value::Str(_)) => sum_texts(ctx, list),
        Some(Value::Int(_)) => sum_ints(ctx, list),
        _ => sum_any(ctx, &Items::List(list)),
    }
}

/// Texts are put together in one buffer; adding them one by one would copy what is there already each time.
fn sum_texts(ctx: &mut Ctx<'_>, list: List) -> Eval<Value> {
    let mut sum = String::new();
    for (at, item) in list.iter().enumerate() {
        ctx.step(1)?;
        let Some(text) = item.as_str() else {
            // The operator knows what else may be added to a str, and has the message.
            return add_up(ctx, Value::from(sum), Items::List(list.clone()).iter().skip(at));
        };
        check_text(sum.len() + text.len())?;
        sum.push_str(text);
    }
    Ok(sum.into())
}

/// Ints are added where they lie.
fn sum_ints(ctx: &mut Ctx<'_>, list: List) -> Eval<Value> {
    let mut sum = 0_i64;
    for (at, item) in list.iter().enumerate() {
        let Value::Int(n) = item else {
            return add_up(ctx, Value::Int(sum), Items::List(list.clone()).iter().skip(at));
        };
        ctx.step(1)?;
        match sum.checked_add(*n) {
            Some(next) => sum = next,
            None => return Ok(binary(BinaryOp::Add, Value::Int(sum), Value::Int(*n))?),
        }
    }
    Ok(Value::Int(sum))
}

fn sum_any(ctx: &mut Ctx<'_>, items: &Items) -> Eval<Value> {
    match items.at(0) {
        None => Ok(Value::Int(0)),
        Some(first) => add_up(ctx, first, items.iter().skip(1)),
    }
}

/// Ints and floats, the usual items, are added without a call per item.
fn add_up(ctx: &mut Ctx<'_>, first: Value, rest: impl Iterator<Item = Value>) -> Eval<Value> {
    let mut sum = first;
    for item in rest {
        ctx.step(1)?;
        sum = match (sum, item) {
            (Value::Int(a), Value::Int(b)) => match a.checked_add(b) {
                Some(n) => Value::Int(n),
                None => binary(BinaryOp::Add, Value::Int(a), Value::Int(b))?,
            },
            (Value::Float(a), Value::Float(b)) => Value::Float(a + b),
            (a, b) => binary(BinaryOp::Add, a, b)?,
        };
    }
    Ok(sum)
}

/// The sum of consecutive ints needs no walk.
fn sum_range(range: Range) -> Result<Value, ErrorValue> {
    let count = i128::try_from(range.count()).unwrap_or(i128::MAX);
    if count == 0 {
        return Ok(Value::Int(0));
    }
    let last = i128::from(range.start) + count - 1;
    let twice = (i128::from(range.start) + last).checked_mul(count);
    let sum = twice.and_then(|twice| i64::try_from(twice / 2).ok());
    sum.map(Value::Int).ok_or_else(|| ErrorValue::overflow("the sum of the range is no int"))
}

fn average(ctx: &mut Ctx<'_>, recv: Value) -> Eval<Value> {
    let items = Items::of(recv)?;
    let len = items.len();
    let mut mean = match items.at(0) {
        None => return Ok(Value::Null),
        Some(Value::Int(_) | Value::Float(_)) => Mean::Numbers(0.0),
        Some(Value::Size(_)) => Mean::Sizes(0),
        Some(Value::Duration(_)) => Mean::Durations(0),
        Some(other) => return Err(no_mean(0, &other).into()),
    };
    for (at, item) in items.iter().enumerate() {
        ctx.step(1)?;
        mean.add(&item).ok_or_else(|| no_mean(at, &item))?;
    }
    Ok(mean.over(len))
}

/// A sum wide enough for 50,000,000 items of its kind.
enum Mean {
    Numbers(f64),
    Sizes(u128),
    Durations(i128),
}

impl Mean {
    fn add(&mut self, item: &Value) -> Option<()> {
        match (self, item) {
            (Self::Numbers(sum), Value::Int(n)) => *sum += *n as f64,
            (Self::Numbers(sum), Value::Float(x)) => *sum += x,
            (Self::Sizes(sum), Value::Size(bytes)) => *sum += u128::from(*bytes),
            (Self::Durations(sum), Value::Duration(nanos)) => *sum += i128::from(*nanos),
            _ => return None,
        }
        Some(())
    }

    /// The sum by the number of items, which is not 0. A mean lies between its items, so it fits their type.
    fn over(self, len: usize) -> Value {
        match self {
            Self::Numbers(sum) => Value::Float(sum / len as f64),
            Self::Sizes(sum) => Value::Size(u64::try_from(sum / len as u128).unwrap_or(u64::MAX)),
            Self::Durations(sum) => Value::Duration(i64::try_from(sum / len as i128).unwrap_or(i64::MAX)),
        }
    }
}

fn no_mean(at: usize, item: &Value) -> ErrorValue {
    let msg =
        format!("avg: items must all be numbers, all sizes or all durations, but item {at} is {}", item.type_name());
    ErrorValue::type_error(msg)
}
