//! Launchers that break an edge: the session's processes end, a row says what was broken, others go on.

use std::path::Path;

use serde_json::{Value, json};
use shoal_harness::{processes, until};
use shoal_hostile::violations::by_launcher;

use crate::field::{Field, Principal};

/// Whose session: one with a real worker for violations of the worker's edge.
fn principal(edge: &str) -> Principal {
    if edge == "worker" { Principal::Scoped } else { Principal::Permissive }
}

fn rows(field: &Field, session: &str) -> Vec<Value> {
    let mut human = field.session(Principal::Permissive, "human");
    let rows = human.ok("journal.query", json!({"kinds": ["session"], "limit": 50}));
    let rows = rows.as_array().expect("rows").clone();
    rows.into_iter().filter(|row| row["session"] == json!(session)).collect()
}

#[test]
fn a_launcher_that_breaks_an_edge_ends_its_own_session_alone() {
    let field = Field::with(&[("shoal-launcher", Path::new(env!("CARGO_BIN_EXE_hostile-launcher")))]);
    let broker = field.kernel.pids_of("shoal-broker");
    let mut bystander = field.session(Principal::Permissive, "bystander");
    assert_eq!(bystander.render("calm"), "calm");
    assert!(rows(&field, "nobody").is_empty());
    for (edge, name) in by_launcher() {
        let session = format!("{edge}-{name}");
        eprintln!("{session}");
        let before = field.kernel.pids_of("shoal-launcher");
        let mut client = field.session(principal(edge), &session);
        let launchers = field.kernel.pids_of("shoal-launcher");
        let victim = *launchers.iter().find(|pid| !before.contains(pid)).expect("its launcher");
        // A call to the launcher of somebody else, which waits for its answer.
        let waits = (name == "answers-to-everybody").then(|| {
            let held = bystander.ok("exec", json!({"src": "hang", "position": "value", "async": true}));
            bystander.send("task.suspend", json!({"task": held["task"]}))
        });
        let source = match edge {
            "worker" => format!("sh {{ violate {name} }}"),
            _ => format!("violate {edge} {name}"),
        };
        let lost = client.err("exec", json!({"src": source, "position": "value"}));
        assert_eq!(lost.code, -32050, "{session}: {lost:?}");
        until(&format!("{session}: its launcher ends"), || !processes::is_running(victim));
        let rows = rows(&field, &session);
        let row = rows.iter().find(|row| row["detail"]["action"] == json!("worker_lost"));
        let reason = row.unwrap_or_else(|| panic!("{session}: no row in {rows:?}"))["detail"]["reason"].to_string();
        assert!(reason.contains("its launcher broke the protocol: "), "{session}: {reason}");
        assert_eq!(bystander.render("calm"), "calm", "after {session}");
        assert_eq!(field.kernel.pids_of("shoal-broker"), broker, "after {session}");
        if let Some(suspended) = waits {
            let answered = bystander.answer(suspended);
            assert!(answered.is_err(), "answered for the bystander's launcher: {answered:?}");
        }
        field.end(&mut client, principal(edge), &session);
    }
}
