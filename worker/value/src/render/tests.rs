//! Inline and block text.

use std::sync::Arc;

use proptest::prelude::*;
use shoal_wire::limits::TEXT_BYTES;

use super::*;
use crate::outcome::{Out, OutcomeBody};
use crate::testing::{Lambda, any_value, cut, datetime, program, ran, stored, v};
use crate::{Bytes, ErrorValue, Outcome, PathValue, Range, Record, Regex, Table, Value};

fn drawn(value: impl Into<Value>) -> String {
    block(&value.into(), &Style::default())
}

#[test]
fn inline_forms() {
    let cases: Vec<(Value, &str)> = vec![
        (Value::Null, "null"),
        (2.0.into(), "2"),
        ("a\"\\\n\t\r\0\u{1b}é".into(), "\"a\\\"\\\\\\n\\t\\r\\0\u{1b}é\""),
        (PathValue::from("a/b").into(), "a/b"),
        (PathValue::from("a b").into(), "\"a b\""),
        (Regex::new("a\\d").unwrap().into(), "re\"a\\d\""),
        (datetime("2026-07-09T14:00:00+02:00"), "2026-07-09T12:00:00Z"),
        (crate::TimeOfDay::new(9, 5, 0).into(), "09:05"),
        (Bytes::from(vec![0; 1_500]).into(), "bytes(1.5kb)"),
        (cut("abc", "", 2_000).into(), "bytes(3b of 2kb)"),
        (v(r#"[{"a": 1}, {"odd key": "x"}]"#), "[{a: 1}, {\"odd key\": \"x\"}]"),
        (Range { start: 1, end: 5, inclusive: true }.into(), "1..=5"),
        (ErrorValue::new("c", "m").into(), "error(c: m)"),
        (ran(0, "", "").into(), "outcome(status: 0, ok: true)"),
        (Value::Stream(Arc::new(Lambda)), "stream<list>"),
        (Value::Task(Arc::new(Lambda)), "task(3)"),
        (Value::Channel("user.q".into()), "channel(user.q)"),
        (Value::Secret("K".into()), "secret(K)"),
    ];
    for (value, text) in cases {
        assert_eq!(inline(&value), text);
    }
    let killed = OutcomeBody { status: None, ok: false, signal: Some("SIGSEGV".into()), ..program("p", 1, "", "") };
    assert_eq!(inline(&Outcome::new(killed).into()), "outcome(signal: SIGSEGV, ok: false)");
    assert!(inline(&stored(b"abc").into()).starts_with("bytes(3b) val:blake3:6437b3ac"));
    assert_eq!(&*interpolate(&PathValue::from("a b").into()), "a b");
    assert_eq!(&*interpolate(&v("[\"x\"]")), "[\"x\"]");
}

#[test]
fn records_and_lists_in_block_form() {
    assert_eq!(drawn(v(r#"{"b":1,"a":[1]}"#)), "b  1\na  [1]");
    assert_eq!(drawn(v(r#"{"name":"x\ny","n":null}"#)), "name  x⏎y\nn");
    assert_eq!(drawn(v(r#"["a", 2, null, ["b"]]"#)), "a\n2\n\n[\"b\"]");
    assert_eq!(drawn(Value::Null), "");
    assert_eq!(drawn("a\nb\tc\u{1b}[31m\r"), "a\nb\tc\\x1b[31m\\r");
}

#[test]
fn tables_have_a_rule_and_two_spaces() {
    assert_eq!(
        drawn(v(r#"[{"a":1,"name":"x"},{"name":"日本","b":true}]"#)),
        "a  name  b\n─  ────  ────\n1  x\n   日本  true"
    );
    assert_eq!(drawn(Table::new(vec![]).unwrap()), "(empty table)");
    let list = Value::list(vec![v(r#"{"a":1}"#)]).unwrap();
    assert_eq!(drawn(list), "a\n─\n1");
}

#[test]
fn cells_are_cut_and_the_widest_column_gives_way() {
    let wide = "x".repeat(100);
    let one = drawn(Value::list(vec![Value::record([("a", wide.as_str().into())]).unwrap()]).unwrap());
    assert_eq!(one.lines().nth(2), Some(&*format!("{}…", "x".repeat(59))));
    let row = Record::leaves([("k", "short".into()), ("a", wide.as_str().into()), ("b", wide.as_str().into())]);
    let text = block(&Table::new(vec![row]).unwrap().into(), &Style { width: 40, ..Style::default() });
    assert!(text.lines().skip(1).all(|line| line.chars().count() == 40), "{text}");
    assert!(text.contains("short  xxx"));
}

#[test]
fn a_path_column_that_repeats_is_not_drawn() {
    let row = |dir: &str| Record::leaves([("name", "a".into()), ("path", PathValue::from(format!("{dir}/a")).into())]);
    let style = Style { cwd: Some("/w".into()), ..Style::default() };
    let header =
        |dir: &str| block(&Table::new(vec![row(dir)]).unwrap().into(), &style).lines().next().unwrap().to_owned();
    assert_eq!(header("/w"), "name");
    assert_eq!(header("/v"), "name  path");
}

#[test]
fn outcomes_in_block_form() {
    assert_eq!(drawn(ran(0, "a\nb\n", "warn")), "a\nb");
    assert_eq!(drawn(ran(0, "", "")), "ok");
    assert_eq!(drawn(ran(0, "[1, 2]", "")), "1\n2");
    assert_eq!(drawn(ran(7, "out\n", "bad\n")), "out\nbad\n[exit 7]");
    assert_eq!(drawn(ran(1, "", "")), "[exit 1]");
    let killed = OutcomeBody { status: None, ok: false, signal: Some("SIGKILL".into()), ..program("p", 1, "", "") };
    assert_eq!(drawn(Outcome::new(killed)), "[SIGKILL]");
    let body = OutcomeBody { out: Out::Value("x".into()), ..program("p", 0, "", "") };
    assert_eq!(drawn(Outcome::new(body)), "x");
}

#[test]
fn long_output_shows_both_ends_and_how_it_ended() {
    let lines: String = (0..60_000).map(|n| format!("line {n}\n")).collect();
    let failed = Value::Outcome(ran(3, &format!("{lines}the reason\n"), &lines));
    let text = block_within(&failed, &Style::default(), Some("shoal://out/4"));
    assert!(text.len() <= TEXT_BYTES && text.starts_with("line 0\n"), "{}", text.len());
    assert!(text.contains("line 59999\nthe reason\n") && text.ends_with("\nline 59999\n[exit 3]"));
    assert!(text.contains(" more lines, fetch via shoal://out/4?path=stdout)\n"));
    assert!(text.contains(" more lines, fetch via shoal://out/4?path=stderr)\n"));
    let whole = block(&failed, &Style::default());
    assert!(whole.len() > 2 * lines.len(), "unbounded it is all there");
}

#[test]
fn bytes_and_errors_in_block_form() {
    assert_eq!(drawn(Bytes::from(&b"a\xff\n"[..])), "a\u{fffd}");
    assert_eq!(drawn(cut("head\n", "tail\n", 99)), "head\n[... 89 bytes not kept ...]\ntail");
    let text = drawn(stored(b"abc"));
    assert!(text.starts_with("abc\n[3b in all, val:blake3:"), "{text}");
    let lines: String = (0..30).map(|n| format!("line {n}\n")).collect();
    let error = drawn(ran(7, "", &lines).failure().with_hint("try"));
    assert!(error.starts_with("error(cmd_failed): `prog -x` exited with status 7\nstderr:\nline 10\n"), "{error}");
    assert!(error.ends_with("line 29\nhint: try"));
}

#[test]
fn colour_only_when_asked_for() {
    let style = Style { color: true, ..Style::default() };
    assert_eq!(block(&v(r#"{"a":1}"#), &style), "\x1b[1ma\x1b[0m  1");
}

#[test]
fn what_does_not_fit_is_counted() {
    let total = 60_000;
    let text = "line\n".repeat(total);
    let list = Value::list((0..total).map(|_| "line".into()).collect()).unwrap();
    for value in [Value::from(text.as_str()), Bytes::from(text.into_bytes()).into(), list] {
        let bounded = block_within(&value, &Style::default(), Some("shoal://out/7"));
        assert!(bounded.len() <= TEXT_BYTES);
        let kept = bounded.lines().filter(|line| *line == "line").count();
        let last = format!("…({} more lines, fetch via shoal://out/7)", total - kept);
        assert_eq!(bounded.lines().last(), Some(&*last), "{}", value.type_name());
        assert_eq!(bounded.lines().count(), kept + 1);
    }
}

#[test]
fn long_tables_are_cut_between_rows() {
    let rows = (0..50_000).map(|n| Record::leaves([("n", n.into()), ("text", "a cell".into())])).collect();
    let table = Value::from(Table::new(rows).unwrap());
    let bounded = block_within(&table, &Style::default(), Some("shoal://out/1"));
    assert!(bounded.len() <= TEXT_BYTES);
    let rows_shown = bounded.lines().count() - 3;
    let last = format!("…({} more lines, fetch via shoal://out/1)", 50_000 - rows_shown);
    assert_eq!(bounded.lines().last(), Some(&*last));
    assert_eq!(bounded.lines().nth(3), Some("1      a cell"));
}

/// Twenty thousand rows without a column in common: drawing costs the cells there are, not rows times columns, or this
/// would not end in reasonable time.
#[test]
fn sparse_tables_cost_their_cells() {
    let rows = (0..20_000i64).map(|n| Record::leaves([("a".to_owned(), n.into()), (format!("c{n}"), n.into())]));
    let table = Value::from(Table::new(rows.collect()).unwrap());
    let bounded = block_within(&table, &Style::default(), None);
    assert!(bounded.ends_with("…(20002 more lines, fetch via ref)"), "{}", &bounded[bounded.len() - 60..]);
}

#[test]
fn a_long_first_line_is_cut() {
    let bounded = block_within(&"é".repeat(40_000).into(), &Style::default(), None);
    assert!(bounded.len() <= TEXT_BYTES);
    assert!(bounded.ends_with("é\n…(1 more lines, fetch via ref)"), "{}", &bounded[bounded.len() - 60..]);
}

/// Lines of which some are long and some hold characters that escaping makes longer.
fn long_text() -> impl Strategy<Value = String> {
    let line = ("[a\u{1}é]{0,40}", 0usize..400).prop_map(|(part, times)| part.repeat(times));
    prop::collection::vec(line, 0..60).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn inline_text_stays_within_its_budget(value in any_value(), budget in 0usize..80) {
        let whole = inline(&value);
        let (part, complete) = inline_within(&value, budget);
        prop_assert!(part.len() <= budget);
        prop_assert!(whole.starts_with(&part));
        prop_assert_eq!(complete, part.len() == whole.len());
    }

    #[test]
    fn block_text_holds_no_control_characters(value in any_value()) {
        let text = drawn(value);
        prop_assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn bounded_text_is_the_bounded_whole(text in long_text()) {
        let value = Value::from(text);
        let whole = drawn(value.clone());
        let bounded = block_within(&value, &Style::default(), Some("shoal://out/1"));
        prop_assert!(bounded.len() <= TEXT_BYTES);
        prop_assert_eq!(bounded, shoal_wire::text::bound(&whole, Some("shoal://out/1")).text.into_owned());
    }
}
