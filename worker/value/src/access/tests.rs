//! Fields and indexing.

use super::*;
use crate::render::inline;
use crate::testing::{datetime, ran, v};
use crate::{Regex, Span, TimeOfDay};

fn read(value: impl Into<Value>, name: &str) -> String {
    match field(&value.into(), name) {
        Ok(Some(found)) => inline(&found),
        Ok(None) => "none".to_owned(),
        Err(error) => format!("{error}"),
    }
}

#[test]
fn scalar_fields() {
    let at = || datetime("2026-07-09T23:30:45-05:00");
    let all =
        ["year", "month", "day", "hour", "minute", "second", "weekday", "date", "unix"].map(|name| read(at(), name));
    assert_eq!(all.join(" "), "2026 7 9 23 30 45 4 \"2026-07-09\" 1783657845");
    assert_eq!(read(Value::Duration(-1_500_000_000), "seconds"), "-1");
    assert_eq!(read(Value::Duration(1_500_000_000), "millis"), "1500");
    assert_eq!(read(Value::Duration(1), "ago"), "none");
    assert_eq!(read(Value::Size(5), "bytes"), "5");
    assert!(read(Value::Size(u64::MAX), "bytes").starts_with("overflow"));
    assert_eq!(read(TimeOfDay::parse("9:05"), "minute"), "5");
    assert_eq!(read(Regex::new("a+").unwrap(), "pattern"), "\"a+\"");
    assert_eq!(read("abc", "upper"), "none");
}

#[test]
fn records_are_strict() {
    assert_eq!(read(v(r#"{"len": 7}"#), "len"), "7");
    let error = field(&v(r#"{"a": 7, "b": 8}"#), "keys").unwrap_err();
    assert_eq!((&*error.code, error.hint.as_deref()), ("field_missing", Some("it has: a, b")));
}

#[test]
fn outcomes_show_themselves_and_their_out() {
    let good = || ran(0, "{\"a\": 5}\n", "warn");
    assert_eq!(read(good(), "status"), "0");
    assert_eq!(read(good(), "out"), "{a: 5}");
    assert_eq!(read(good(), "a"), "5");
    assert_eq!(read(good(), "text"), "\"{\\\"a\\\": 5}\"");
    assert_eq!(read(good(), "err"), "bytes(4b)");
    assert!(read(good(), "zip").starts_with("field_missing"));
    let bad = || ran(7, "", "no\n");
    assert_eq!(read(bad(), "status"), "7");
    assert_eq!(read(bad(), "stderr"), "bytes(3b)");
    for name in ["out", "text", "err", "a"] {
        assert!(read(bad(), name).starts_with("cmd_failed: `prog -x` exited with status 7"), "{name}");
    }
    assert!(field(&bad().into(), "err").unwrap_err().hint.as_deref().unwrap().contains("`.stderr`"));
}

#[test]
fn errors_have_all_fields() {
    let failed = || ran(7, "o", "e").failure().or_span(Span { start: 1, end: 4, line: 1, col: 2 });
    assert_eq!(read(failed(), "status"), "7");
    assert_eq!(read(failed(), "span"), "{start: 1, end: 4, line: 1, col: 2}");
    assert_eq!(read(failed(), "outcome"), "outcome(status: 7, ok: false)");
    assert_eq!(read(ErrorValue::new("c", "m"), "hint"), "null");
    assert_eq!(read(ErrorValue::new("c", "m"), "nope"), "none");
    let kept = failed().or_span(Span::default());
    assert_eq!(kept.span.unwrap().end, 4);
}

#[test]
fn indexing() {
    let at = |value: Value, at: Value| match index(&value, &at) {
        Ok(found) => inline(&found),
        Err(error) => error.code.to_string(),
    };
    assert_eq!(at(v("[1, 2]"), (-1).into()), "2");
    assert_eq!(at(v("[1, 2]"), 2.into()), "index_range");
    assert_eq!(at(v("[1, 2]"), (-3).into()), "index_range");
    assert_eq!(at(v("[]"), i64::MIN.into()), "index_range");
    assert_eq!(at(v(r#"[{"a":1}]"#), 0.into()), "{a: 1}");
    assert_eq!(at("héllo".into(), 1.into()), "\"é\"");
    assert_eq!(at(v(r#"{"a":1}"#), "a".into()), "1");
    assert_eq!(at(v(r#"{"a":1}"#), "b".into()), "field_missing");
    assert_eq!(at(ran(0, "[4]", "").into(), 0.into()), "4");
    assert_eq!(at(ran(1, "[4]", "").into(), 0.into()), "cmd_failed");
    assert_eq!(at(crate::Range::exclusive(0, 3).into(), 0.into()), "type_error");
    assert_eq!(at(crate::Bytes::empty().into(), 0.into()), "type_error");
}
