//! Executions: values, errors, commits, numbers, cancels, and a broker that is replaced meanwhile.

use serde_json::json;
use shoal_proto::broker_worker::{Ending, Position, Purpose, Run, ToBroker, ToWorker};

use crate::session::Session;

#[test]
fn values_are_numbered_rendered_and_committed() {
    let mut session = Session::start_with(7, &["PATH=/usr/bin:/bin"]);
    assert_eq!(session.hello.next_out, 7);
    let env: Vec<_> = session.hello.env.as_slice().iter().map(|pair| pair.as_slice().to_vec()).collect();
    assert!(env.contains(&b"PAGER=cat".to_vec()), "defaults are added");
    let done = session.run("let x = 6 * 7\nx");
    assert_eq!((done.finished.n, done.finished.ending, &done.value), (7, Ending::Value, &json!({"$": "int", "v": 42})));
    assert_eq!(done.finished.render.as_str(), "42");
    assert_eq!((&done.detail["ok"], &done.detail["summary"]["type"]), (&json!(true), &json!("int")));
    let done = session.run("x + it + out[7]");
    assert_eq!((done.finished.n, &done.value["v"]), (8, &json!(126)));
}

#[test]
fn a_program_s_output_is_whole_and_its_failure_a_value() {
    let mut session = Session::start();
    let done = session.run("sh { echo hi; exit 3 }");
    assert_eq!(
        (&done.value["$"], &done.value["status"], &done.value["ok"]),
        (&json!("outcome"), &json!(3), &json!(false))
    );
    assert_eq!(done.stdout.as_deref(), Some(&b"hi\n"[..]));
    assert_eq!(
        (&done.detail["status"], &done.detail["exit_code"], &done.detail["ok"]),
        (&json!(3), &json!(3), &json!(false))
    );
    let raised = session.run_stmt("sh { echo bad >&2; exit 3 }");
    assert_eq!(raised.finished.ending, Ending::Raised);
    assert_eq!(raised.detail["error"]["code"], json!("cmd_failed"));
    assert_eq!((&raised.detail["error"]["status"], &raised.detail["error"]["stderr"]), (&json!(3), &json!("bad\n")));
    assert_eq!(raised.value["$"], json!("error"));
    let told: Vec<_> = session.statements.iter().map(|ended| (ended.src.as_str(), ended.ok, ended.status)).collect();
    assert_eq!(
        told,
        [("sh { echo bad >&2; exit 3 }", false, Some(3))],
        "in value position the row of the execution tells it"
    );
}

#[test]
fn a_large_value_is_elided_and_attached_whole() {
    let mut session = Session::start();
    let done = session.run("range(0, 100000).collect()");
    assert_eq!((&done.value["$"], &done.value["n"]), (&json!("ref"), &json!(100_000)));
    assert_eq!(done.value["uri"], json!("shoal://out/1"));
    let full: serde_json::Value = serde_json::from_slice(&done.full.expect("attached")).expect("JSON");
    assert_eq!(full["v"].as_array().map(Vec::len), Some(100_000));
}

#[test]
fn a_source_that_does_not_parse_is_claimed_so_and_takes_no_number() {
    let mut session = Session::start();
    let (_, claim) = session.prepare("let x = (1 +", Position::Value);
    assert!(claim["parse_error"]["message"].is_string(), "{claim}");
    assert!(claim["parse_error"]["span"]["start"].is_u64());
    let (run, claim) = session.prepare("1", Position::Value);
    assert_eq!((&claim["effects"], &claim["reversibility"]), (&json!([]), &json!("reversible")));
    let (other, claim) = session.prepare("cat a.txt", Position::Value);
    assert_eq!(claim["effects"][0]["kind"], json!("fs_read"), "{claim}");
    assert_eq!(claim["head"], json!("cat"));
    session.worker.send(&ToWorker::Discard(Run { run: other }), &[]).expect("sent");
    session.worker.send(&ToWorker::Discard(Run { run }), &[]).expect("sent");
    assert_eq!(session.run("2").finished.n, 1);
}

