//! Methods of int, float and bool that compute. Conversions are in `convert`.

use shoal_value::{ErrorValue, Value};

use super::rows::{methods, optional};
use crate::registry::{Args, Method, Types};

const NUMBER: Types = Types::NUMBER;

pub(super) const METHODS: &[Method] = methods! {
    /// Without its sign.
    ///
    /// shoal> (-5).abs()
    /// 5
    abs: NUMBER, [], Same, Pure, |recv, _| match recv {
        Value::Int(n) => n.checked_abs().map(Value::Int).ok_or_else(|| {
            ErrorValue::overflow(format!("the absolute value of {n} is no int"))
        }),
        Value::Float(x) => Ok(Value::Float(x.abs())),
        other => Ok(other),
    };

    /// Rounded to `n` decimals; a half goes away from zero.
    ///
    /// shoal> 2.345.round(2)
    /// 2.35
    round: NUMBER, [optional("n", Types::INT)], Same, Pure, |recv, args| scaled(recv, &args, f64::round);

    /// Rounded down to `n` decimals.
    ///
    /// shoal> (-3.2).floor()
    /// -4
    floor: NUMBER, [optional("n", Types::INT)], Same, Pure, |recv, args| scaled(recv, &args, f64::floor);

    /// Rounded up to `n` decimals.
    ///
    /// shoal> 3.21.ceil(1)
    /// 3.3
    ceil: NUMBER, [optional("n", Types::INT)], Same, Pure, |recv, args| scaled(recv, &args, f64::ceil);
};

/// Rounds a float at `n` decimals. Where the scaled number has no float, the receiver has no such decimals: it is unchanged.
fn scaled(recv: Value, args: &Args, round: fn(f64) -> f64) -> Result<Value, ErrorValue> {
    let Value::Float(x) = recv else { return Ok(recv) };
    let decimals = args.count(0)?.unwrap_or(0);
    if decimals == 0 {
        return Ok(Value::Float(round(x)));
    }
    let factor = i32::try_from(decimals).map_or(f64::INFINITY, |n| 10f64.powi(n));
    let big = x * factor;
    let rounded = round(big) / factor;
    Ok(Value::Float(if big.is_finite() && rounded.is_finite() { rounded } else { x }))
}
