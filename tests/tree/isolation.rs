//! Sessions and processes that die.

use nix::sys::signal::Signal;
use serde_json::json;
use shoal_harness::{Kernel, Place, processes, until};

/// Host pid of a session's worker.
fn worker_of(client: &mut shoal_harness::Client, session: &str) -> i32 {
    let list = client.ok("session.list", json!({}));
    let sessions = list["sessions"].as_array().expect("a list").clone();
    let found =
        sessions.iter().find(|s| s["session"] == json!(session)).unwrap_or_else(|| panic!("{session} in {list}"));
    i32::try_from(found["pid"].as_i64().expect("a pid")).expect("a pid")
}

#[test]
fn a_killed_worker_ends_its_own_calls_alone() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut a = kernel.attach("a");
    let mut b = kernel.attach("b");
    a.ok("exec", json!({"src": "cd /usr\nenv.KEPT = 'yes'\nlet gone = 1"}));
    b.value("let kept = 5\nkept");
    let long = b.send("exec", json!({"src": "sh { read x < /dev/zero & sleep 0.4; echo fine }", "position": "value"}));
    let running = a.send("exec", json!({"src": "/bin/sleep 631.3", "position": "value"}));
    until("the command runs", || !kernel.pids_of("sleep").is_empty());
    let mut human = kernel.attach("c");
    let pid = worker_of(&mut human, "a");
    processes::signal(pid, Signal::SIGKILL);
    let lost = a.answer(running).expect_err("its worker is gone");
    assert_eq!(lost.code, -32050, "{lost:?}");
    assert!(b.answer(long).expect("b goes on")["render"].as_str().expect("a render").contains("fine"));
    assert_eq!(b.render("kept"), "5");

    let attached = a.attach("a");
    assert_eq!(attached["cwd"]["display"], json!("/usr"), "{attached}");
    assert!(a.render("sh { pwd; echo $KEPT }").contains("yes"));
    let error = a.err("exec", json!({"src": "gone", "position": "value"}));
    assert_eq!(error.code, -32002, "bindings are gone: {error:?}");
}

#[test]
fn a_killed_broker_loses_no_session() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "let x = 41"}));
    let workers = kernel.pids_of("shoal-worker");
    let brokers = kernel.pids_of("shoal-broker");
    processes::signal(brokers[0], Signal::SIGKILL);
    assert!(client.frame().is_none(), "its connections close");
    let mut again = kernel.attach("default");
    assert_eq!(again.render("x + 1"), "42");
    assert_eq!(kernel.pids_of("shoal-worker"), workers, "the same worker goes on");
    assert_ne!(kernel.pids_of("shoal-broker"), brokers);
}

#[test]
fn work_that_runs_while_the_broker_dies_is_finished_and_recorded() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let task = client.ok("exec", json!({"src": "sh { sleep 1; echo survived }", "position": "value", "async": true}));
    until("the command runs", || !kernel.pids_of("sleep").is_empty());
    processes::signal(kernel.pids_of("shoal-broker")[0], Signal::SIGKILL);
    let mut again = kernel.attach("default");
    let done = again.ok("task.await", json!({"task": task["task"], "timeout_ms": 15_000}));
    assert_eq!(done["state"], json!("completed"), "{done}");
    let value = again.ok("value.get", json!({"ref": done["result_ref"], "format": "render"}));
    assert!(value["render"].as_str().expect("a render").contains("survived"), "{value}");
    let rows = again.ok("journal.query", json!({"kinds": ["exec"]}));
    let row = &rows.as_array().expect("rows")[0];
    assert_eq!((row["ok"].as_bool(), row["ended"].is_null()), (Some(true), true), "{row}");
    assert_eq!(again.ok("journal.verify", json!({}))["ok"], json!(true));
}

#[test]
fn a_killed_session_leaves_a_receipt_and_the_others_alone() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut other = kernel.attach("other");
    other.value("let kept = 1\nkept");
    let mut victim = kernel.attach("victim");
    let waiting = victim.send("exec", json!({"src": "sh { trap '' TERM INT; sleep 631.9 }", "position": "value"}));
    until("the command runs", || !kernel.pids_of("sleep").is_empty());
    let receipt = other.ok("session.kill", json!({"session": "victim"}));
    assert_eq!(
        (receipt["existed"].as_bool(), receipt["survived"].as_array().map(Vec::len)),
        (Some(true), Some(0)),
        "{receipt}"
    );
    assert!(receipt["ended"].as_array().expect("a list").len() >= 3, "{receipt}");
    assert_eq!(victim.answer(waiting).expect_err("ended").code, -32051);
    assert!(kernel.pids_of("sleep").is_empty());
    assert_eq!(other.ok("session.kill", json!({"session": "victim"}))["existed"], json!(false));
    assert_eq!(other.render("kept"), "1");
}

#[test]
fn the_tree_dies_with_its_supervisor() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.send("exec", json!({"src": "/bin/sleep 631.5", "position": "value"}));
    until("the command runs", || !kernel.pids_of("sleep").is_empty());
    let tree = processes::tree(kernel.pid());
    processes::signal(kernel.pid(), Signal::SIGKILL);
    for process in tree.iter().skip(1) {
        until(&format!("{} ends", process.comm), || !processes::is_running(process.pid));
    }
    std::mem::forget(kernel);
}

#[test]
fn a_frozen_session_answers_everybody_at_once() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("cold");
    client.value("[1, 2, 3]");
    client.ok("session.freeze", json!({"session": "cold"}));
    for (method, params) in [
        ("exec", json!({"src": "1"})),
        ("explain", json!({"src": "1"})),
        ("parse", json!({"src": "1"})),
        ("complete", json!({"src": "e"})),
        ("value.get", json!({"ref": "out:1"})),
        ("session.snapshot", json!({})),
        ("session.env", json!({})),
        ("watch.list", json!({})),
        ("pty.open", json!({"cmd": "cat"})),
    ] {
        assert_eq!(client.err(method, params).code, -32052, "{method}");
    }
    for (method, params) in [
        ("session.list", json!({})),
        ("task.list", json!({})),
        ("pty.list", json!({})),
        ("journal.query", json!({})),
        ("events.read", json!({"channel": "journal"})),
    ] {
        client.ok(method, params);
    }
    client.ok("session.thaw", json!({"session": "cold"}));
    assert_eq!(client.render("out[1]"), "1\n2\n3");
}
