//! Tables over every method: what answers a stranger, what an agent may not call, and the row each refusal and decision leaves.

use serde_json::{Value, json};
use shoal_proto::section::Approve;
use shoal_wire::Method;

use crate::client::Client;
use crate::kernel::{Kernel, asking};

#[test]
fn before_an_attachment_no_method_but_the_public_ones_answers() {
    let kernel = Kernel::start();
    let mut client = kernel.connect();
    for method in Method::ALL {
        let told = client.call(method.name(), json!({}));
        match method {
            Method::KernelVersion => assert_eq!(told.expect("public")["protocol"], 1),
            // It answers, and ends the state this test is about.
            Method::SessionAttach => assert!(told.is_ok(), "{told:?}"),
            _ => assert_eq!(told.expect_err(method.name())["code"], -32000, "{}", method.name()),
        }
        if *method == Method::SessionAttach {
            client = kernel.connect();
        }
    }
    assert_eq!(client.fails("session.reset", json!({})).0, -32601);
    assert_eq!(client.fails("session.reset", json!({"any": 1})), (-32601, json!({"method": "session.reset"})));
}

/// What answers a connection that entered no session: what is not about one.
const OUTSIDE: [&str; 19] = [
    "kernel.version",
    "journal.query",
    "journal.verify",
    "approval.list",
    "approval.decide",
    "events.read",
    "events.subscribe",
    "events.unsubscribe",
    "kernel.status",
    "session.list",
    "session.kill",
    "session.freeze",
    "session.thaw",
    "token.create",
    "token.list",
    "token.revoke",
    "journal.pin",
    "journal.unpin",
    "journal.gc",
];

#[test]
fn outside_of_every_session_administration_answers_and_nothing_is_made() {
    let kernel = Kernel::start();
    let mut human = kernel.connect();
    let told = human.ok("session.attach", json!({"enter": "none"}));
    let entered = ["session", "cwd", "env_hash", "created"].map(|member| told[member].clone());
    assert_eq!(entered, [Value::Null, Value::Null, Value::Null, json!(false)], "{told}");
    assert_eq!(told["owner"], told["principal"]);
    for method in Method::ALL {
        if matches!(method, Method::SessionAttach | Method::KernelShutdown) {
            continue;
        }
        // Empty parameters are wrong for many; what counts is whether they are looked at.
        let refused = human.call(method.name(), json!({})).is_err_and(|error| error["code"] == -32000);
        assert_eq!(refused, !OUTSIDE.contains(&method.name()), "{}", method.name());
    }
    for params in [json!({"session": "s", "enter": "existing"}), json!({"enter": "existing"})] {
        assert_eq!(human.fails("session.attach", params).1["reason"], "unknown_session");
    }
    assert_eq!(human.fails("session.attach", json!({"enter": "perhaps"})).0, -32602);
    assert_eq!(human.ok("session.list", json!({}))["sessions"], json!([]), "nothing was made, and it still answers");
    let mut worker = kernel.attach("s");
    worker.ok("exec", json!({"src": "value 1"}));
    assert_eq!(human.ok("session.attach", json!({"session": "s", "enter": "existing"}))["created"], false);
    human.ok("session.attach", json!({"enter": "none"}));
    assert_eq!(human.ok("session.list", json!({}))["sessions"][0]["attached"], 1, "the visitor left it");
    // Outside is no way around a permit.
    let bearer = bearer(&mut human);
    let mut agent = kernel.connect();
    agent.ok("session.attach", json!({"enter": "none", "token": bearer}));
    assert_eq!(agent.fails("session.list", json!({})).0, -32010);
    assert_eq!(agent.fails("session.attach", json!({"enter": "none", "owner": "uid:0", "token": bearer})).0, -32010);
}

/// Newest row of these kinds, and how many there are.
fn rows(human: &mut Client, kind: &str) -> (usize, Value) {
    let rows = human.ok("journal.query", json!({"kinds": [kind], "limit": 10_000}));
    let rows = rows.as_array().expect("rows");
    (rows.len(), rows.first().cloned().unwrap_or_default())
}

