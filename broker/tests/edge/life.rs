//! Workers that die, brokers that are replaced, sessions that end.
#![allow(clippy::disallowed_methods, reason = "the test owns its directory")]

use serde_json::json;

use crate::kernel::{Do, Kernel};

#[test]
fn a_lost_worker_is_told_and_replaced_with_directory_and_numbers() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    client.ok("exec", json!({"src": "cd /tmp"}));
    client.ok("events.subscribe", json!({"channel": "session"}));
    let hanging = client.send("exec", json!({"src": "hang"}));
    client.ok("task.list", json!({}));
    kernel.tell(Do::LoseWorker(1));
    let error = client.answer(hanging).expect_err("lost");
    assert_eq!((&error["code"], &error["data"]["session"]), (&json!(-32050), &json!("a")));
    assert!(error["data"]["entry_id"].is_i64());
    let snapshot = client.ok("session.snapshot", json!({}));
    assert_eq!(snapshot["cwd"]["display"], "/tmp");
    assert_eq!(client.ok("exec", json!({"src": "value 1"}))["ref"], "out:2");
    let actions: Vec<_> = (0..2).map(|_| client.push()["payload"]["v"]["action"]["v"].clone()).collect();
    assert_eq!(actions, ["worker_lost", "restarted"]);
    let rows = client.ok("journal.query", json!({"kinds": ["exec"]}));
    assert_eq!(rows[1]["ended"], "worker_lost");
}

#[test]
fn what_did_not_begin_before_its_worker_died_is_asked_of_the_next_one_once() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let second = client.send("exec", json!({"src": "deaf 2", "key": "k"}));
    client.ok("task.list", json!({}));
    kernel.tell(Do::LoseWorker(1));
    let answer = client.answer(second).expect("the second worker hears it");
    assert_eq!((&answer["ref"], answer.get("replayed")), (&json!("out:1"), None));
    let mut watcher = kernel.attach("a");
    watcher.ok("events.subscribe", json!({"channel": "session"}));
    let never = client.send("exec", json!({"src": "deaf 9"}));
    client.ok("task.list", json!({}));
    for _ in 0..2 {
        kernel.tell(Do::LoseWorker(1));
        while watcher.push()["payload"]["v"]["action"]["v"] != "restarted" {}
    }
    let error = client.answer(never).expect_err("lost twice");
    assert_eq!((&error["code"], error["data"].get("entry_id")), (&json!(-32050), None), "nothing ran: {error}");
    let rows = client.ok("journal.query", json!({"kinds": ["exec"]}));
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
}

#[test]
fn a_replaced_broker_takes_sessions_and_running_work_over() {
    let kernel = Kernel::start();
    let gate = tempfile::tempdir().expect("a directory");
    let gate = gate.path().join("go");
    let mut client = kernel.attach("a");
    client.ok("exec", json!({"src": "cd /tmp"}));
    let source = format!("wait {}", gate.display());
    let task = client.ok("exec", json!({"src": source, "async": true, "key": "k"}))["task"].clone();
    kernel.tell(Do::ReplaceBroker);
    assert_eq!(client.frame(), None);
    let mut client = kernel.attach("a");
    assert_eq!(client.ok("task.get", json!({"task": task}))["state"], "running");
    std::fs::write(&gate, "").expect("opened");
    let ended = client.ok("task.await", json!({"task": task}));
    assert_eq!((&ended["state"], &ended["result_ref"]), (&json!("completed"), &json!("out:2")));
    let again = client.ok("exec", json!({"src": source, "async": true, "key": "k"}));
    assert_eq!((&again["ref"], &again["replayed"]), (&json!("out:2"), &json!(true)));
    assert_eq!(client.ok("session.snapshot", json!({}))["cwd"]["display"], "/tmp");
    assert_eq!(client.ok("journal.verify", json!({}))["ok"], true);
    let page = client.ok("events.read", json!({"channel": "session.transcript"}));
    assert_eq!(page["page"]["returned"], 2);
}

#[test]
fn a_killed_session_ends_its_waiters_and_starts_anew() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    client.ok("exec", json!({"src": "value 1"}));
    let hanging = client.send("exec", json!({"src": "hang"}));
    let mut human = kernel.attach("admin");
    let killed = human.ok("session.kill", json!({"session": "a", "reason": "enough"}));
    assert_eq!((&killed["existed"], &killed["survived"]), (&json!(true), &json!([])));
    let error = client.answer(hanging).expect_err("ended");
    assert_eq!((&error["code"], &error["data"]["note"]), (&json!(-32051), &json!("enough")));
    assert_eq!(client.fails("task.list", json!({})).0, -32051);
    assert_eq!(human.ok("session.kill", json!({"session": "a"}))["existed"], false);
    assert_eq!(client.ok("session.attach", json!({"session": "a"}))["created"], true);
    assert_eq!(client.ok("exec", json!({"src": "value 1"}))["ref"], "out:2");
}

