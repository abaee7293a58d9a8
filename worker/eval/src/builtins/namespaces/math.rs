//! `math`: constants and functions on floats.

use std::f64::consts;

use shoal_value::{ErrorValue, Value};

use crate::methods::rows::{functions, need, rest};
use crate::registry::{Args, Namespace, Types};

const FLOAT: Types = Types::FLOAT;

pub(crate) static MATH: Namespace = Namespace {
    name: "math",
    doc: "Constants `pi e tau inf nan sqrt2`, and functions that take ints and floats and always give a float.",
    constants: &[
        ("pi", consts::PI),
        ("e", consts::E),
        ("tau", consts::TAU),
        ("inf", f64::INFINITY),
        ("nan", f64::NAN),
        ("sqrt2", consts::SQRT_2),
    ],
    dynamic: None,
    functions: functions! {
        /// Square root.
        ///
        /// shoal> [4, 9].map(math.sqrt)
        /// [2, 3]
        sqrt: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::sqrt);
        /// Cube root.
        ///
        /// shoal> math.cbrt(27)
        /// 3
        cbrt: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::cbrt);
        /// Sine of an angle in radians.
        ///
        /// shoal> math.sin(0)
        /// 0
        sin: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::sin);
        /// Cosine of an angle in radians.
        ///
        /// shoal> math.cos(0)
        /// 1
        cos: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::cos);
        /// Tangent of an angle in radians.
        ///
        /// shoal> math.tan(0)
        /// 0
        tan: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::tan);
        /// Angle in radians whose sine is `x`.
        ///
        /// shoal> math.asin(0)
        /// 0
        asin: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::asin);
        /// Angle in radians whose cosine is `x`.
        ///
        /// shoal> math.acos(1)
        /// 0
        acos: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::acos);
        /// Angle in radians whose tangent is `x`.
        ///
        /// shoal> math.atan(0)
        /// 0
        atan: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::atan);
        /// Angle in radians of the point `x`, `y`.
        ///
        /// shoal> math.atan2(0, 1)
        /// 0
        atan2: [need("y", FLOAT), need("x", FLOAT)], Plain(FLOAT), Pure, |args| binary(&args, f64::atan2);
        /// Natural logarithm.
        ///
        /// shoal> math.ln(1)
        /// 0
        ln: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::ln);
        /// Logarithm to the base 10.
        ///
        /// shoal> math.log10(1000)
        /// 3
        log10: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::log10);
        /// Logarithm to the base 2.
        ///
        /// shoal> math.log2(8)
        /// 3
        log2: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::log2);
        /// Logarithm to any base.
        ///
        /// shoal> math.log(8, 2)
        /// 3
        log: [need("x", FLOAT), need("base", FLOAT)], Plain(FLOAT), Pure, |args| binary(&args, f64::log);
        /// e to the power of `x`.
        ///
        /// shoal> math.exp(0)
        /// 1
        exp: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::exp);
        /// `x` to the power of `y`.
        ///
        /// shoal> math.pow(2, 10)
        /// 1024
        pow: [need("x", FLOAT), need("y", FLOAT)], Plain(FLOAT), Pure, |args| binary(&args, f64::powf);
        /// Length of the hypotenuse.
        ///
        /// shoal> math.hypot(3, 4)
        /// 5
        hypot: [need("x", FLOAT), need("y", FLOAT)], Plain(FLOAT), Pure, |args| binary(&args, f64::hypot);
        /// Rounded down.
        ///
        /// shoal> math.floor(3.7)
        /// 3
        floor: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::floor);
        /// Rounded up.
        ///
        /// shoal> math.ceil(3.2)
        /// 4
        ceil: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::ceil);
        /// Rounded to the nearest whole number; a half goes away from zero.
        ///
        /// shoal> math.round(-2.5)
        /// -3
        round: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::round);
        /// Without its fraction.
        ///
        /// shoal> math.trunc(-3.9)
        /// -3
        trunc: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::trunc);
        /// Without its sign.
        ///
        /// shoal> math.abs(-5)
        /// 5
        abs: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, f64::abs);
        /// 1 or -1; 1 for zero.
        ///
        /// shoal> math.sign(-5)
        /// -1
        sign: [need("x", FLOAT)], Plain(FLOAT), Pure, |args| unary(&args, |x| if x == 0.0 { 1.0 } else { x.signum() });
        /// The least of its arguments.
        ///
        /// shoal> math.min(3, 7)
        /// 3
        min: [need("x", FLOAT), rest("more", FLOAT)], Plain(FLOAT), Pure, |args| all(args, f64::min);
        /// The greatest of its arguments.
        ///
        /// shoal> math.max(3, 7, 5)
        /// 7
        max: [need("x", FLOAT), rest("more", FLOAT)], Plain(FLOAT), Pure, |args| all(args, f64::max);
        /// `x`, or the bound it lies beyond.
        ///
        /// shoal> math.clamp(15, 0, 10)
        /// 10
        /// shoal> math.clamp(5, 10, 0)
        /// ! arg_error
        clamp: [need("x", FLOAT), need("lo", FLOAT), need("hi", FLOAT)], Plain(FLOAT), Pure, |args| clamp(&args);
    },
};

/// Float argument `at`. Binding has checked that there is one.
fn float(args: &Args, at: usize) -> f64 {
    args.peek(at).map_or(f64::NAN, as_float)
}

fn as_float(value: &Value) -> f64 {
    match value {
        Value::Float(x) => *x,
        _ => f64::NAN,
    }
}

fn unary(args: &Args, f: fn(f64) -> f64) -> Result<Value, ErrorValue> {
    Ok(Value::Float(f(float(args, 0))))
}

fn binary(args: &Args, f: fn(f64, f64) -> f64) -> Result<Value, ErrorValue> {
    Ok(Value::Float(f(float(args, 0), float(args, 1))))
}

fn all(mut args: Args, f: fn(f64, f64) -> f64) -> Result<Value, ErrorValue> {
    let first = float(&args, 0);
    Ok(Value::Float(args.take_rest().iter().map(as_float).fold(first, f)))
}

fn clamp(args: &Args) -> Result<Value, ErrorValue> {
    let (x, lo, hi) = (float(args, 0), float(args, 1), float(args, 2));
    if lo > hi {
        return Err(ErrorValue::arg_error(format!("math.clamp: lo {lo} is above hi {hi}")));
    }
    Ok(Value::Float(if x < lo {
        lo
    } else if x > hi {
        hi
    } else {
        x
    }))
}
