//! Wire forms, elision and previews.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use shoal_wire::Ref;
use shoal_wire::elide::{Budgets, ElideSpec, HARD_CAP};

use super::*;
use crate::equal::equal;
use crate::outcome::{Capture, OutcomeBody};
use crate::testing::{any_value, program, ran, stored, v};
use crate::{Bytes, Outcome, PathValue, Range, Table, TimeOfDay, Value, convert};

/// The full form, without a limit.
fn whole(value: &Value) -> String {
    to_wire(value, usize::MAX).unwrap()
}

fn full(value: &Value) -> Json {
    serde_json::from_str(&whole(value)).unwrap()
}

fn answer(value: &Value, path: Option<&str>, spec: ElideSpec) -> Json {
    let origin = Origin { reference: &Ref::Out(7), path, slice: None };
    let text = elide(value, &spec.budgets(), origin);
    assert!(text.len() as u64 <= HARD_CAP);
    serde_json::from_str(&text).unwrap()
}

fn plain(value: &Value) -> Json {
    answer(value, None, ElideSpec::default())
}

fn numbers(n: i64) -> Value {
    convert::to_list(&Range::exclusive(1, n).into()).unwrap().into()
}

#[test]
fn tagged_forms() {
    let cases = [
        (Value::Int(42), json!({"$":"int","v":42})),
        (Value::Size(2_000), json!({"$":"size","v":2000})),
        (Value::Duration(3_000_000_000), json!({"$":"duration","v":3_000_000_000i64})),
        (Range::exclusive(1, 3).into(), json!({"$":"range","start":1,"end":3,"inclusive":false})),
        (Value::Null, json!({"$":"null"})),
        (Value::Float(f64::NAN), json!({"$":"float","v":"NaN"})),
        (Value::Float(f64::INFINITY), json!({"$":"float","v":"Infinity"})),
        (Value::Channel("user.q".into()), json!({"$":"record","v":{"channel":{"$":"str","v":"user.q"}}})),
        (TimeOfDay::new(10, 0, 0).into(), json!({"$":"time","v":"10:00:00"})),
        (PathValue::from(&b"a\xff"[..]).into(), json!({"$":"path","v":"a\u{fffd}","raw":"Yf8="})),
        (Bytes::from(&b"a\n"[..]).into(), json!({"$":"bytes","v":"YQo="})),
        (Value::Secret("K".into()), json!({"$":"secret","name":"K"})),
    ];
    for (value, expected) in cases {
        assert_eq!(full(&value), expected);
        assert_eq!(plain(&value), expected);
    }
    assert_eq!(whole(&Value::Float(1.0)), r#"{"$":"float","v":1.0}"#);
}

#[test]
fn members_keep_their_order() {
    let record = v(r#"{"b":1,"a":[1]}"#);
    let text = r#"{"$":"record","v":{"b":{"$":"int","v":1},"a":{"$":"list","v":[{"$":"int","v":1}]}}}"#;
    assert_eq!(whole(&record), text);
    assert_eq!(whole(&from_wire(text).unwrap()), text);
}

#[test]
fn outcomes_have_an_envelope() {
    let failed = Outcome::new(program("false", 1, "", ""));
    let expected = json!({"$":"outcome","status":1,"ok":false,"signal":null,"out":{"$":"str","v":""},"err":"",
        "dur_ns":1000,"pid":7,"cmd":"false"});
    assert_eq!(plain(&failed.into()), expected);
    let table = plain(&ran(0, r#"[{"a":1,"b":"x"},{"a":2}]"#, "").into());
    let int = |n| json!({"$":"int","v":n});
    assert_eq!(
        table["out"],
        json!({"$":"table","cols":{"a":[int(1),int(2)],"b":[{"$":"str","v":"x"},{"$":"null"}]},"n":2})
    );
    let capture = Capture { stdout_seen: 9, stdout_kept: 4, ..Capture::default() };
    let body = OutcomeBody { stdout: (&b"\xff"[..]).into(), capture: Some(capture), ..program("p", 0, "", "") };
    let partial = plain(&Outcome::new(body).into());
    assert_eq!((&partial["lossy"], &partial["capture"]["stdout_seen"]), (&json!(true), &json!(9)));
}

#[test]
fn long_lists_become_references() {
    let answer = plain(&numbers(2_000));
    assert_eq!((&answer["$"], &answer["of"], &answer["n"]), (&json!("ref"), &json!("list"), &json!(1999)));
    assert_eq!(answer["uri"], "shoal://out/7");
    assert_eq!(answer["preview"]["v"].as_array().unwrap().len(), 5);
    assert_eq!(answer["render_head"], "1\n2\n3\n4\n5");
    let chosen = self::answer(&numbers(2_000), Some("."), ElideSpec::default());
    assert_eq!(chosen["uri"], "shoal://out/7?path=.");
}

#[test]
fn equal_to_the_budget_stays_inline() {
    let spec = ElideSpec { max_items: Some(20), ..ElideSpec::default() };
    assert_eq!(answer(&numbers(21), None, spec)["$"], "list");
    assert_eq!(answer(&numbers(22), None, spec)["$"], "ref");
    let exact = whole(&Value::str("abc")).len() as u64;
    let within = |max| answer(&Value::str("abc"), None, ElideSpec { max_bytes: Some(max), ..ElideSpec::default() });
    assert_eq!((&within(exact)["$"], &within(exact - 1)["$"]), (&json!("str"), &json!("ref")));
    assert_eq!(plain(&Bytes::from(vec![0; 4_096]).into())["$"], "bytes");
    assert_eq!(plain(&Bytes::from(vec![0; 4_097]).into())["$"], "ref");
}

#[test]
fn a_text_reference_counts_bytes_and_has_a_tail() {
    let spec = ElideSpec { max_bytes: Some(1), ..ElideSpec::default() };
    let answer = answer(&"héllo wörld".into(), None, spec);
    assert_eq!((&answer["of"], &answer["n"]), (&json!("str"), &json!(13)));
    assert_eq!(answer["preview"]["v"], "héllo wörld");
    assert_eq!(answer["tail"], "héllo wörld");
}

#[test]
fn an_outcome_keeps_its_envelope() {
    let value = ran(3, &"line\n".repeat(4_000), "e").into();
    let answer = plain(&value);
    assert_eq!((&answer["status"], &answer["ok"], &answer["err"]), (&json!(3), &json!(false), &json!("e")));
    let out = &answer["out"];
    assert_eq!((&out["$"], &out["of"], &out["uri"]), (&json!("ref"), &json!("str"), &json!("shoal://out/7?path=out")));
    assert!(out["tail"].as_str().unwrap().len() <= 1_024);
    let nested = self::answer(&value, Some("runs[0]"), ElideSpec::default());
    assert_eq!(nested["out"]["uri"], "shoal://out/7?path=runs[0].out");
    let noisy = plain(&ran(3, "", &"warning\n".repeat(4_000)).into());
    let err = noisy["err"].as_str().unwrap();
    assert!(err.len() < 8_400 && err.contains(" more lines, fetch via shoal://out/7?path=stderr)"), "{err}");
}

#[test]
fn references_of_tables_and_records() {
    let rows = Value::from(
        Table::from_columns(vec![
            ("n".into(), (0..200).map(Value::Int).collect()),
            ("s".into(), (0..200).map(|_| "x".into()).collect()),
        ])
        .unwrap(),
    );
    let answer = plain(&rows);
    assert_eq!((&answer["n"], &answer["cols"]), (&json!(200), &json!({"n":"int","s":"str"})));
    assert_eq!(answer["preview"]["n"], 5);
    let members = (0..9).map(|n| (format!("k{n}"), Value::from("x".repeat(2_000))));
    let record = plain(&Value::record(members).unwrap());
    assert_eq!((&record["of"], &record["n"]), (&json!("record"), &json!(9)));
    assert_eq!(record["preview"]["v"]["k4"], json!({"$":"null"}));
    assert!(record["preview"]["v"].get("k5").is_none());
}

#[test]
fn stored_bytes_are_always_a_reference() {
    let value = Value::Bytes(stored(b"abc"));
    let answer = plain(&value);
    assert_eq!((&answer["$"], &answer["of"], &answer["n"]), (&json!("ref"), &json!("bytes"), &json!(3)));
    assert_eq!(answer["uri"], "shoal://out/7");
    let inside = plain(&Value::list(vec![value]).unwrap());
    let hash = blake3::hash(b"abc").to_hex();
    assert_eq!(inside["v"][0]["uri"], json!(format!("shoal://val/blake3:{hash}")));
}

#[test]
fn previews_are_shortened_to_the_hard_cap() {
    let long = Value::from("x".repeat(100_000));
    let answer = plain(&Value::list(vec![long; 600]).unwrap());
    let first = answer["preview"]["v"][0]["v"].as_str().unwrap();
    assert_eq!(first.chars().count(), 257);
    assert!(first.ends_with('…'));
    let columns = (0..9_000).map(|n| (format!("column {n}").into(), vec![Value::Null])).collect();
    let wide = plain(&Table::from_columns(columns).unwrap().into());
    assert_eq!((&wide["$"], &wide["preview"]["$"]), (&json!("ref"), &json!("null")));
}

#[test]
fn envelopes_of_control_characters_stay_within_the_cap() {
    let bells = "\u{7}".repeat(100_000);
    let noisy = Outcome::new(OutcomeBody { cmd: bells.as_str().into(), ..program("", 1, &bells, &bells) });
    let answer = plain(&noisy.clone().into());
    assert_eq!(answer["of"], "outcome");
    assert_eq!(plain(&noisy.failure().into())["of"], "error");
}

#[test]
fn an_error_over_budget_still_says_what_is_wrong() {
    let error = ran(3, "out", &"warning\n".repeat(4_000)).failure();
    let answer = plain(&error.clone().into());
    assert_eq!((&answer["$"], &answer["of"], &answer["n"]), (&json!("ref"), &json!("error"), &json!(1)));
    let head = answer["render_head"].as_str().unwrap();
    assert!(head.starts_with("error(cmd_failed): `prog -x` exited with status 3\n"), "{head}");
    let spec = ElideSpec { max_bytes: Some(20_000), ..ElideSpec::default() };
    let inline = self::answer(&error.into(), None, spec);
    assert_eq!((&inline["code"], &inline["status"]), (&json!("cmd_failed"), &json!(3)));
    assert!(inline.get("stdout").is_none() && inline["stderr"].as_str().unwrap().len() < 8_400);
}

#[test]
fn stored_standard_error_is_announced() {
    let body = OutcomeBody { stderr: stored(&[b'e'; 9_000]), ..program("p", 1, "", "") };
    let answer = plain(&Outcome::new(body).into());
    assert!(answer["err"].as_str().unwrap().ends_with("e\n…(4904 more bytes, fetch via shoal://out/7?path=stderr)"));
}

#[test]
fn deep_values_are_referred_to_because_readers_stop_early() {
    let deep = crate::testing::nested(60);
    assert_eq!(plain(&deep)["$"], "ref");
    let ran_deep = ran(0, &format!("{}1{}", "[".repeat(100), "]".repeat(100)), "");
    assert_eq!(plain(&ran_deep.into())["out"]["$"], "ref");
}

#[test]
fn what_is_no_wire_value_is_refused() {
    let bad = [
        "",
        "7",
        "{}",
        r#"{"v":1}"#,
        r#"{"$":"int"}"#,
        r#"{"$":"int","v":"1"}"#,
        r#"{"$":"int","v":1.5}"#,
        r#"{"$":"bytes","v":"*"}"#,
        r#"{"$":"list","v":[1]}"#,
        r#"{"$":"time","v":"25:00"}"#,
        r#"{"$":"table","cols":{"a":[]},"n":1}"#,
        r#"{"$":"float","v":"nan"}"#,
        r#"{"$":"regex","src":"("}"#,
        r#"{"$":"int","v":1} x"#,
    ];
    for text in bad {
        assert!(from_wire(text).is_err(), "{text}");
    }
    assert!(from_wire(&format!("{}{}", "[".repeat(90_000), "]".repeat(90_000))).is_err());
}

#[test]
fn unknown_tags_are_kept_as_records() {
    let value = from_wire(r#"{"$":"list","v":[{"$":"new","z":[1,{"a":null}]}]}"#).unwrap();
    assert_eq!(crate::render::inline(&value), r#"[{"$": "new", z: [1, {a: null}]}]"#);
    let seconds = from_wire(r#"{"$":"datetime","v":"1783605600"}"#).unwrap();
    assert_eq!(crate::render::inline(&seconds), "2026-07-09T14:00:00Z");
}

#[test]
fn sparse_tables_do_not_grow_beyond_the_limit() {
    let rows = (0..5_000).map(|n| crate::Record::leaves([(format!("c{n}"), n.into())])).collect();
    let table = Value::from(Table::new(rows).unwrap());
    assert_eq!(to_wire(&table, 1 << 20), None);
    assert_eq!(plain(&table)["of"], "table");
}

#[test]
fn outcomes_are_read_back() {
    let again = |value: &Value| from_wire(&whole(value)).unwrap();
    let value = Value::from(ran(3, "text\n", "warn"));
    assert_eq!(full(&again(&value)), full(&value));
    let task = from_wire(r#"{"$":"task","id":2,"done":true}"#).unwrap();
    assert_eq!(crate::render::inline(&task), "task(2)");
}

proptest! {
    #[test]
    fn the_full_form_is_read_back_equal(value in any_value()) {
        let text = whole(&value);
        let back = from_wire(&text).unwrap();
        prop_assert!(equal(&value, &back).unwrap());
        prop_assert_eq!(whole(&back), text);
    }

    #[test]
    fn answers_stay_within_their_budgets(value in any_value(), max in 0u64..3_000, wrap in any::<bool>()) {
        let value = if wrap { Outcome::new(OutcomeBody::builtin("b", value, Bytes::empty(), 1)).into() } else { value };
        let spec = ElideSpec { max_bytes: Some(max), ..ElideSpec::default() };
        let origin = Origin { reference: &Ref::Out(1), path: Some("a.b"), slice: Some((0, 9)) };
        let text = elide(&value, &spec.budgets(), origin);
        let json: Json = serde_json::from_str(&text).unwrap();
        let body = if wrap { &json["out"] } else { &json };
        if body["$"] != "ref" {
            prop_assert!(serde_json::to_string(body).unwrap().len() as u64 <= max);
        }
    }

    #[test]
    fn counting_agrees_with_encoding(value in any_value()) {
        let text = whole(&value);
        let exact = Budgets { max_bytes: text.len() as u64, max_bytes_raw: 1 << 20, ..Budgets::DEFAULT };
        let origin = Origin { reference: &Ref::Out(1), path: None, slice: None };
        if text.len() as u64 <= HARD_CAP && !matches!(value, Value::Bytes(Bytes::Stored(_))) {
            prop_assert_eq!(elide(&value, &exact, origin), text);
        }
    }
}