#[test]
fn directory_and_environment_are_committed_and_told() {
    let mut session = Session::start();
    let done = session.run_stmt("mkdir sub\ncd sub\nenv.NEW = \"1\"");
    assert!(done.finished.session_cwd.as_slice().ends_with(b"/sub"), "{:?}", done.detail);
    assert_eq!(done.detail["changed"], json!(["cwd", "env"]));
    assert!(done.finished.env_changed);
    assert!(done.finished.env.as_slice().iter().any(|pair| pair.as_slice() == b"NEW=1"));
    let done = session.run("sh { pwd; echo $NEW }");
    let stdout = String::from_utf8(done.stdout.expect("attached")).expect("text");
    assert!(stdout.ends_with("/sub\n1\n"), "{stdout}");
}

#[test]
fn overlapping_requests_keep_to_their_snapshots_and_numbers_follow_their_ends() {
    let mut session = Session::start();
    let slow = session.begin("let k = \"a\"; sh { while ! test -e go; do sleep 0.01; done }; k", Position::Value);
    let quick = session.run("let k = \"b\"; k");
    assert_eq!((quick.finished.n, &quick.value["v"]), (1, &json!("b")));
    std::fs::File::create(session.dir.path().join("go")).expect("made");
    let done = session.done();
    assert_eq!((done.finished.run, done.finished.n, &done.value["v"]), (slow, 2, &json!("a")));
    assert_eq!(session.run("k").value["v"], json!("a"), "the last finisher wins");
}

#[test]
fn a_cancel_ends_programs_and_evaluation() {
    let mut session = Session::start();
    let run = session.begin("sh { sleep 300 }", Position::Value);
    session.cancel(run, false);
    let done = session.done();
    assert_eq!((done.finished.run, done.finished.ending), (run, Ending::Cancelled));
    assert_eq!(done.detail["error"]["code"], json!("cancelled"));
    let run = session.begin("while true { 1 }", Position::Value);
    session.cancel(run, true);
    assert_eq!(session.done().finished.ending, Ending::Deadline);
}

#[test]
fn a_left_behind_process_is_told() {
    let mut session = Session::start();
    let done = session.run("sh { sleep 300 & echo done }");
    assert_eq!(done.detail["held_by"], json!(1));
    assert_eq!(done.stdout.as_deref(), Some(&b"done\n"[..]));
}

#[test]
fn sixteen_at_once_do_not_wait_for_each_other() {
    let mut session = Session::start();
    let script = "sh { while ! test -e go; do sleep 0.01; done }";
    let runs: Vec<u64> = (0..15).map(|_| session.begin(script, Position::Value)).collect();
    assert_eq!(session.run("1").finished.n, 1);
    std::fs::File::create(session.dir.path().join("go")).expect("made");
    let mut ended: Vec<u64> = runs.iter().map(|_| session.done().finished.run).collect();
    ended.sort_unstable();
    assert_eq!(ended, runs);
}

#[test]
fn a_replaced_broker_gets_what_is_open() {
    let mut session = Session::start();
    session.run("let kept = 5");
    let live = session.begin("sh { while ! test -e go; do sleep 0.01; done }; kept", Position::Value);
    let ended = session.begin("kept + 1", Position::Value);
    let (message, _) = session.message();
    assert!(matches!(&message, ToBroker::Finished(f) if f.run == ended && f.n == 2));
    let hello = session.replace_broker();
    let open: Vec<_> = hello.open.as_slice().iter().map(|run| (run.run, run.finished, run.prepared)).collect();
    assert_eq!(open, [(ended, true, false), (live, false, false)]);
    let again = session.done();
    assert_eq!((again.finished.run, again.finished.n, &again.value["v"]), (ended, 2, &json!(6)));
    std::fs::File::create(session.dir.path().join("go")).expect("made");
    let done = session.done();
    assert_eq!((done.finished.run, &done.value["v"]), (live, &json!(5)));
}

#[test]
fn a_missing_directory_is_kept_by_name() {
    let mut session = Session::start();
    std::fs::create_dir(session.dir.path().join("gone")).expect("made");
    let entered = session.run_stmt("cd gone");
    assert!(entered.finished.session_cwd.as_slice().ends_with(b"/gone"), "{:?}", entered.detail);
    std::fs::remove_dir(session.dir.path().join("gone")).expect("removed");
    let raised = session.run("sh { true }");
    assert_eq!(raised.detail["error"]["code"], json!("cwd_gone"), "{:?}", raised.detail);
    let raised = session.run("ls");
    assert_eq!(raised.detail["error"]["code"], json!("cwd_gone"), "{:?}", raised.detail);
    let back = session.run_stmt("cd /");
    assert_eq!(back.finished.session_cwd.as_slice(), b"/");
}

