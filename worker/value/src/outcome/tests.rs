//! The output of outcomes and the errors they raise.

use super::*;
use crate::render::inline;
use crate::testing::{cut, program, ran, stored};

#[test]
fn output_that_is_json_is_decoded() {
    assert_eq!(inline(ran(0, "  [1, 2]\n", "").peek_out()), "[1, 2]");
    assert_eq!(inline(ran(0, "{}", "").peek_out()), "{}");
    assert_eq!(ran(0, "[{\"a\":1}]", "").peek_out().type_name(), "table");
    assert_eq!(inline(ran(0, "[1, 2\n", "").peek_out()), "\"[1, 2\"");
    assert_eq!(inline(ran(0, "7\n", "").peek_out()), "\"7\"");
    assert_eq!(inline(ran(0, "a\n\n", "").peek_out()), "\"a\\n\"");
    assert_eq!(inline(ran(1, "[1]", "").peek_out()), "[1]");
}

#[test]
fn only_whole_output_of_programs_is_decoded() {
    let with = |stdout| Outcome::new(OutcomeBody { stdout, ..program("p", 0, "", "") });
    assert_eq!(with(cut("[1]", "", 9)).peek_out().type_name(), "str");
    assert_eq!(with(stored(b"[1]")).peek_out().type_name(), "bytes");
    let builtin = Outcome::new(OutcomeBody::builtin("echo", Value::str("[1]"), (&b"[1]\n"[..]).into(), 0));
    assert_eq!(inline(builtin.peek_out()), "\"[1]\"");
    let deep = format!("{}{}", "[".repeat(MAX_OUT_DEPTH + 1), "]".repeat(MAX_OUT_DEPTH + 1));
    assert_eq!(ran(0, &deep, "").peek_out().type_name(), "str");
}

#[test]
fn a_failure_names_the_failing_stage_and_carries_everything() {
    let stage =
        |cmd: &str, status| Stage { cmd: cmd.into(), status: Some(status), signal: None, ok: status == 0, dur_ns: 1 };
    let body = OutcomeBody { stages: vec![stage("first", 3), stage("last", 0)], ..program("last", 3, "o", "e") };
    let error = Outcome::new(body).failure();
    assert_eq!((&*error.code, &*error.msg, error.status), ("cmd_failed", "`first` exited with status 3", Some(3)));
    assert_eq!(error.stdout.as_ref().unwrap().to_text_lossy(), "o");
    assert_eq!(error.outcome.as_ref().unwrap().stages_table().unwrap().len(), 2);
    let killed = OutcomeBody { status: None, ok: false, signal: Some("SIGSEGV".into()), ..program("p", 1, "", "") };
    assert_eq!(&*Outcome::new(killed).failure().msg, "`p` died from SIGSEGV");
}

#[test]
fn text_is_lossy_and_says_so() {
    let body = OutcomeBody { stdout: (&b"a\xff\n"[..]).into(), ..program("p", 0, "", "") };
    let outcome = Outcome::new(body);
    assert_eq!(outcome.text().unwrap(), "a\u{fffd}");
    assert!(outcome.is_lossy() && !ran(0, "a", "b").is_lossy());
    let large = Outcome::new(OutcomeBody { stdout: stored(b"abc"), ..program("p", 0, "", "") });
    assert_eq!(&*large.text().unwrap_err().code, "too_large");
}
