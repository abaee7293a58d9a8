//! The operator table of the language, row by row.

use proptest::prelude::*;

use super::*;
use crate::render::inline;
use crate::testing::{any_value, datetime, ran, v};

const S: i64 = 1_000_000_000;

fn done(op: BinaryOp, a: impl Into<Value>, b: impl Into<Value>) -> String {
    match binary(op, a.into(), b.into()) {
        Ok(value) => inline(&value),
        Err(error) => format!("{error}"),
    }
}

fn size(bytes: u64) -> Value {
    Value::Size(bytes)
}

fn dur(nanos: i64) -> Value {
    Value::Duration(nanos)
}

#[test]
fn int_arithmetic_is_checked() {
    use BinaryOp::{Add, Div, Mul, Rem, Sub};
    assert_eq!(done(Div, 7, -2), "-3");
    assert_eq!(done(Div, -7, 2), "-3");
    assert_eq!(done(Rem, -7, 3), "-1");
    assert_eq!(done(Rem, 7, -3), "1");
    assert_eq!(done(Rem, i64::MIN, -1), "0");
    for (op, a, b) in [(Add, i64::MAX, 1), (Sub, i64::MIN, 1), (Mul, i64::MAX, 2), (Div, i64::MIN, -1)] {
        assert!(done(op, a, b).starts_with("overflow: "), "{op:?}");
    }
    assert_eq!(done(Div, 1, 0), "div_zero: division by zero");
    assert_eq!(done(Rem, 1, 0), "div_zero: division by zero");
    assert_eq!(&*negate(&Value::Int(i64::MIN)).unwrap_err().code, "overflow");
}

#[test]
fn float_arithmetic_follows_ieee() {
    use BinaryOp::{Add, Div, Rem};
    assert_eq!(done(Add, 0.5, 2), "2.5");
    assert_eq!(done(Div, 5, 2.0), "2.5");
    assert_eq!(done(Rem, 5.5, 2), "1.5");
    assert_eq!(done(Div, 1.0, 0), "inf");
    assert_eq!(done(Div, 0.0, 0.0), "nan");
    assert_eq!(done(Div, -1.0, 0.0), "-inf");
}

#[test]
fn text_and_lists_join() {
    use BinaryOp::Add;
    assert_eq!(done(Add, "a", "b"), "\"ab\"");
    assert_eq!(done(Add, v("[1]"), v("[2, 3]")), "[1, 2, 3]");
    let tables = [
        (v(r#"[{"a":1}]"#), v(r#"[{"b":2}]"#), "table"),
        (v(r#"[{"a":1}]"#), v("[]"), "table"),
        (v("[]"), v(r#"[{"a":1}]"#), "table"),
        (v(r#"[{"a":1}]"#), v("[7]"), "list"),
    ];
    for (a, b, kind) in tables {
        assert_eq!(binary(Add, a, b).unwrap().type_name(), kind);
    }
}

#[test]
fn a_list_that_is_not_shared_grows_in_place() {
    let mut list = Value::list(vec![]).unwrap();
    for n in 0..20_000 {
        list = binary(BinaryOp::Add, list, Value::list(vec![Value::Int(n)]).unwrap()).unwrap();
    }
    let shared = list.clone();
    let longer = binary(BinaryOp::Add, list, v("[1]")).unwrap();
    let len = |value: &Value| crate::convert::to_list(value).unwrap().len();
    assert_eq!((len(&shared), len(&longer)), (20_000, 20_001));
}

#[test]
fn sizes() {
    use BinaryOp::{Add, Div, Mul, Rem, Sub};
    assert_eq!(done(Sub, size(2_000), size(500)), "1.5kb");
    assert!(done(Sub, size(1), size(2)).contains("negative"));
    assert!(done(Add, size(u64::MAX), size(1)).starts_with("overflow"));
    assert_eq!(done(Mul, 4, size(3_000)), "12kb");
    assert!(done(Mul, size(1), -1).starts_with("type_error: a size cannot be negative"));
    assert!(done(Mul, size(u64::MAX), 2).contains("size overflow"));
    assert_eq!(done(Mul, 1.5, size(2_000)), "3kb");
    assert!(done(Mul, size(1), -0.5).contains("negative"));
    for factor in [f64::NAN, f64::INFINITY, 1e30] {
        assert!(done(Mul, size(1), factor).starts_with("overflow: size overflow"), "{factor}");
    }
    assert_eq!(done(Div, size(10_000), 3), "3.33kb");
    assert!(done(Div, size(1), -1).contains("negative"));
    assert_eq!(done(Div, size(10_000), size(4_000)), "2.5");
    assert!(done(Div, size(1), size(0)).starts_with("div_zero"));
    assert!(done(Div, size(1), 0).starts_with("div_zero"));
    for (op, a, b) in [(Div, size(1), Value::Float(2.0)), (Rem, size(5), size(3)), (Add, size(1), Value::Int(1))] {
        assert!(done(op, a, b).starts_with("type_error: cannot apply"));
    }
    assert_eq!(&*negate(&size(1)).unwrap_err().code, "type_error");
}

#[test]
fn durations_and_datetimes() {
    use BinaryOp::{Add, Div, Mul, Sub};
    let at = || datetime("2026-07-09T14:00:00Z");
    assert_eq!(done(Sub, dur(S), dur(3 * S)), "-2s");
    assert!(done(Add, dur(i64::MAX), dur(1)).contains("duration overflow"));
    assert_eq!(done(Mul, 1.5, dur(30 * S)), "45s");
    assert!(done(Mul, dur(S), f64::NAN).contains("duration overflow"));
    assert!(done(Mul, dur(S), 1e18).contains("duration overflow"));
    assert_eq!(done(Div, dur(90 * S), 4), "22s500ms");
    assert_eq!(done(Div, dur(90 * S), dur(60 * S)), "1.5");
    assert!(done(Div, dur(S), dur(0)).starts_with("div_zero"));
    assert_eq!(done(Add, dur(90 * S), at()), "2026-07-09T14:01:30Z");
    assert_eq!(done(Sub, at(), dur(S)), "2026-07-09T13:59:59Z");
    assert_eq!(done(Sub, at(), datetime("2026-07-08T14:00:00Z")), "1d");
    assert!(done(Sub, dur(S), at()).contains("cannot apply `-` to duration and datetime"));
    assert!(done(Add, at(), at()).starts_with("type_error"));
}

#[test]
fn ranges_take_ints_only() {
    assert_eq!(done(BinaryOp::Range, 1, 5), "1..5");
    assert_eq!(done(BinaryOp::RangeInclusive, 5, 1), "5..=1");
    assert!(done(BinaryOp::Range, 1.0, 5).contains("cannot apply `..` to float and int"));
}

#[test]
fn operators_see_the_outcome_itself() {
    assert!(done(BinaryOp::Add, ran(0, "a", ""), "b").contains("to outcome and str"));
    assert_eq!(inline(&not(&ran(1, "", "").into()).unwrap()), "true");
    assert!(not(&Value::Int(0)).unwrap_err().msg.contains("no truthiness"));
}

proptest! {
    #[test]
    fn no_operator_panics(a in any_value(), b in any_value()) {
        use BinaryOp::*;
        for op in [Add, Sub, Mul, Div, Rem, Equal, Less, In, Range, RangeInclusive] {
            if let Err(error) = binary(op, a.clone(), b.clone()) {
                prop_assert!(crate::code::ALL.contains(&&*error.code));
            }
        }
    }
}
