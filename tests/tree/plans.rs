//! Plans and approvals over the whole tree: what an approval is bound to, and every refusal with its own reason.

use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place};

/// The local user may do everything; `agent:docs` has to ask before anything opaque, and `agent:lead` decides for others.
const AGENTS: &str = r#"
[principal."agent:docs"]
opaque = "ask"
auto_apply = "in-grant"
session_write = true
env_read = ["*"]
env_write = ["*"]
fs.read = ["/**"]
fs.write = ["WORK/**"]

[principal."agent:lead"]
approve = true
opaque = "ask"
auto_apply = "in-grant"
fs.read = ["/**"]
"#;

fn policy(place: &Place) -> String {
    place.unbounded() + &AGENTS.replace("WORK", &place.work().display().to_string())
}

/// A kernel with the policy above.
pub(crate) fn start(place: &Place) -> Kernel {
    let file = place.write("leash.toml", policy(place));
    Kernel::start_with(place, |command| {
        command.arg("--policy").arg(file);
    })
}

/// A connection of an agent in its session `s`.
pub(crate) fn agent(kernel: &Kernel, human: &mut Client, principal: &str) -> Client {
    attached(kernel, human, principal, json!({}))
}

/// The same, in a session that is made in a directory.
pub(crate) fn agent_in(kernel: &Kernel, human: &mut Client, principal: &str, dir: &std::path::Path) -> Client {
    attached(kernel, human, principal, json!({"cwd": dir.display().to_string()}))
}

fn attached(kernel: &Kernel, human: &mut Client, principal: &str, create: Value) -> Client {
    let token = human.ok("token.create", json!({"principal": principal}))["token"].clone();
    let mut client = kernel.connect();
    let client_is = json!({"kind": "test"});
    client.ok("session.attach", json!({"session": "s", "token": token, "client": client_is, "create": create}));
    client
}

fn plan(client: &mut Client, src: &str) -> Value {
    client.ok("exec", json!({"src": src, "mode": "plan", "position": "value"}))["plan_ref"].clone()
}

/// A plan that the human approved.
fn approved(human: &mut Client, client: &mut Client, src: &str) -> Value {
    let plan_ref = plan(client, src);
    human.ok("approval.decide", json!({"plan_ref": plan_ref, "decision": "approve"}));
    plan_ref
}

fn drifted(client: &mut Client, plan_ref: &Value) -> Value {
    let error = client.err("plan.apply", json!({"plan_ref": plan_ref}));
    assert_eq!((error.code, error.data["reason"].as_str()), (-32012, Some("drifted")), "{error:?}");
    error.data["what"].clone()
}

