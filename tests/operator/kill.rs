//! The end of a session by command: what its clients, its neighbours and the one who asked for it see.

use std::process::Stdio;

use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place, until};

#[test]
fn a_kill_is_verified_told_and_disturbs_nobody() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut other = kernel.attach("other");
    let mut waiting = kernel.attach("work");
    let call = waiting.send("exec", json!({"src": "sh { sleep 1000 }"}));
    until("the command runs", || !kernel.pids_of("sleep").is_empty());
    let mut command = place.shoal("shoal");
    let kill = command.args(["--json", "session", "kill", "work", "--reason", "enough"]).stdout(Stdio::piped());
    let killing = kill.stdin(Stdio::null()).spawn().expect("starts");
    // Another session works all the while.
    for n in 0..20 {
        assert_eq!(other.render(&format!("{n} + 1")), format!("{}", n + 1));
    }
    let output = killing.wait_with_output().expect("ends");
    let receipt: Value = serde_json::from_slice(&output.stdout).expect("a receipt");
    let ended: Vec<&str> =
        receipt["ended"].as_array().expect("a list").iter().filter_map(|p| p["comm"].as_str()).collect();
    assert!(ended.contains(&"sleep") && ended.contains(&"shoal-worker"), "{receipt}");
    assert_eq!((&receipt["survived"], output.status.code()), (&json!([]), Some(0)));
    assert!(receipt["duration_ms"].is_u64() && kernel.pids_of("sleep").is_empty(), "verified before it is told");
    let end = waiting.answer(call).expect_err("the session is gone");
    assert_eq!((end.code, &end.data["note"]), (-32051, &json!("enough")));
    let again = place.shoal("shoal").args(["session", "kill", "work"]).output().expect("runs");
    let said = String::from_utf8_lossy(&again.stdout).into_owned();
    assert_eq!((again.status.code(), said.contains("nothing to end")), (Some(0), true), "{said}");
    drop(kernel);
}

/// Where on the journal channel the row of an answer closed.
fn closed_at(client: &mut Client, entry: &Value) -> u64 {
    let page = client.ok("events.read", json!({"channel": "journal"}));
    let events = page["events"].as_array().expect("events");
    let of_entry = events.iter().find(|event| event["payload"]["v"]["entry_id"]["v"] == *entry);
    of_entry.and_then(|event| event["seq"].as_u64()).unwrap_or_else(|| panic!("no row {entry} in {page}"))
}

/// Ids of the `exec` rows of a source, newest first.
fn row_of(client: &mut Client, src: &str) -> Value {
    let rows = client.ok("journal.query", json!({"kinds": ["exec"], "limit": 100}));
    let row = rows.as_array().expect("rows").iter().find(|row| row["src"] == src);
    row.unwrap_or_else(|| panic!("no row of `{src}` in {rows}"))["id"].clone()
}

#[test]
fn who_waits_is_told_within_a_second_whatever_the_processes_do() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let (mut other, mut killer) = (kernel.attach("other"), kernel.attach("third"));
    let mut waiting = kernel.attach("work");
    // It does not mind TERM, so the kill takes the two seconds until KILL.
    let stubborn = "sh { trap '' TERM; sleep 1000; sleep 1000 }";
    let call = waiting.send("exec", json!({"src": stubborn}));
    until("the command runs", || !kernel.pids_of("sleep").is_empty());
    let kill = killer.send("session.kill", json!({"session": "work"}));
    // The kernel's own timer, started behind the kill: a second by the clock that the kernel waits by.
    let timer = other.send("exec", json!({"src": "sleep 1s"}));
    assert_eq!(waiting.answer(call).expect_err("the session is gone").code, -32051);
    other.answer(timer).expect("another session goes on");
    let receipt = killer.answer(kill).expect("a receipt");
    assert_eq!(receipt["survived"], json!([]), "{receipt}");
    assert!(receipt["duration_ms"].as_u64().is_some_and(|ms| ms >= 2000), "KILL was needed: {receipt}");
    // An answer leaves when its row is closed, so the order of the rows is the order of the answers.
    let (told, second) = (row_of(&mut other, stubborn), row_of(&mut other, "sleep 1s"));
    assert!(closed_at(&mut other, &told) < closed_at(&mut other, &second));
    drop(kernel);
}