#[test]
fn a_frozen_session_takes_no_work_and_answers_the_rest() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    assert_eq!(client.ok("session.freeze", json!({"session": "a"}))["state"], "frozen");
    assert_eq!(client.fails("exec", json!({"src": "value 1"})).0, -32052);
    assert_eq!(client.ok("task.list", json!({})), json!([]));
    assert_eq!(client.ok("session.thaw", json!({"session": "a"}))["state"], "idle");
    client.ok("exec", json!({"src": "value 1"}));
}

#[test]
fn a_client_that_leaves_leaves_a_task() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let mut other = kernel.attach("a");
    other.ok("events.subscribe", json!({"channel": "session"}));
    client.send("exec", json!({"src": "hang"}));
    client.ok("task.list", json!({}));
    drop(client);
    // The session's own creation may be told first.
    let mut pushes = std::iter::repeat_with(|| other.push()["payload"]["v"]["action"]["v"].clone());
    assert_eq!(pushes.find(|action| action != "created"), Some(json!("task_started")));
    let tasks = other.ok("task.list", json!({}));
    assert_eq!((&tasks[0]["state"], &tasks[0]["foreground"]), (&json!("running"), &json!(false)));
}

#[test]
fn a_session_that_cannot_be_made_fails_for_who_asked_for_it_alone() {
    let kernel = Kernel::start();
    let mut first = kernel.connect();
    let mut second = kernel.connect();
    let asked = first.send("session.attach", json!({"session": "a", "create": {"cwd": "/missing"}}));
    let attached = second.ok("session.attach", json!({"session": "a"}));
    assert_eq!(attached["cwd"]["display"], "/");
    // Whichever was first: the other's session serves both, or the refusal names the directory.
    match first.answer(asked) {
        Ok(attached) => assert_eq!(attached["created"], false),
        Err(error) => assert_eq!(error["data"], json!({"param": "create.cwd", "reason": "not_a_directory"})),
    }
    let (code, data) = first.fails("session.attach", json!({"session": "b", "create": {"cwd": "/missing"}}));
    assert_eq!((code, &data["reason"]), (-32602, &json!("not_a_directory")));
    assert_eq!(first.ok("session.attach", json!({"session": "b"}))["created"], true);
}

#[test]
fn a_frozen_session_stays_so_with_the_next_broker() {
    let kernel = Kernel::start();
    let gate = tempfile::tempdir().expect("a directory");
    let gate = gate.path().join("go");
    let mut human = kernel.attach("admin");
    let mut client = kernel.attach("a");
    let task = client.ok("exec", json!({"src": format!("wait {}", gate.display()), "async": true}))["task"].clone();
    human.ok("session.freeze", json!({"session": "a"}));
    kernel.replace_broker();
    human = kernel.attach("admin");
    let listed = human.ok("session.list", json!({}));
    let a = listed["sessions"].as_array().and_then(|all| all.iter().find(|session| session["session"] == "a"));
    assert_eq!(a.expect("a")["state"], "frozen", "{listed}");
    client = kernel.attach("a");
    assert_eq!(client.fails("exec", json!({"src": "value 1"})).0, -32052);
    assert_eq!(human.ok("session.thaw", json!({"session": "a"}))["session"], "a");
    std::fs::write(&gate, "").expect("opened");
    // Its worker says now what it has.
    client.ok("session.snapshot", json!({}));
    assert_eq!(client.ok("task.await", json!({"task": task}))["state"], "completed");
}

#[test]
fn a_frozen_session_that_is_killed_after_its_broker_closes_its_rows() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("admin");
    let mut client = kernel.attach("a");
    client.ok("exec", json!({"src": "hang", "async": true}));
    human.ok("session.freeze", json!({"session": "a"}));
    kernel.replace_broker();
    human = kernel.attach("admin");
    human.ok("session.kill", json!({"session": "a"}));
    let row = human.ok("journal.query", json!({"kinds": ["exec"], "head": "hang"}))[0].clone();
    assert_eq!(row["ended"], "interrupted", "{row}");
}