#[test]
fn every_refusal_leaves_its_row() {
    let agents = [asking("agent:x", Approve::Human), asking("agent:y", Approve::Human)];
    let kernel = Kernel::of(&agents, &[]);
    let mut human = kernel.attach("s");
    let mut agent = kernel.attach_agent("agent:x", "s");
    let mut other = kernel.attach_agent("agent:y", "s");
    let theirs = other.ok("exec", json!({"src": "opaque 1", "mode": "plan"}))["plan_ref"].clone();
    let mine = agent.ok("exec", json!({"src": "opaque 2", "mode": "plan"}))["plan_ref"].clone();
    let denied = agent.ok("exec", json!({"src": "opaque 3", "mode": "plan"}))["plan_ref"].clone();
    human.ok("approval.decide", json!({"plan_ref": denied, "decision": "deny"}));
    let for_humans = [
        ("session.list", json!({})),
        ("session.kill", json!({"session": "s"})),
        ("session.freeze", json!({"session": "s"})),
        ("session.thaw", json!({"session": "s"})),
        ("token.create", json!({"principal": "agent:z"})),
        ("token.list", json!({})),
        ("token.revoke", json!({"id": "0"})),
        ("kernel.status", json!({})),
        ("kernel.shutdown", json!({})),
        ("journal.verify", json!({})),
        ("journal.pin", json!({"hash": "0".repeat(64)})),
        ("journal.unpin", json!({"hash": "0".repeat(64)})),
        ("journal.gc", json!({})),
        ("pty.control", json!({"pty_id": "pty:1", "action": "take"})),
        ("events.read", json!({"channel": "journal", "owner": "agent:y"})),
        ("events.subscribe", json!({"channel": "journal", "owner": "agent:y"})),
        ("session.attach", json!({"session": "s", "owner": "agent:y"})),
    ];
    let others = [
        ("approval.decide", json!({"plan_ref": mine, "decision": "approve"}), -32010, "not_permitted"),
        ("plan.get", json!({"plan_ref": theirs}), -32010, "foreign_plan"),
        ("plan.apply", json!({"plan_ref": theirs}), -32010, "foreign_plan"),
        ("cap.request", json!({"plan_ref": theirs}), -32010, "foreign_plan"),
        ("plan.apply", json!({"plan_ref": mine}), -32011, "approval_required"),
        ("plan.apply", json!({"plan_ref": denied}), -32010, "approval_denied"),
        ("cap.request", json!({"plan_ref": denied}), -32010, "approval_denied"),
        ("exec", json!({"src": "opaque 4"}), -32011, "approval_required"),
        ("exec", json!({"src": "1", "mode": "approved"}), -32010, "use_plan_apply"),
    ];
    let for_humans = for_humans.into_iter().map(|(method, params)| (method, params, -32010, "not_permitted"));
    for (method, params, code, reason) in for_humans.chain(others) {
        let (before, _) = rows(&mut human, "denial");
        let params = match method {
            // The token goes with every attach.
            "session.attach" => json!({"session": "s", "owner": "agent:y", "token": bearer(&mut human)}),
            _ => params,
        };
        assert_eq!(agent.fails(method, params).0, code, "{method}");
        let (after, row) = rows(&mut human, "denial");
        let detail = &row["detail"];
        assert_eq!(after, before + 1, "{method} leaves one row");
        let told = (&detail["method"], &detail["code"], &detail["reason"]);
        assert_eq!(told, (&json!(method), &json!(code), &json!(reason)), "{row}");
        assert_eq!(row["principal"], "agent:x", "{row}");
    }
    // Attachments that are refused altogether are the local user's to see.
    for (params, reason) in [
        (json!({"token": "nobody's"}), "invalid"),
        (json!({"session": "s", "owner": "agent:nobody"}), "unknown_session"),
    ] {
        let (before, _) = rows(&mut human, "denial");
        let (_, data) = kernel.connect().fails("session.attach", params);
        assert_eq!(data["reason"], reason);
        let (after, row) = rows(&mut human, "denial");
        let expected = usize::from(reason != "unknown_session");
        assert_eq!(after, before + expected, "a mistake is no refusal: {row}");
    }
}

fn bearer(human: &mut Client) -> Value {
    human.ok("token.create", json!({"principal": "agent:x"}))["token"].clone()
}

#[test]
fn every_request_and_decision_leaves_its_row() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("s");
    let mut agent = kernel.attach_agent("agent:x", "s");
    let plan = agent.ok("exec", json!({"src": "opaque 1", "mode": "plan"}))["plan_ref"].clone();
    let (_, made) = rows(&mut human, "plan");
    assert_eq!((&made["detail"]["plan_ref"], &made["principal"]), (&plan, &json!("agent:x")));
    agent.ok("cap.request", json!({"plan_ref": plan}));
    let me = human.ok("session.attach", json!({"session": "s"}))["principal"].clone();
    for (decision, note, action) in [("deny", "not now", "denied"), ("approve", "read it", "approved")] {
        let told = human.ok("approval.decide", json!({"plan_ref": plan, "decision": decision, "note": note}));
        let (_, row) = rows(&mut human, "approval");
        let detail = &row["detail"];
        assert_eq!((&detail["action"], &detail["note"]), (&json!(action), &json!(note)), "{row}");
        assert_eq!((&detail["decided_by"], &row["principal"], &row["id"]), (&me, &me, &told["entry_id"]));
    }
    let (count, _) = rows(&mut human, "approval");
    assert_eq!(count, 3, "one request, two decisions");
    agent.ok("plan.apply", json!({"plan_ref": plan}));
    let (_, run) = rows(&mut human, "exec");
    assert_eq!(run["detail"]["plan_ref"], plan);
}