#[test]
fn a_plan_s_claim_comes_first_and_the_same_number_runs_then() {
    let mut session = Session::start();
    for run in 500..550 {
        let claim = session.claim(run, "6 * 7", Position::Value, Purpose::Plan);
        assert!(claim["ast"]["stmts"].is_array() && claim["cwd"]["display"].is_string(), "{claim}");
        session.claim(run, "6 * 7", Position::Value, Purpose::Run);
        session.worker.send(&ToWorker::Run(Run { run }), &[]).expect("sent");
        let done = session.done();
        assert_eq!((done.finished.run, &done.value["v"]), (run, &json!(42)));
    }
}

#[test]
fn what_runs_of_an_applied_plan_is_what_was_claimed() {
    let mut session = Session::start();
    session.run("let name = 'planned'");
    let claim = session.claim(900, "name", Position::Value, Purpose::Apply);
    assert_eq!(claim["bindings"]["data"]["name"]["value"]["v"], json!("planned"), "{claim}");
    session.run("let name = 'swapped'");
    session.worker.send(&ToWorker::Run(Run { run: 900 }), &[]).expect("sent");
    let done = session.done();
    assert_eq!((done.finished.run, &done.value["v"]), (900, &json!("planned")));
}

#[test]
fn a_statement_goes_on_with_the_next_broker() {
    let mut session = Session::start();
    let run = session.begin("let a = 1\nsh { while ! test -e go; do sleep 0.01; done }\na + 1", Position::Stmt);
    session.await_statement();
    session.replace_broker();
    std::fs::File::create(session.dir.path().join("go")).expect("made");
    let done = session.done();
    assert_eq!((done.finished.run, &done.value["v"]), (run, &json!(2)), "{}", done.detail);
}

#[test]
fn an_end_that_no_message_holds_is_told_as_an_error_and_changes_nothing() {
    let mut session = Session::start();
    session.run("let kept = 5");
    let raised = session.run("raise(\"odd\", \"text\", hint: \"y\".repeat(20000000))");
    assert_eq!((raised.finished.n, raised.finished.ending), (2, Ending::Raised));
    assert_eq!(raised.detail["error"]["code"], json!("odd"));
    assert!(raised.detail["error"]["hint"].as_str().is_some_and(|hint| hint.len() <= 5000), "the hint is cut");
    let vars: String = (0..100).map(|n| format!("env.V{n} = \"x\".repeat(100000)\n")).collect();
    let refused = session.run(&vars);
    assert_eq!((refused.finished.n, refused.finished.ending), (3, Ending::Raised));
    assert_eq!(refused.detail["error"]["code"], json!("too_large"), "{:?}", refused.detail);
    assert!(!refused.finished.env_changed);
    let next = session.run("[kept, env.V0]");
    assert_eq!((next.finished.n, &next.value["v"]), (4, &json!([{"$": "int", "v": 5}, {"$": "null"}])));
}

#[test]
fn a_variable_that_no_program_could_be_given_is_refused_where_it_is_set() {
    let mut session = Session::start();
    let most = session.run("env.BIG = \"x\".repeat(131067)\nsh { printf %s \"$BIG\" | wc -c }.out.trim()");
    assert_eq!(most.value["v"], json!("131067"), "{:?}", most.detail);
    for src in ["env.BIG = \"x\".repeat(131068)", "with env: {BIG: \"x\".repeat(131068)} { 1 }"] {
        let refused = session.run(src);
        assert_eq!(refused.detail["error"]["code"], json!("too_large"), "{src}: {:?}", refused.detail);
    }
    assert_eq!(session.run("env.BIG.len()").value["v"], json!(131_067));
}

#[test]
fn a_claim_that_no_message_holds_says_so() {
    let mut session = Session::start();
    let claim = session.claim(900, &format!("'{}'", "\"".repeat(9_000_000)), Position::Value, Purpose::Plan);
    assert_eq!(claim, json!({"too_large": true}));
    assert_eq!(session.run("6 * 7").value["v"], json!(42));
}
