//! What a session has left when one of its processes, or the kernel, is gone, and what a client is told that asked for more.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use shoal_harness::{Kernel, Place, processes, until};

fn shoot(kernel: &Kernel, role: &str) {
    let pids = kernel.pids_of(role);
    assert_eq!(pids.len(), 1, "{role}: {pids:?}");
    processes::signal(pids[0], Signal::SIGKILL);
}

#[test]
fn a_lost_worker_takes_its_handles_and_names_along_and_leaves_its_values() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "let x = 1"}));
    let plain = client.value("[1, 2, 3]");
    let stream = client.value("range(0, 5).stream()")["ref"].clone();
    let handle = client.value("spawn { 1 }")["ref"].clone();
    let task = client.ok("exec", json!({"src": "sh { echo hello }", "async": true}))["task"].clone();
    client.ok("task.await", json!({"task": task}));
    shoot(&kernel, "shoal-worker");
    // Whoever asks at once is answered by the next worker.
    let error = client.err("exec", json!({"src": "x", "position": "value"}));
    assert_eq!((error.code, &error.data["code"]), (-32002, &json!("undefined_var")), "{error:?}");
    let error = client.err("exec", json!({"src": "x --flag", "position": "value"}));
    assert_eq!(error.data["code"], json!("not_found"), "with words it is a command: {error:?}");
    assert_eq!(client.ok("value.get", json!({"ref": plain["ref"]}))["value"], plain["value"]);
    for (method, reference) in [("value.get", &stream), ("stream.pull", &stream), ("value.get", &handle)] {
        let error = client.err(method, json!({"ref": reference}));
        assert_eq!((error.code, &error.data["reason"]), (-32004, &json!("worker_lost")), "{method}: {error:?}");
        let stored = error.data["val"].as_str().expect("its stored form");
        assert!(client.ok("value.get", json!({"ref": stored}))["value"]["$"].is_string());
    }
    let error = client.err("stream.pull", json!({"ref": plain["ref"]}));
    assert_eq!((error.code, &error.data["reason"]), (-32005, &json!("not_a_stream")), "{error:?}");
    let log = client.ok("task.output", json!({"task": task}));
    assert_eq!((&log["total_seen"], &log["eof"], &log["lossy"]), (&json!(6), &json!(true), &json!(true)), "{log}");
}

#[test]
fn a_lost_terminal_host_and_a_killed_session_answer_whoever_reads() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let pty = client.ok("pty.open", json!({"cmd": "cat"}))["pty_id"].clone();
    let waiting = client.send("pty.read", json!({"pty_id": pty, "wait": {"text": "said", "timeout_ms": 45_000}}));
    shoot(&kernel, "shoal-ptyd");
    let screen = client.ok("pty.read", json!({"pty_id": pty}));
    assert_eq!(screen["alive"], json!(true), "{screen}");
    client.ok("pty.send", json!({"pty_id": pty, "input": ["said", {"key": "Enter"}]}));
    assert_eq!(client.answer(waiting).expect("answered by the next host")["matched"], json!("text"));
    let waiting = client.send("pty.read", json!({"pty_id": pty, "wait": {"text": "never", "timeout_ms": 45_000}}));
    kernel.attach("operator").ok("session.kill", json!({"session": "default", "reason": "enough"}));
    let error = client.answer(waiting).expect_err("the session ended");
    assert_eq!((error.code, &error.data["note"]), (-32051, &json!("enough")), "{error:?}");
}

#[test]
fn results_of_an_earlier_life_are_void_and_interrupted_keys_say_so() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.value("1");
    let keyed = json!({"src": "sleep 60", "key": "k", "async": true});
    client.ok("exec", keyed.clone());
    let void = |client: &mut shoal_harness::Client, reference: &str| {
        let error = client.err("value.get", json!({"ref": reference}));
        assert_eq!((error.code, &error.data["reason"]), (-32004, &json!("unknown")), "{error:?}");
        assert_eq!(client.ok("session.snapshot", json!({}))["last_ref"], Value::Null);
    };
    drop(client);
    kernel.stop();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    void(&mut client, "out:1");
    let error = client.err("exec", keyed);
    assert_eq!((error.code, &error.data["replayed"]), (-32050, &json!(true)), "{error:?}");
    assert!(error.data["entry_id"].is_i64(), "{error:?}");
    let next = client.value("2")["ref"].as_str().expect("a reference").to_owned();
    // A broker that is replaced knows where this life began.
    shoot(&kernel, "shoal-broker");
    let mut client = kernel.attach("default");
    assert_eq!(client.ok("value.get", json!({"ref": next}))["value"]["v"], json!(2));
    let error = client.err("value.get", json!({"ref": "out:1"}));
    assert_eq!(error.code, -32004, "{error:?}");
    client.ok("session.kill", json!({"session": "default"}));
    client.attach("default");
    void(&mut client, &next);
}

