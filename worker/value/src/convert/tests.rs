//! Conversions and word coercion.

use jiff::tz::TimeZone;

use super::*;
use crate::render::inline;
use crate::testing::{cut, stored, v};
use crate::{Range, json};

fn code<T: std::fmt::Debug>(result: Result<T, ErrorValue>) -> String {
    result.unwrap_err().code.to_string()
}

#[test]
fn str_is_strict_and_display_is_not() {
    let odd = PathValue::from(&b"a\xff"[..]);
    assert_eq!(&*to_str(&Value::Float(2.0)).unwrap(), "2");
    assert_eq!(code(to_str(&odd.clone().into())), "utf8_error");
    assert_eq!(&*display(&odd.into()).unwrap(), "a\u{fffd}");
    assert_eq!(code(to_str(&Bytes::from(&b"\xff"[..]).into())), "utf8_error");
    assert_eq!(code(to_str(&cut("a", "b", 9).into())), "too_large");
    assert_eq!(&*display(&cut("a", "b", 9).into()).unwrap(), "a\n[... 7 bytes not kept ...]\nb");
    assert!(to_str(&v("[1]")).unwrap_err().msg.contains("interpolation"));
}

#[test]
fn numbers() {
    assert_eq!(to_int(&Value::Float(-2.9)).unwrap(), -2);
    for bad in [f64::NAN, f64::INFINITY, 9.3e18, -9.3e18] {
        assert_eq!(code(to_int(&Value::Float(bad))), "overflow");
    }
    assert_eq!(to_int(&Value::Float(i64::MIN as f64)).unwrap(), i64::MIN);
    assert_eq!(to_int(&Value::Size(5)).unwrap(), 5);
    assert_eq!(code(to_int(&Value::Size(u64::MAX))), "overflow");
    assert_eq!(to_int(&Value::str("12")).unwrap(), 12);
    assert_eq!(code(to_int(&Value::str("1_2"))), "arg_error");
    assert_eq!(to_float(&Value::str("1.5")).unwrap(), 1.5);
    assert_eq!(code(to_float(&Value::Null)), "type_error");
}

