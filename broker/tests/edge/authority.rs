//! Who may do what: tokens, owners, plans, approvals.
#![allow(clippy::disallowed_methods, reason = "the test owns its directory")]

use serde_json::json;

use crate::client::Client;
use crate::kernel::Kernel;

/// A connection of the agent in its session `s`, its token's id, and its bearer.
fn agent(kernel: &Kernel, human: &mut Client) -> (Client, String, String) {
    let token = human.ok("token.create", json!({"principal": "agent:x"}));
    let bearer = token["token"].as_str().expect("a bearer").to_owned();
    let mut client = kernel.connect();
    client.ok("session.attach", json!({"session": "s", "token": bearer}));
    (client, token["id"].as_str().expect("an id").to_owned(), bearer)
}

#[test]
fn a_token_is_its_principal_until_it_is_revoked() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("s");
    let (mut client, id, _) = agent(&kernel, &mut human);
    assert_eq!(client.ok("exec", json!({"src": "value 1"}))["ref"], "out:1");
    assert_eq!(client.fails("session.list", json!({})).1, json!({"reason": "not_permitted", "need": "human"}));
    assert_eq!(client.fails("events.read", json!({"channel": "journal", "owner": "uid:0"})).1["need"], "human");
    let own = client.ok("journal.query", json!({}));
    assert!(own.as_array().expect("rows").iter().all(|row| row["owner"] == "agent:x"), "{own}");
    human.ok("token.revoke", json!({"id": id}));
    assert_eq!(client.fails("task.list", json!({})), (-32030, json!({"reason": "revoked"})));
    assert_eq!(client.frame(), None);
    let mut stranger = kernel.connect();
    assert_eq!(stranger.fails("session.attach", json!({"token": "no"})).1, json!({"reason": "invalid"}));
    let rows = human.ok("journal.query", json!({"kinds": ["denial"]}));
    assert_eq!(rows[0]["detail"]["reason"], "invalid");
}

#[test]
fn an_opaque_program_of_an_agent_needs_an_approval_and_runs_once() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("s");
    let (mut client, ..) = agent(&kernel, &mut human);
    let (code, data) = client.fails("exec", json!({"src": "opaque 1"}));
    assert_eq!((code, data), (-32011, json!({"effects": [{"kind": "opaque"}]})));
    let plan = client.ok("exec", json!({"src": "opaque 1", "mode": "plan"}));
    assert_eq!((&plan["verdict"], &plan["approval_pending"]), (&json!("approval_required"), &json!(true)));
    let plan_ref = plan["plan_ref"].clone();
    assert_eq!(client.fails("plan.apply", json!({"plan_ref": plan_ref})).0, -32011);
    let asked = client.ok("cap.request", json!({"plan_ref": plan_ref, "effects": ["fs.write"]}));
    assert_eq!((&asked["grant"], &asked["uncovered_effects"]), (&json!("approval_pending"), &json!(["opaque"])));
    assert_eq!(
        client.fails("approval.decide", json!({"plan_ref": plan_ref, "decision": "approve"})).1["need"],
        "approver"
    );
    assert_eq!(human.fails("plan.apply", json!({"plan_ref": plan_ref})).1["reason"], "foreign_plan");
    let listed = human.ok("approval.list", json!({}));
    assert_eq!(listed["approvals"][0]["plan_ref"], plan_ref);
    let decided = human.ok("approval.decide", json!({"plan_ref": plan_ref, "decision": "approve", "note": "fine"}));
    assert_eq!((&decided["state"], &decided["granted_effects"]), (&json!("approved"), &json!(["opaque"])));
    let result = client.ok("plan.apply", json!({"plan_ref": plan_ref}));
    let (code, data) = client.fails("plan.apply", json!({"plan_ref": plan_ref}));
    assert_eq!((code, &data["reason"], &data["ref"]), (-32012, &json!("consumed"), &result["ref"]));
    assert_eq!(client.ok("plan.get", json!({"plan_ref": plan_ref}))["note"], "fine");
}

#[test]
fn drift_refuses_and_consumes_nothing() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("s");
    let plan = human.ok("exec", json!({"src": "value 1", "mode": "plan"}))["plan_ref"].clone();
    human.ok("exec", json!({"src": "cd /tmp"}));
    let (code, data) = human.fails("plan.apply", json!({"plan_ref": plan}));
    assert_eq!((code, &data["what"]), (-32012, &json!(["cwd"])));
    human.ok("exec", json!({"src": "cd /"}));
    human.ok("plan.apply", json!({"plan_ref": plan}));
}

#[test]
fn two_owners_of_one_name_have_two_sessions() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("s");
    human.ok("exec", json!({"src": "value 1"}));
    let (mut client, _, bearer) = agent(&kernel, &mut human);
    assert_eq!(client.ok("exec", json!({"src": "value 1"}))["ref"], "out:1");
    assert_eq!(client.fails("session.attach", json!({"token": bearer, "owner": "uid:0"})).1["need"], "human");
    let attached = human.ok("session.attach", json!({"session": "s", "owner": "agent:x"}));
    assert_eq!((&attached["owner"], &attached["created"]), (&json!("agent:x"), &json!(false)));
    assert_eq!(human.fails("session.attach", json!({"owner": "agent:y"})).1["reason"], "unknown_session");
}

#[test]
fn a_token_file_changed_from_outside_counts_at_the_next_request() {
    let kernel = Kernel::start();
    let mut human = kernel.attach("s");
    let (mut client, ..) = agent(&kernel, &mut human);
    client.ok("task.list", json!({}));
    let text = std::fs::read_to_string(kernel.token_file()).expect("a store");
    assert!(!text.contains("agent:y"));
    let changed = text.replace("\"revoked_ns\":null", "\"revoked_ns\":1");
    let beside = kernel.token_file().with_extension("new");
    std::fs::write(&beside, changed).expect("written");
    std::fs::rename(&beside, kernel.token_file()).expect("replaced");
    assert_eq!(client.fails("task.list", json!({})), (-32030, json!({"reason": "revoked"})));
}
