//! Roles that break the protocol: the broker lives, the session's processes end, a row says so, others go on.

use serde_json::{Value, json};
use shoal_harness::{Client, until};
use shoal_hostile::violations::{BY_PTYD, NUISANCES, TO_BROKER, TO_LAUNCHER};

use crate::field::{Field, Principal};

/// A kernel whose workers and ptyds are hostile, somebody who goes on, and who looks at what happened.
struct Scene {
    field: Field,
    bystander: Client,
    broker: Vec<i32>,
}

impl Scene {
    fn new() -> Self {
        let field = Field::with_hostile_roles("");
        let mut bystander = field.session(Principal::Permissive, "bystander");
        assert_eq!(bystander.render("calm"), "calm");
        // Stays open for ever: a number that another session must not answer.
        bystander.send("session.snapshot", json!({}));
        let broker = field.kernel.pids_of("shoal-broker");
        Self { field, bystander, broker }
    }

    fn pid_of(&self, session: &str) -> i64 {
        let list = self.field.kernel.attach("human").ok("session.list", json!({}));
        let found = list["sessions"].as_array().expect("sessions").iter().find(|s| s["session"] == json!(session));
        found.and_then(|s| s["pid"].as_i64()).unwrap_or_default()
    }

    /// Nobody but the session was touched.
    fn calm(&mut self, after: &str) {
        assert_eq!(self.bystander.render("calm"), "calm", "after {after}");
        assert_eq!(self.field.kernel.pids_of("shoal-broker"), self.broker, "after {after}");
    }

    /// The rows about a session's life.
    fn rows(&self, session: &str) -> Vec<Value> {
        let mut human = self.field.kernel.attach("human");
        let rows = human.ok("journal.query", json!({"kinds": ["session"], "limit": 50}));
        let rows = rows.as_array().expect("rows").clone();
        rows.into_iter().filter(|row| row["session"] == json!(session)).collect()
    }

    fn end(&self, session: &str) {
        self.field.kernel.attach("human").ok("session.kill", json!({"session": session}));
    }
}

#[test]
fn a_worker_that_breaks_the_protocol_ends_its_own_session_alone() {
    assert!(TO_BROKER.len() + TO_LAUNCHER.len() + BY_PTYD.len() >= 40);
    let mut scene = Scene::new();
    for name in TO_BROKER.iter().chain(TO_LAUNCHER) {
        let mut client = scene.field.session(Principal::Permissive, name);
        eprintln!("{name}");
        let worker = i32::try_from(scene.pid_of(name)).expect("a pid");
        let launcher = shoal_harness::processes::read(worker).expect("it runs").ppid;
        let lost = client.err("exec", json!({"src": format!("violate {name}"), "position": "value"}));
        assert_eq!(lost.code, -32050, "{name}: {lost:?}");
        // Its launcher ends the worker alone and goes on.
        let victim = if TO_LAUNCHER.contains(name) { worker } else { launcher };
        until(&format!("{name}: its processes end"), || !shoal_harness::processes::is_running(victim));
        let rows = scene.rows(name);
        let row = rows.iter().find(|row| row["detail"]["action"] == json!("worker_lost"));
        let reason = row.unwrap_or_else(|| panic!("{name}: no row in {rows:?}"))["detail"]["reason"].to_string();
        assert!(reason.contains("broke the protocol: "), "{name}: {reason}");
        scene.calm(name);
        scene.end(name);
    }
}

#[test]
fn what_is_only_a_nuisance_disturbs_nobody() {
    let mut scene = Scene::new();
    for name in NUISANCES {
        let mut client = scene.field.session(Principal::Permissive, name);
        assert_eq!(client.render(&format!("violate {name}")), *name);
        scene.calm(name);
    }
    // One that never answers can be given up and ended.
    let mut client = scene.field.session(Principal::Permissive, "hang");
    let handed = client.ok("exec", json!({"src": "violate hang", "position": "value", "timeout_ms": 0}));
    assert!(handed["task"].is_string(), "{handed}");
    let asked = client.send("session.snapshot", json!({}));
    scene.calm("hang");
    let worker = i32::try_from(scene.pid_of("hang")).expect("a pid");
    scene.end("hang");
    assert_eq!(client.answer(asked).expect_err("it ended").code, -32051);
    until("it ends", || !shoal_harness::processes::is_running(worker));
    scene.calm("hang");
}

#[test]
fn a_ptyd_that_breaks_the_protocol_ends_its_own_session_alone() {
    let mut scene = Scene::new();
    for name in BY_PTYD {
        let session = format!("ptyd-{name}");
        eprintln!("{session}");
        let mut client = scene.field.session(Principal::Permissive, &session);
        let worker = i32::try_from(scene.pid_of(&session)).expect("a pid");
        let opened = client.ok("pty.open", json!({"cmd": "/bin/sleep", "args": ["654.5"], "cols": 80, "rows": 24}));
        let sent = client.call("pty.send", json!({"pty_id": opened["pty_id"], "input": format!("violate {name}")}));
        assert!(sent.is_err(), "{name}: {sent:?}");
        until(&format!("{name}: its processes end"), || !shoal_harness::processes::is_running(worker));
        let rows = scene.rows(&session);
        assert!(rows.iter().any(|row| row["detail"]["action"] == json!("worker_lost")), "{name}: {rows:?}");
        scene.calm(name);
        scene.end(&session);
    }
}