#[test]
fn what_an_approval_is_bound_to_is_compared_when_it_is_applied() {
    let place = Place::new();
    let script = place.write("s.sh", "echo one");
    let tool = place.write("tool", "#!/bin/sh\necho tool one\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&tool, executable).expect("a program");
    let kernel = start(&place);
    let mut human = kernel.attach("default");
    let mut client = agent(&kernel, &mut human, "agent:docs");

    let by_script = plan(&mut client, "sh ./s.sh");
    let shown = client.ok("plan.get", json!({"plan_ref": by_script}));
    assert_eq!(shown["programs"][0]["argv0"], json!("sh"), "{shown}");
    let hash = blake3::hash(b"echo one").to_hex().to_string();
    assert_eq!(shown["scripts"], json!([{"path": {"display": script.display().to_string()}, "hash": hash}]), "{shown}");
    human.ok("approval.decide", json!({"plan_ref": by_script, "decision": "approve"}));
    place.write("s.sh", "echo two");
    assert_eq!(drifted(&mut client, &by_script), json!(["scripts"]));
    place.write("s.sh", "echo one");
    let ran = client.ok("plan.apply", json!({"plan_ref": by_script}));
    assert!(ran["render"].as_str().is_some_and(|render| render.contains("one")), "{ran}");

    let behind = plan(&mut client, "nice sh s.sh");
    let shown = client.ok("plan.get", json!({"plan_ref": behind}));
    assert_eq!(shown["scripts"].as_array().map(Vec::len), Some(1), "{shown}");

    let by_program = approved(&mut human, &mut client, "./tool");
    place.write("tool", "#!/bin/sh\necho tool two\n");
    assert_eq!(drifted(&mut client, &by_program), json!(["programs"]));

    client.ok("exec", json!({"src": "let d = 1\nfn twice(n) { n * d }"}));
    let by_name = approved(&mut human, &mut client, "sh -c (\"exit {d}\")");
    let by_function = approved(&mut human, &mut client, "sh -c (\"exit {twice(2)}\")");
    let bindings = client.ok("plan.get", json!({"plan_ref": by_name}))["bindings"].clone();
    assert_eq!(bindings.as_str().map(str::len), Some(64), "{bindings}");
    client.ok("exec", json!({"src": "let d = 2"}));
    assert_eq!(drifted(&mut client, &by_name), json!(["bindings"]));
    // Through the function it reaches, too.
    assert_eq!(drifted(&mut client, &by_function), json!(["bindings"]));

    let by_environment = approved(&mut human, &mut client, "sh -c 'exit 0'");
    client.ok("exec", json!({"src": "env.SOMETHING = 'else'"}));
    assert_eq!(drifted(&mut client, &by_environment), json!(["env"]));
}

#[test]
fn every_refusal_of_an_approval_has_its_own_reason() {
    let place = Place::new();
    let kernel = start(&place);
    let mut human = kernel.attach("default");
    let mut client = agent(&kernel, &mut human, "agent:docs");
    let mut lead = agent(&kernel, &mut human, "agent:lead");
    let reason = |error: shoal_harness::RpcError| (error.code, error.data["reason"].as_str().unwrap_or("").to_owned());

    // Edited after the approval: another plan, which nobody approved.
    let approved = plan(&mut client, "sh -c 'exit 3'");
    human.ok("approval.decide", json!({"plan_ref": approved, "decision": "approve", "note": "fine"}));
    let edited = plan(&mut client, "sh -c 'exit 4'");
    assert_ne!(approved, edited);
    assert_eq!(client.err("plan.apply", json!({"plan_ref": edited})).code, -32011);

    // Approved by itself, and by an approver that planned it.
    let own = client.err("approval.decide", json!({"plan_ref": edited, "decision": "approve"}));
    assert_eq!(
        (own.code, &own.data["reason"], &own.data["need"]),
        (-32010, &json!("not_permitted"), &json!("approver"))
    );
    let leads = plan(&mut lead, "sh -c 'exit 5'");
    assert_eq!(
        reason(lead.err("approval.decide", json!({"plan_ref": leads, "decision": "approve"}))).1,
        "not_permitted"
    );
    let by_client = json!({"plan_ref": edited, "decision": "approve", "via": "elicitation"});
    assert_eq!(reason(client.err("approval.decide", by_client)).1, "not_permitted");

    // By an approver for somebody else.
    let decided = lead.ok("approval.decide", json!({"plan_ref": edited, "decision": "approve"}));
    assert_eq!((&decided["state"], &decided["decided_by"]), (&json!("approved"), &json!("agent:lead")));

    // Applied by somebody else.
    assert_eq!(reason(lead.err("plan.apply", json!({"plan_ref": edited}))), (-32010, "foreign_plan".to_owned()));
    assert_eq!(reason(human.err("plan.apply", json!({"plan_ref": edited}))).1, "foreign_plan");

    // A later decision replaces an earlier one until the plan is consumed.
    human.ok("approval.decide", json!({"plan_ref": edited, "decision": "deny", "note": "no"}));
    assert_eq!(reason(client.err("plan.apply", json!({"plan_ref": edited}))).1, "approval_denied");
    human.ok("approval.decide", json!({"plan_ref": edited, "decision": "approve"}));

    // Applied twice, and decided after that.
    let ran = client.ok("plan.apply", json!({"plan_ref": edited}));
    let again = client.err("plan.apply", json!({"plan_ref": edited}));
    assert_eq!((again.code, &again.data["reason"], &again.data["ref"]), (-32012, &json!("consumed"), &ran["ref"]));
    assert!(again.data["entry_id"].is_i64(), "{again:?}");
    let late = human.err("approval.decide", json!({"plan_ref": edited, "decision": "approve"}));
    assert_eq!(reason(late), (-32012, "consumed".to_owned()));
    assert_eq!(reason(client.err("cap.request", json!({"plan_ref": edited}))), (-32012, "consumed".to_owned()));
    assert_eq!(reason(client.err("plan.apply", json!({"plan_ref": "plan:0"}))).1, "unknown");

    // Every request and decision is a row, and the run names its plan.
    let rows = human.ok("journal.query", json!({"kinds": ["approval"]}));
    let actions: Vec<&str> =
        rows.as_array().expect("rows").iter().filter_map(|row| row["detail"]["action"].as_str()).collect();
    assert_eq!(actions, ["approved", "denied", "approved", "approved"], "{rows}");
    let run = human.ok("journal.query", json!({"kinds": ["exec"], "principal": "agent:docs", "limit": 1}));
    assert_eq!(run[0]["detail"]["plan_ref"], edited);
    assert_eq!(human.ok("journal.verify", json!({}))["ok"], json!(true));
}

#[test]
fn a_policy_that_has_come_to_deny_refuses_an_approved_plan() {
    let place = Place::new();
    let kernel = start(&place);
    let mut human = kernel.attach("default");
    let mut client = agent(&kernel, &mut human, "agent:docs");
    let approved = plan(&mut client, "sh -c 'exit 3'");
    human.ok("approval.decide", json!({"plan_ref": approved, "decision": "approve"}));
    human.ok("events.subscribe", json!({"channel": "kernel"}));
    place.write("leash.toml", policy(&place).replace("opaque = \"ask\"", "opaque = \"deny\""));
    let mut actions = Vec::new();
    while !actions.iter().any(|action| action == "policy_reloaded") {
        let push = human.frame().expect("an event");
        actions.push(push["params"]["payload"]["v"]["action"]["v"].as_str().unwrap_or_default().to_owned());
    }
    let error = client.err("plan.apply", json!({"plan_ref": approved}));
    assert_eq!((error.code, error.data["reason"].as_str()), (-32010, Some("policy")), "{error:?}");
}

#[test]
fn what_a_scoped_agent_removes_is_kept_beside_and_is_no_change_of_its_repository() {
    // Where the session has a view of the host and no `/tmp` of its own.
    let place = Place::visible(env!("CARGO_TARGET_TMPDIR"));
    let policy = policy(&place)
        + &format!("fs.write = [\"{0}/**\"]\nfs.delete = [\"{0}/**\"]\njournal_read = true\n", place.work().display());
    let file = place.write("leash.toml", policy);
    place.write("src/a.txt", "kept");
    let git = |words: &[&str]| {
        let output = place.command("git").args(words).output().expect("git runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    git(&["init", "-q"]);
    let before = git(&["status", "--short", "-uall"]);
    let kernel = Kernel::start_with(&place, |command| {
        command.arg("--policy").arg(file);
    });
    let mut human = kernel.attach("default");
    let mut client = agent(&kernel, &mut human, "agent:lead");
    let removed = client.render("(rm src/a.txt).out");
    // A long path is cut in the middle of a table.
    assert!(removed.contains(".shoal-trash/"), "{removed}");
    assert!(!place.work().join("src/a.txt").exists());
    let after = git(&["status", "--short", "-uall"]);
    assert_eq!(after, before.replace("?? src/a.txt\n", ""), "git sees what is gone and no trash");
    let trash = std::fs::read_dir(place.work().join(".shoal-trash")).expect("a trash").flatten();
    let kept: Vec<_> = trash.filter(|entry| entry.file_name().to_string_lossy().starts_with("a.txt")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(std::fs::read_to_string(kept[0].path()).expect("readable"), "kept");
    // What an undo touches is not known in advance, so rules that name places refuse one without a bound.
    let refused = client.err("exec", json!({"src": "undo"}));
    assert_eq!((refused.code, &refused.data["hint"]), (-32010, &json!("grant fs.write = [\"/**\"]")), "{refused:?}");
    let above = place.work().parent().expect("a directory above").to_owned();
    let refused = client.err("exec", json!({"src": format!("undo --root='{}'", above.display())}));
    assert_eq!(refused.code, -32010, "{refused:?}");
    assert_eq!(client.render(&format!("(undo --root='{}').undone", place.work().display())), "true");
    assert_eq!(std::fs::read_to_string(place.work().join("src/a.txt")).expect("back"), "kept");
}
