//! Executions, their tasks, events and rows.

use serde_json::json;

use crate::kernel::Kernel;

#[test]
fn a_run_is_recorded_numbered_and_answered() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let answer = client.ok("exec", json!({"src": "value hello", "position": "value"}));
    assert_eq!(answer["ref"], "out:1");
    assert_eq!(answer["value"], json!({"$": "str", "v": "hello"}));
    assert_eq!(client.ok("exec", json!({"src": "value again"}))["ref"], "out:2");
    let rows = client.ok("journal.query", json!({}));
    let row = &rows[0];
    assert_eq!(
        (&row["kind"], &row["src"], &row["ok"], &row["status"]),
        (&json!("exec"), &json!("value again"), &json!(true), &json!(0))
    );
    assert_eq!(client.ok("journal.verify", json!({}))["ok"], true);
    assert_eq!(client.ok("task.list", json!({})), json!([]));
}

#[test]
fn statements_have_rows_as_far_as_they_can_be_parts_of_the_source() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    for (src, kept) in [("thrice ab", 3), ("thrice abcdef", 2), ("thrice abcdefgh", 1)] {
        assert_eq!(client.ok("exec", json!({"src": src}))["value"]["v"], json!(src.trim_start_matches("thrice ")));
        let row = client.ok("journal.query", json!({"kinds": ["exec"], "limit": 1}))[0]["id"].clone();
        let rows = client.ok("journal.query", json!({"kinds": ["statement"]}));
        let of_it = rows.as_array().expect("rows").iter().filter(|statement| statement["parent_id"] == row).count();
        assert_eq!(of_it, kept, "{src}: {rows}");
    }
}

#[test]
fn refusals_have_their_codes_and_order() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let (code, data) = client.fails("exec", json!({"src": "! bad"}));
    assert_eq!((code, &data["span"]), (-32001, &json!({"start": 0, "end": 1})));
    let (code, data) = client.fails("exec", json!({"src": "raise"}));
    assert_eq!((code, &data["code"], &data["ref"]), (-32002, &json!("custom"), &json!("out:1")));
    assert_eq!(client.fails("exec", json!({"src": "1", "timeout": 5})).1["nearest"], "timeout_ms");
    assert_eq!(client.fails("exec", json!({"src": "1", "mode": "approved"})).1["reason"], "use_plan_apply");
    assert_eq!(client.fails("task.get", json!({"task": "task:99"})).0, -32021);
}

#[test]
fn a_timeout_hands_over_and_a_cancel_is_verified() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let handed = client.ok("exec", json!({"src": "hang", "timeout_ms": 0}));
    assert_eq!(handed["timed_out"], true);
    let task = handed["task"].as_str().expect("a task").to_owned();
    assert_eq!(client.ok("task.get", json!({"task": task}))["state"], "running");
    assert_eq!(client.ok("task.suspend", json!({"task": task}))["state"], "suspended");
    assert_eq!(
        client.fails("task.suspend", json!({"task": task})),
        (-32020, json!({"task": task, "state": "suspended"}))
    );
    assert_eq!(client.ok("task.resume", json!({"task": task}))["state"], "running");
    let cancelled = client.ok("task.cancel", json!({"task": task, "signal": "SIGTERM"}));
    assert_eq!((&cancelled["state"], &cancelled["receipt"]["escalated"]), (&json!("cancelled"), &json!("term")));
    assert_eq!(client.ok("task.cancel", json!({"task": task}))["already_ended"], true);
    assert_eq!(client.ok("task.await", json!({"task": task}))["timed_out"], false);
    assert_eq!(client.ok("journal.query", json!({"limit": 1}))[0]["ended"], "cancelled");
}

#[test]
fn a_deadline_is_an_error_with_its_receipt() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let (code, data) = client.fails("exec", json!({"src": "hang", "deadline_ms": 50}));
    assert_eq!((code, &data["code"], &data["receipt"]["survived"]), (-32002, &json!("deadline_exceeded"), &json!([])));
    assert_eq!(client.ok("journal.query", json!({"limit": 1}))[0]["ended"], "deadline");
}

#[test]
fn a_key_runs_once() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let first = client.ok("exec", json!({"src": "value 1", "key": "k"}));
    let again = client.ok("exec", json!({"src": "value 1", "key": "k"}));
    assert_eq!((&again["ref"], &again["replayed"], first.get("replayed")), (&first["ref"], &json!(true), None));
    let (code, data) = client.fails("exec", json!({"src": "value 2", "key": "k"}));
    assert_eq!((code, &data["reason"]), (-32602, &json!("key_reuse")));
    client.fails("exec", json!({"src": "! bad", "key": "unused"}));
    client.ok("exec", json!({"src": "value 3", "key": "unused"}));
    let rows = client.ok("journal.query", json!({"kinds": ["exec"]}));
    assert_eq!(rows.as_array().map(Vec::len), Some(2));
}

#[test]
fn the_seventeenth_run_is_one_too_many_and_blocks_nobody() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    for _ in 0..16 {
        client.ok("exec", json!({"src": "hang", "async": true}));
    }
    assert_eq!(
        client.fails("exec", json!({"src": "hang"})),
        (-32040, json!({"limit": "execs_per_session", "max": 16, "used": 16}))
    );
    assert_eq!(client.ok("task.list", json!({})).as_array().map(Vec::len), Some(16));
    kernel.attach("b").ok("exec", json!({"src": "value 1"}));
}

#[test]
fn events_are_numbered_paged_and_pushed() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    for n in 0..10 {
        let published = client.ok("events.publish", json!({"channel": "user.x", "payload": {"n": n}}));
        assert_eq!(published["seq"], n);
    }
    assert_eq!(client.fails("events.publish", json!({"channel": "journal", "payload": 1})).1["reason"], "not_writable");
    let page = client.ok("events.read", json!({"channel": "user.x", "since": 2, "limit": 3}));
    assert_eq!((&page["page"]["next_since"], &page["page"]["truncated"]), (&json!(5), &json!(true)));
    let mut listener = kernel.attach("b");
    let subscribed = listener.ok("events.subscribe", json!({"channel": "user.x", "since": 7}));
    assert_eq!(subscribed["next_seq"], 10);
    client.ok("events.publish", json!({"channel": "user.x", "payload": "live"}));
    let seqs: Vec<_> = (0..3).map(|_| listener.push()["seq"].clone()).collect();
    assert_eq!(seqs, [8, 9, 10]);
    listener.ok("events.unsubscribe", json!({"channel": "user.x"}));
    client.ok("events.publish", json!({"channel": "user.x", "payload": "unheard"}));
    listener.ok("task.list", json!({}));
}

#[test]
fn durable_channels_follow_the_rows() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    client.ok("events.subscribe", json!({"channel": "session.transcript"}));
    client.ok("exec", json!({"src": "value 1"}));
    client.fails("exec", json!({"src": "raise"}));
    let push = client.push();
    assert_eq!((&push["seq"], &push["payload"]["v"]["ref"]["v"]), (&json!(0), &json!("out:1")));
    let page = client.ok("events.read", json!({"channel": "journal"}));
    let kinds: Vec<_> =
        page["events"].as_array().expect("events").iter().map(|e| e["payload"]["v"]["ok"]["v"].clone()).collect();
    assert_eq!(kinds, [true, false]);
    assert_eq!(page["events"][0]["payload"]["v"]["kind"]["v"], "exec");
    let transcript = client.ok("events.read", json!({"channel": "session.transcript"}));
    assert_eq!(
        transcript["events"][0],
        json!({"channel": "session.transcript", "seq": 0, "ts": push["ts"], "payload": push["payload"]})
    );
}