#[test]
fn lists() {
    assert_eq!(inline(&to_list(&Range::exclusive(0, 3).into()).unwrap().into()), "[0, 1, 2]");
    assert_eq!(to_list(&v(r#"[{"a":1}]"#)).unwrap().len(), 1);
    assert_eq!(code(to_list(&Range::exclusive(i64::MIN, i64::MAX).into())), "too_large");
    assert_eq!(code(to_list(&Value::str("a"))), "type_error");
}

#[test]
fn words() {
    let cwd = PathValue::from("/w");
    let context = WordContext { cwd: &cwd, local: &TimeZone::UTC };
    let coerced = |word: &str, kind: &str| match coerce_word(word, kind, context) {
        Ok(value) => format!("{} {}", value.type_name(), inline(&value)),
        Err(error) => format!("{error}"),
    };
    assert_eq!(coerced("5", "int"), "int 5");
    assert_eq!(coerced("5", "duration"), "duration 5s");
    assert_eq!(coerced("5MB", "size"), "size 5mb");
    assert_eq!(coerced("1.50", "float"), "float 1.5");
    assert_eq!(coerced("true", "bool"), "bool true");
    assert_eq!(coerced("9:30PM", "time"), "time 21:30");
    assert_eq!(coerced("2026-07-09", "datetime"), "datetime 2026-07-09T00:00:00Z");
    assert_eq!(coerced("a b", "path"), "path \"a b\"");
    assert_eq!(coerced("*.rs", "glob"), "glob *.rs");
    assert_eq!(coerced("a+", "regex"), "regex re\"a+\"");
    assert_eq!(coerced("x", "any"), "str \"x\"");
    for kind in ["int", "float", "bool", "size", "duration", "time", "datetime"] {
        assert_eq!(coerced("wat", kind), format!("arg_error: expected {kind}, found \"wat\""));
    }
    assert_eq!(coerced("a(", "regex"), "arg_error: expected regex, found \"a(\"");
    assert!(coerced("99999999999999999999", "int").contains("out of range"));
}

#[test]
fn json_mapping() {
    let shown = |value: &Value| json::stringify(value).unwrap();
    let record = Value::record([
        ("b", Value::Float(1.0)),
        ("a", Value::Size(2_000)),
        ("n", Value::Float(f64::NAN)),
        ("t", crate::testing::datetime("2026-07-09T14:00Z")),
        ("o", crate::testing::ran(3, "out\n", "e").into()),
        ("e", ErrorValue::new("c", "m").into()),
        ("r", Range::exclusive(0, 2).into()),
        ("s", Value::Secret("K".into())),
    ]);
    assert_eq!(
        shown(&record.unwrap()),
        r#"{"b":1.0,"a":2000,"n":null,"t":"2026-07-09T14:00:00+00:00[UTC]","o":{"status":3,"ok":false,"out":"out","err":"e"},"e":{"code":"c","msg":"m"},"r":[0,1],"s":"secret(K)"}"#
    );
    assert_eq!(shown(&Value::str("a\"\\\n\u{1}é")), r#""a\"\\\n\u0001é""#);
    assert!(shown(&stored(b"xyz").into()).ends_with(r#","len":3,"truncated":false,"preview":"xyz"}"#));
    assert_eq!(code(json::stringify(&cut("a", "b", 9).into())), "too_large");
    assert_eq!(code(json::stringify(&crate::testing::ran(3, "", "").into())), "cmd_failed");
    assert_eq!(code(json::stringify(&Range::exclusive(0, i64::MAX).into())), "too_large");
}

#[test]
fn json_is_read_into_tables_and_lists() {
    assert_eq!(v("[]").type_name(), "list");
    assert_eq!(v(r#"[{"a":1},{"b":2}]"#).type_name(), "table");
    assert_eq!(v(r#"[{"a":1},2]"#).type_name(), "list");
    assert_eq!(inline(&v(r#"{"b":1,"a":2,"b":3}"#)), "{b: 3, a: 2}");
    assert_eq!(v("9223372036854775808").type_name(), "float");
    assert_eq!(v("1e2").type_name(), "float");
    for bad in ["", "{", "[1,]", "1 2", "nan", "{'a':1}"] {
        assert_eq!(code(json::parse(bad)), "arg_error", "{bad}");
    }
}

#[test]
fn feeding() {
    use crate::feed::{Feed, feed, item_line};
    let fed = |value: Value| match feed(&value) {
        Ok(Feed::Held(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
        Ok(Feed::Stored(stored)) => format!("stored {}", stored.len),
        Err(error) => error.code.to_string(),
    };
    assert_eq!(fed("a".into()), "a");
    assert_eq!(fed(v(r#"["a","b"]"#)), "a\nb\n");
    assert_eq!(fed(v("[1, \"b\"]")), "[1,\"b\"]");
    assert_eq!(fed(Value::Duration(1_500_000_000)), "1s500ms");
    assert_eq!(fed(crate::testing::ran(0, "raw\n", "").into()), "raw\n");
    assert_eq!(fed(crate::testing::ran(1, "raw\n", "").into()), "cmd_failed");
    assert_eq!(fed(stored(b"abc").into()), "stored 3");
    assert_eq!(fed(cut("a", "b", 9).into()), "too_large");
    assert_eq!(fed(PathValue::from("x").into()), "type_error");
    assert_eq!(fed(Value::Secret("K".into())), "feed_error");
    assert_eq!(fed(Value::Null), "type_error");
    assert_eq!(item_line(&v(r#"{"a":1}"#)).unwrap(), b"{\"a\":1}\n");
    assert_eq!(item_line(&Value::str("x")).unwrap(), b"x\n");
}
