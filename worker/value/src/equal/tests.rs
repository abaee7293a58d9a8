//! Equality, order and membership.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::DefaultHasher;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::order::{compare, contains};
use crate::testing::{Lambda, Named, any_value, cut, datetime, ran, stored, v};
use crate::{Glob, PathValue, Range};

fn eq(a: impl Into<Value>, b: impl Into<Value>) -> bool {
    equal(&a.into(), &b.into()).unwrap()
}

#[test]
fn numbers_compare_by_exact_value() {
    assert!(eq(2, 2.0));
    assert!(!eq(f64::NAN, f64::NAN));
    assert!(!eq(9_007_199_254_740_993, 9_007_199_254_740_992.0));
    assert!(!eq(i64::MAX, 9_223_372_036_854_775_808.0));
    assert!(eq(i64::MIN, -9_223_372_036_854_775_808.0));
    assert!(eq(0.0, -0.0));
}

#[test]
fn other_types_are_not_equal() {
    assert!(!eq(7, Value::Size(7)));
    assert!(!eq(false, 0));
    assert!(!eq(Value::Null, ""));
    assert!(!eq(Value::Size(1), Value::Duration(1)));
}

#[test]
fn the_two_exceptions() {
    assert!(eq(PathValue::from("a/b"), "a/b"));
    let table = v(r#"[{"a": 1, "b": 2}]"#);
    let list = Value::list(vec![v(r#"{"b": 2, "a": 1.0}"#)]).unwrap();
    assert_eq!((table.type_name(), list.type_name()), ("table", "list"));
    assert!(eq(table, list));
    assert!(!eq(v(r#"[{"a": 1}]"#), v(r#"[{"a": 1, "b": null}]"#)));
}

#[test]
fn bytes_compare_by_content_stored_or_not() {
    let held = Bytes::from(&b"abc"[..]);
    assert!(eq(stored(b"abc"), held.clone()));
    assert!(!eq(stored(b"abd"), held.clone()));
    assert!(eq(stored(b"abc"), stored(b"abc")));
    assert!(!eq(cut("a", "bc", 9), held));
    assert!(eq(cut("a", "bc", 9), cut("a", "bc", 9)));
}

#[test]
fn instants_patterns_errors() {
    assert!(eq(datetime("2026-07-09T14:00:00+02:00"), datetime("2026-07-09T12:00:00Z")));
    assert!(eq(Glob::new("*.a", "/x".into(), true), Glob::new("*.a", "/y".into(), false)));
    assert!(eq(ErrorValue::new("c", "m").with_hint("h"), ErrorValue::new("c", "m")));
    assert!(!eq(Range::exclusive(0, 3), Range { start: 0, end: 2, inclusive: true }));
}

#[test]
fn handles_compare_by_identity_and_builtins_by_name() {
    let outcome = ran(0, "", "");
    assert!(eq(outcome.clone(), outcome));
    assert!(!eq(ran(0, "", ""), ran(0, "", "")));
    let lambda = || Value::Closure(Arc::new(Lambda));
    let one = lambda();
    assert!(eq(one.clone(), one));
    assert!(eq(Value::Closure(Arc::new(Named("sqrt"))), Value::Closure(Arc::new(Named("sqrt")))));
    assert!(!eq(Value::Closure(Arc::new(Named("sqrt"))), Value::Closure(Arc::new(Named("abs")))));
    let stream = Value::Stream(Arc::new(Lambda));
    assert!(eq(stream.clone(), stream.clone()));
    let error = equal(&stream, &Value::Int(1)).unwrap_err();
    assert_eq!((&*error.code, &*error.msg), ("type_error", "cannot compare stream with int"));
}

#[test]
fn order_needs_the_same_kind() {
    let order = |a: Value, b: Value| compare(&a, &b).map_err(|e| e.msg.to_string());
    assert_eq!(order("B".into(), "a".into()), Ok(Ordering::Less));
    assert_eq!(order(1.into(), 1.5.into()), Ok(Ordering::Less));
    assert_eq!(order(false.into(), true.into()), Ok(Ordering::Less));
    assert_eq!(order(f64::NAN.into(), 1.into()), Err("cannot compare nan with int".to_owned()));
    assert_eq!(order("a".into(), 1.into()), Err("cannot compare str with int".to_owned()));
    assert_eq!(order(v("[1]"), v("[2]")), Err("cannot compare list with list".to_owned()));
    assert_eq!(order(Value::Null, Value::Null), Err("cannot compare null with null".to_owned()));
}

#[test]
fn membership() {
    let holds = |item: Value, container: Value| contains(&container, &item).map_err(|e| e.code.to_string());
    assert_eq!(holds(2.0.into(), v("[1, 2]")), Ok(true));
    assert_eq!(holds(v("[1]"), v("[1]")), Ok(false));
    assert_eq!(holds(1.into(), v("[]")), Ok(false));
    assert_eq!(holds("ell".into(), "hello".into()), Ok(true));
    assert_eq!(holds("a".into(), v(r#"{"a": null}"#)), Ok(true));
    assert_eq!(holds(5.into(), Range::exclusive(1, 5).into()), Ok(false));
    assert_eq!(holds(v(r#"{"a": 1}"#), v(r#"[{"a": 1}]"#)), Ok(true));
    assert_eq!(holds("b".into(), ran(0, "abc\n", "").into()), Ok(true));
    assert_eq!(holds("b".into(), ran(1, "abc\n", "").into()), Err("cmd_failed".to_owned()));
    assert_eq!(holds(1.into(), "1".into()), Err("type_error".to_owned()));
}

/// Values that have an order with all others of the group.
fn ordered() -> impl Strategy<Value = Vec<Value>> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (proptest::num::f64::NORMAL | proptest::num::f64::ZERO | proptest::num::f64::INFINITE).prop_map(Value::Float),
        (-5i64..5).prop_map(Value::Int),
        (-5i64..5).prop_map(|n| Value::Float(n as f64 / 2.0)),
        (0i64..4).prop_map(|n| Value::Int(9_007_199_254_740_990 + n)),
        (0i64..4).prop_map(|n| Value::Float(9_007_199_254_740_990.0 + n as f64)),
    ];
    prop_oneof![
        prop::collection::vec(number, 3),
        prop::collection::vec(".{0,3}".prop_map(Value::from), 3),
        prop::collection::vec(any::<u64>().prop_map(Value::Size), 3),
    ]
}

proptest! {
    #[test]
    fn order_is_total_within_a_kind(values in ordered()) {
        let [a, b, c] = [&values[0], &values[1], &values[2]];
        let order = |a, b| compare(a, b).unwrap();
        prop_assert_eq!(order(a, b), order(b, a).reverse());
        prop_assert_eq!(order(a, b).is_eq(), equal(a, b).unwrap());
        if order(a, b).is_le() && order(b, c).is_le() {
            prop_assert!(order(a, c).is_le());
        }
    }

    #[test]
    fn equal_values_hash_alike(a in any_value(), b in any_value()) {
        let digest = |value: &Value| {
            let mut state = DefaultHasher::new();
            hash(value, &mut state);
            state.finish()
        };
        prop_assert!(equal(&a, &a.clone()).unwrap());
        prop_assert_eq!(equal(&a, &b).unwrap(), equal(&b, &a).unwrap());
        if equal(&a, &b).unwrap() {
            prop_assert_eq!(digest(&a), digest(&b));
        }
    }
}

#[test]
fn hashing_agrees_where_types_differ() {
    let pairs = [
        (Value::Int(2), Value::Float(2.0)),
        (Value::Float(0.0), Value::Float(-0.0)),
        (Value::Path("a".into()), Value::str("a")),
        (v(r#"[{"a":1,"b":2}]"#), Value::list(vec![v(r#"{"b":2,"a":1}"#)]).unwrap()),
        (stored(b"x").into(), Bytes::from(&b"x"[..]).into()),
    ];
    for (a, b) in pairs {
        let set = HashSet::from([ByEquality(a.clone()), ByEquality(b)]);
        assert_eq!(set.len(), 1, "{a:?}");
    }
    assert_eq!(HashSet::from([ByEquality(Value::Float(f64::NAN)), ByEquality(Value::Float(f64::NAN))]).len(), 2);
}