#[test]
fn a_large_item_of_a_stream_is_a_result_of_its_own() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let stream =
        client.value("range(0, 3).stream().map(n => \"{n}\".repeat(if n == 1 { 20000 } else { 1 }))")["ref"].clone();
    let pulled = client.ok("stream.pull", json!({"ref": stream, "max": 3}));
    let items = pulled["items"].as_array().expect("items");
    assert_eq!(
        items.iter().map(|item| item["$"].as_str()).collect::<Vec<_>>(),
        [Some("str"), Some("ref"), Some("str")]
    );
    assert_eq!(items[1]["uri"], json!("shoal://out/2"), "{pulled}");
    let tail = json!({"ref": "out:2", "slice": [19_998, 30_000]});
    assert_eq!(client.ok("value.get", tail.clone())["value"]["v"], json!("11"));
    assert_eq!(client.render("it"), "stream<range.map>", "it is what a request ended with");
    assert_eq!(client.value("5")["ref"], json!("out:4"));
    // The next broker counts on, and the next kernel gives no number twice.
    shoot(&kernel, "shoal-broker");
    let mut client = kernel.attach("default");
    assert_eq!(client.ok("value.get", tail)["value"]["v"], json!("11"));
    assert_eq!(client.value("6")["ref"], json!("out:5"));
    drop(client);
    kernel.stop();
    let kernel = Kernel::start(&place);
    let next =
        kernel.attach("default").value("7")["ref"].as_str().and_then(|r| r.strip_prefix("out:")?.parse::<u64>().ok());
    assert!(next > Some(5), "{next:?}");
}

#[test]
fn deadlines_pauses_and_frozen_sessions_outlive_a_broker() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let due = client.ok("exec", json!({"src": "sleep 600", "async": true, "deadline_ms": 1500}))["task"].clone();
    let paused = client.ok("exec", json!({"src": "sh { sleep 6411.1 }", "async": true}))["task"].clone();
    until("it sleeps", || !crate::commands::running("sleep 6411.1").is_empty());
    client.ok("task.suspend", json!({"task": paused}));
    let mut cold = kernel.attach("cold");
    cold.ok("exec", json!({"src": "let x = 41"}));
    client.ok("session.freeze", json!({"session": "cold"}));
    shoot(&kernel, "shoal-broker");
    let mut client = kernel.attach("default");
    assert_eq!(client.ok("task.get", json!({"task": due}))["deadline_ms"], json!(1500));
    assert_eq!(client.ok("task.get", json!({"task": paused}))["state"], json!("suspended"));
    let listed = client.ok("session.list", json!({}))["sessions"].clone();
    let cold = listed.as_array().expect("sessions").iter().find(|s| s["session"] == "cold").expect("it is there");
    assert_eq!(cold["state"], json!("frozen"), "{listed}");
    let mut guest = kernel.connect();
    guest.attach("cold");
    assert_eq!(guest.err("exec", json!({"src": "x"})).code, -32052, "it is still frozen");
    client.ok("session.thaw", json!({"session": "cold"}));
    assert_eq!(guest.render("x + 1"), "42");
    assert_eq!(client.ok("task.resume", json!({"task": paused}))["state"], json!("running"));
    client.ok("task.cancel", json!({"task": paused}));
    let ended = client.ok("task.await", json!({"task": due}));
    assert_eq!((&ended["state"], &ended["deadline_exceeded"]), (&json!("failed"), &json!(true)), "{ended}");
    assert_eq!(ended["error"]["data"]["code"], json!("deadline_exceeded"), "{ended}");
}
