//! Ends that meet each other: of a session and of what it runs, of its processes and of its directory.
#![allow(clippy::disallowed_methods, reason = "a test opens the gate of what waits for it")]

use serde_json::{Value, json};

use crate::client::Client;
use crate::kernel::{Do, Kernel, everything};

/// A run that ended while its ladder climbs: the end is held back until the receipt comes, which is never. Hands back the
/// connection that cancelled it.
fn held_back(kernel: &Kernel, client: &mut Client) -> Client {
    let mut other = kernel.attach("a");
    let task = client.ok("exec", json!({"src": "hang", "async": true}))["task"].clone();
    other.send("task.cancel", json!({"task": task}));
    // The cancel was passed on before this is answered, and the worker answers in order: its end came before the second.
    other.ok("task.list", json!({}));
    client.ok("session.snapshot", json!({}));
    let shown = client.ok("session.snapshot", json!({}));
    assert_eq!(shown["last_ref"], "out:1", "{shown}");
    other
}

fn row(client: &mut Client) -> Value {
    client.ok("journal.query", json!({"kinds": ["exec"], "head": "hang"}))[0].clone()
}

#[test]
fn a_session_that_is_killed_while_a_ladder_climbs_closes_its_row_once() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("admin");
    let mut client = kernel.connect();
    client.ok("session.attach", json!({"session": "a", "create": {"cwd": "/climbing"}}));
    let _canceller = held_back(&kernel, &mut client);
    human.ok("session.kill", json!({"session": "a"}));
    // A row that is closed twice would keep all new work waiting for it.
    assert_eq!(human.ok("exec", json!({"src": "value 1"}))["ref"], "out:1");
    assert_eq!(row(&mut human)["ended"], "killed");
    assert_eq!(human.ok("kernel.status", json!({}))["journal"]["writable"], true);
}

#[test]
fn a_worker_that_is_lost_while_a_ladder_climbs_closes_its_row_once() {
    let kernel = Kernel::start();
    let mut client = kernel.connect();
    client.ok("session.attach", json!({"session": "a", "create": {"cwd": "/climbing"}}));
    let _canceller = held_back(&kernel, &mut client);
    let mut watcher = kernel.attach("a");
    watcher.ok("events.subscribe", json!({"channel": "session"}));
    kernel.tell(Do::LoseWorker(1));
    while watcher.push()["payload"]["v"]["action"]["v"] != "restarted" {}
    assert_eq!(row(&mut client)["ended"], "worker_lost");
    assert_eq!(client.ok("exec", json!({"src": "value 1"}))["ref"], "out:2");
}

#[test]
fn a_session_that_is_killed_before_it_is_up_leaves_no_processes() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("admin");
    let mut client = kernel.connect();
    let asked = client.send("session.attach", json!({"session": "a", "create": {"cwd": "/late"}}));
    while human.ok("session.list", json!({}))["sessions"].as_array().map(Vec::len) != Some(2) {}
    // Its order follows what the journal answers, and the supervisor takes it before it lists its processes.
    human.ok("journal.query", json!({}));
    human.ok("session.list", json!({}));
    let kill = human.send("session.kill", json!({"session": "a"}));
    assert_eq!(client.answer(asked).expect_err("ended")["code"], json!(-32051));
    kernel.tell(Do::LetUp);
    // The receipt names what was ended as soon as it was there.
    let killed = human.answer(kill).expect("killed");
    assert_eq!((&killed["existed"], &killed["ended"][0]["pid"]), (&json!(true), &json!(50)), "{killed}");
}

#[test]
fn a_session_whose_directory_is_gone_is_made_anew_without_it() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    client.ok("exec", json!({"src": "cd /missing"}));
    client.ok("events.subscribe", json!({"channel": "session"}));
    kernel.tell(Do::LoseLauncher(1));
    while client.push()["payload"]["v"]["action"]["v"] != "restarted" {}
    assert_eq!(client.ok("exec", json!({"src": "value 1"}))["ref"], "out:2", "its numbers go on");
    assert_eq!(client.ok("session.snapshot", json!({}))["cwd"]["display"], "/missing");
}

