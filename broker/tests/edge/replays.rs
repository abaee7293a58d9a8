//! What outlives a broker besides running work: keyed answers, plans' decisions, numbers; and what the language may read.

use serde_json::{Value, json};

use crate::kernel::Kernel;

#[test]
fn a_key_is_answered_again_by_the_next_broker_in_full() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let long = format!("value {}", "x".repeat(40_000));
    let sources = [("small", "value 7"), ("moved", "cd /tmp"), ("large", long.as_str())];
    let call = |key: &str, src: &str| json!({"src": src, "position": "value", "key": key});
    let told: Vec<Value> = sources.iter().map(|(key, src)| client.ok("exec", call(key, src))).collect();
    let raised = client.call("exec", call("bad", "raise")).expect_err("raised");
    kernel.replace_broker();
    let mut client = kernel.attach("a");
    for ((key, src), first) in sources.iter().zip(&told) {
        let again = client.ok("exec", call(key, src));
        let reference = again["ref"].as_str().expect("a reference");
        assert!(reference.starts_with("val:blake3:"), "{again}");
        assert_eq!(again["uri"], format!("shoal://{}", reference.replace("val:", "val/")));
        assert_eq!(again["replayed"], true);
        for member in ["value", "render", "elapsed_ms", "cwd"] {
            assert_eq!(again[member], first[member], "{key}: {member}");
        }
        assert_eq!(client.ok("value.get", json!({"ref": reference}))["value"], first["value"]);
    }
    let again = client.call("exec", call("bad", "raise")).expect_err("raised");
    assert_eq!((&again["code"], &again["message"]), (&raised["code"], &raised["message"]));
    let data = &again["data"];
    assert_eq!((&data["code"], &data["replayed"], &data["ref"]), (&json!("custom"), &json!(true), &Value::Null));
    let (code, data) = client.fails("exec", call("small", "value 8"));
    assert_eq!((code, &data["reason"]), (-32602, &json!("key_reuse")));
    assert!(data["entry_id"].is_i64(), "{data}");
    let rows = client.ok("journal.query", json!({"kinds": ["exec"]}));
    assert_eq!(rows.as_array().map(Vec::len), Some(4), "nothing ran twice");
    // An output that was collected is said to be gone; the run is still not done again.
    client.ok("journal.gc", json!({"budget_bytes": 0, "apply": true}));
    let (code, data) = client.fails("exec", call("large", &long));
    assert_eq!((code, &data["reason"], &data["replayed"]), (-32004, &json!("evicted"), &json!(true)));
}

#[test]
fn numbers_go_on_above_those_of_the_broker_before() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let task = |client: &mut crate::client::Client| {
        let task = client.ok("exec", json!({"src": "hang", "async": true}))["task"].clone();
        task.as_str().and_then(|task| task.strip_prefix("task:")?.parse::<u64>().ok()).expect("a task")
    };
    let (mut tasks, mut seqs) = (Vec::new(), Vec::new());
    for round in 0..3 {
        tasks.push(task(&mut client));
        for n in 0..3 {
            let event = client.ok("events.publish", json!({"channel": "user.x", "payload": n}));
            seqs.push(event["seq"].as_u64().expect("a number"));
        }
        if round < 2 {
            kernel.replace_broker();
            client = kernel.attach("a");
            let page = client.ok("events.read", json!({"channel": "user.x", "since": seqs.last()}));
            assert_eq!(page["events"][0]["payload"]["v"]["error"]["v"], "history_lost", "{page}");
            assert_eq!(page["page"]["history_lost"], true);
            seqs.push(page["events"][0]["seq"].as_u64().expect("a number"));
        }
    }
    assert_eq!(seqs[0], 0);
    assert!(tasks.windows(2).all(|pair| pair[0] < pair[1]), "{tasks:?}");
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
}

#[test]
fn the_language_reads_what_its_owner_may_read_and_nothing_else() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("s");
    human.ok("exec", json!({"src": "value of the human"}));
    let mut agent = kernel.attach_agent("agent:x", "s");
    let plan = agent.ok("exec", json!({"src": "opaque 1", "mode": "plan"}))["plan_ref"].clone();
    let ask = |agent: &mut crate::client::Client, method: &str, params: Value| -> Value {
        let answer = agent.ok("exec", json!({"src": format!("ask {method} {params}"), "position": "value"}));
        serde_json::from_str(answer["value"]["v"].as_str().expect("text")).expect("JSON")
    };
    let rows = ask(&mut agent, "journal.query", json!({}));
    let rows = rows.as_array().expect("rows");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["owner"] == "agent:x"), "{rows:?}");
    assert!(ask(&mut agent, "events.read", json!({"channel": "journal"}))["events"].is_array());
    assert_eq!(ask(&mut agent, "plan.get", json!({"plan_ref": plan}))["plan_ref"], plan);
    assert_eq!(ask(&mut agent, "plan.list", json!({}))[0]["plan_ref"], plan);
    assert_eq!(ask(&mut agent, "session.snapshot", json!({}))["owner"], "agent:x");
    assert_eq!(ask(&mut agent, "approval.list", json!({"state": "all"}))["approvals"][0]["plan_ref"], plan);
    assert_eq!(ask(&mut agent, "pty.list", json!({})), json!({"ptys": []}));
    for (method, params, code) in [
        ("journal.verify", json!({}), -32601),
        ("events.read", json!({"channel": "journal", "owner": "uid:0"}), -32010),
        ("token.list", json!({}), -32601),
        ("exec", json!({"src": "value 1"}), -32601),
        ("approval.decide", json!({"plan_ref": plan, "decision": "approve"}), -32601),
        ("events.publish", json!({"channel": "user.x", "payload": 1}), -32601),
        ("task.get", json!({"task": "task:1", "x": 1}), -32602),
    ] {
        assert_eq!(ask(&mut agent, method, params)["code"], code, "{method}");
    }
}
