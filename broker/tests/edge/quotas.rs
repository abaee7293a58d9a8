//! Every quota of the kernel that needs no jail to be reached: one more is refused with its name and numbers, and nothing else
//! is disturbed.

use serde_json::{Value, json};

use crate::client::Client;
use crate::kernel::Kernel;

/// What reaches a quota: the nth call of it, and the connection it goes over.
type Step = fn(&Kernel, &mut Client, u64) -> Result<Value, Value>;

/// Name, limit, and how one more is asked for.
const QUOTAS: &[(&str, Step)] = &[
    ("execs_per_session", |_, client, _| client.call("exec", json!({"src": "hang", "async": true}))),
    ("tasks", |kernel, _, n| kernel.attach(&format!("s{n}")).call("exec", json!({"src": "hang", "async": true}))),
    ("plans_per_owner", |_, client, _| client.call("exec", json!({"src": "opaque", "mode": "plan"}))),
    ("subscriptions", |_, client, n| client.call("events.subscribe", json!({"channel": format!("user.c{n}")}))),
    ("user_channels", |_, client, n| {
        client.call("events.publish", json!({"channel": format!("user.c{n}"), "payload": n}))
    }),
    ("blob_reads", |_, client, _| client.call("value.get", json!({"ref": format!("val:blake3:{}", "0".repeat(64))}))),
    ("sessions", |kernel, _, n| kernel.connect().call("session.attach", json!({"session": format!("s{n}")}))),
    ("watches_per_session", |_, client, n| {
        client.call("watch.start", json!({"name": format!("w{n}"), "uri": "shoal://events/journal"}))
    }),
];

#[test]
fn one_more_than_a_quota_is_refused_with_its_name_and_numbers() {
    const MAX: u64 = 3;
    for (name, step) in QUOTAS {
        let kernel = Kernel::with(&[(*name, MAX)]);
        let mut client = kernel.attach("a");
        let refused =
            (0..=MAX).find_map(|n| step(&kernel, &mut client, n).err().filter(|error| error["code"] == -32040));
        let refused = refused.unwrap_or_else(|| panic!("{name} is never reached"));
        assert_eq!(refused["data"], json!({"limit": name, "max": MAX, "used": MAX}), "{name}");
        // Whoever is not concerned works on.
        assert!(client.ok("task.list", json!({})).is_array());
    }
}

#[test]
fn the_sources_of_plans_are_counted_in_bytes() {
    let kernel = Kernel::with(&[("plan_source_bytes", 100)]);
    let mut client = kernel.attach("a");
    let plan = |n: usize| json!({"src": format!("value {}", "x".repeat(n)), "mode": "plan"});
    client.ok("exec", plan(50));
    let (code, data) = client.fails("exec", plan(50));
    assert_eq!((code, &data["limit"], &data["max"]), (-32040, &json!("plan_source_bytes"), &json!(100)));
    client.ok("exec", plan(1));
}

#[test]
fn what_a_session_stores_has_an_end_and_is_counted_once() {
    let kernel = Kernel::with(&[("capture_session_cap_bytes", 100_000)]);
    let mut client = kernel.attach("a");
    let store = |client: &mut Client, letter: &str| {
        client.ok("exec", json!({"src": format!("store 30000 {letter}"), "position": "value"}))["render"].to_string()
    };
    for letter in ["x", "y", "x", "y", "x", "z"] {
        let stored = store(&mut client, letter);
        assert!(stored.contains("hash"), "{letter}: {stored}");
    }
    let refused = store(&mut client, "w");
    assert!(refused.contains("-32040") && refused.contains("may still keep"), "{refused}");
    // Another session has its own.
    assert!(store(&mut kernel.attach("b"), "w").contains("hash"));
}

#[test]
fn a_connection_too_many_is_told_so_and_closed() {
    let kernel = Kernel::with(&[("connections", 2)]);
    let mut kept = [kernel.attach("a"), kernel.attach("a")];
    let mut surplus = kernel.connect();
    let (code, data) = surplus.fails("kernel.version", json!({}));
    assert_eq!((code, &data["limit"]), (-32040, &json!("connections")));
    assert_eq!(surplus.frame(), None);
    kept.iter_mut().for_each(|client| drop(client.ok("task.list", json!({}))));
}

#[test]
fn connections_that_spoke_keep_nobody_waiting() {
    let kernel = Kernel::with(&[("unattached", 2)]);
    let mut clients: Vec<Client> = (0..8).map(|_| kernel.connect()).collect();
    for client in &mut clients {
        client.ok("kernel.version", json!({}));
    }
    for (n, client) in clients.iter_mut().enumerate() {
        client.ok("session.attach", json!({"session": format!("s{n}")}));
    }
}

#[test]
fn what_was_given_back_can_be_had_again() {
    let kernel = Kernel::with(&[("execs_per_session", 1), ("subscriptions", 1)]);
    let mut client = kernel.attach("a");
    for _ in 0..3 {
        let task = client.ok("exec", json!({"src": "hang", "async": true}))["task"].clone();
        assert_eq!(client.fails("exec", json!({"src": "hang"})).0, -32040);
        client.ok("task.cancel", json!({"task": task}));
        client.ok("events.subscribe", json!({"channel": "user.x"}));
        assert_eq!(client.fails("events.subscribe", json!({"channel": "user.y"})).0, -32040);
        client.ok("events.unsubscribe", json!({"channel": "user.x"}));
    }
}