#[test]
fn a_session_that_cannot_be_made_anew_says_so_until_it_is_killed() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("admin");
    let mut client = kernel.attach("a");
    client.ok("exec", json!({"src": "value 1"}));
    kernel.tell(Do::RefuseSessions);
    kernel.tell(Do::LoseLauncher(2));
    while human.ok("session.list", json!({}))["sessions"][1]["state"] != "failed" {}
    let (code, data) = client.fails("exec", json!({"src": "value 1"}));
    assert_eq!((code, &data["failed"]), (-32050, &json!(true)), "{data}");
    human.ok("session.kill", json!({"session": "a"}));
    assert_eq!(client.fails("exec", json!({"src": "value 1"})).0, -32051);
}

#[test]
fn a_worker_takes_over_the_runs_of_its_own_session_alone() {
    let kernel = Kernel::start();
    let gate = tempfile::tempdir().expect("a directory");
    let gate = gate.path().join("go");
    let mut thief = kernel.connect();
    thief.ok("session.attach", json!({"session": "thief", "create": {"cwd": "/thief"}}));
    let mut client = kernel.attach("a");
    let task = client.ok("exec", json!({"src": format!("wait {}", gate.display()), "async": true}))["task"].clone();
    kernel.replace_broker();
    // Both have said what they have.
    thief = kernel.attach("thief");
    thief.ok("session.snapshot", json!({}));
    client = kernel.attach("a");
    assert_eq!(client.ok("task.get", json!({"task": task}))["state"], "running");
    std::fs::write(&gate, "").expect("opened");
    assert_eq!(client.ok("task.await", json!({"task": task}))["state"], "completed");
}

#[test]
fn what_did_not_begin_is_cancelled_at_once() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let params = json!({"src": "unclaimed", "async": true, "key": "k"});
    let task = client.ok("exec", params.clone())["task"].clone();
    let cancelled = client.ok("task.cancel", json!({"task": task}));
    let nobody = json!({"ended": [], "survived": [], "escalated": "int"});
    assert_eq!((&cancelled["state"], &cancelled["receipt"]), (&json!("cancelled"), &nobody), "{cancelled}");
    assert_eq!(client.ok("task.get", json!({"task": task}))["state"], "cancelled");
    assert_ne!(client.ok("exec", params)["task"], task, "its key is unused");
    assert_eq!(client.ok("exec", json!({"src": "value 1"}))["ref"], "out:1");
    let mut other = kernel.attach("a");
    let waiting = client.send("exec", json!({"src": "unclaimed"}));
    let task = loop {
        let tasks = other.ok("task.list", json!({}));
        let waited_for = tasks.as_array().and_then(|tasks| tasks.iter().find(|task| task["foreground"] == true));
        if let Some(task) = waited_for {
            break task["task"].clone();
        }
    };
    assert_eq!(other.ok("task.cancel", json!({"task": task}))["state"], "cancelled");
    let error = client.answer(waiting).expect_err("cancelled");
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32002), &json!("cancelled")), "{error}");
}

#[test]
fn a_session_whose_client_left_before_it_was_up_is_idle() {
    let section = shoal_proto::section::Section { idle_ttl: Some(1), ..everything("m") };
    let kernel = Kernel::of(&[section], &[]);
    let mut human = kernel.attach("admin");
    let token = human.ok("token.create", json!({"principal": "m"}))["token"].clone();
    let mut client = kernel.connect();
    client.send("session.attach", json!({"session": "a", "create": {"cwd": "/late"}, "token": token}));
    while human.ok("session.list", json!({}))["sessions"].as_array().map(Vec::len) != Some(2) {}
    drop(client);
    human.ok("events.subscribe", json!({"channel": "session", "owner": "m"}));
    kernel.tell(Do::LetUp);
    while human.push()["payload"]["v"]["action"]["v"] != "expired" {}
}
