//! A kernel whose state directory is full: new work is refused before it runs, everything else goes on, and room is enough for
//! work to go on without a restart.

use serde_json::json;
use shoal_harness::mounts::{Disk, own};
use shoal_harness::{Kernel, Place};

#[test]
fn a_full_state_directory_refuses_new_work_and_nothing_else() {
    if !own("faults::a_full_state_directory_refuses_new_work_and_nothing_else") {
        return;
    }
    let place = Place::new();
    let disk = Disk::over(&place.path("state"), 100, &format!(",uid={0},gid={0}", place.uid()));
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let mut watcher = kernel.attach("default");
    watcher.ok("events.subscribe", json!({"channel": "kernel"}));
    let running = client.ok("exec", json!({"src": "sleep 60", "async": true}))["task"].clone();
    client.value("1");
    let ballast = disk.fill();
    let mark = place.work().join("ran");
    let refused = (0..50).find_map(|n| {
        let src = format!("'x'.save('ran')\n# {n} {}", "y".repeat(20_000));
        client.call("exec", json!({"src": src, "position": "value"})).err()
    });
    let refused = refused.expect("a full disk is met");
    assert_eq!(
        (refused.code, refused.data["detail"].as_str()),
        (-32041, Some("no space left on device")),
        "{refused:?}"
    );
    if mark.exists() {
        std::fs::remove_file(&mark).expect("made before the disk was full");
    }
    // Nothing ran, and what needs no new row answers; running work ends and closes its row.
    assert_eq!(client.err("exec", json!({"src": "'x'.save('ran')"})).code, -32041);
    assert!(!mark.exists(), "refused work runs nothing");
    assert_eq!(client.ok("task.list", json!({}))[0]["task"], running);
    assert!(client.ok("journal.query", json!({"limit": 1})).is_array());
    let cancelled = client.ok("task.cancel", json!({"task": running}));
    assert_eq!(cancelled["state"], "cancelled", "{cancelled}");
    std::fs::remove_file(ballast).expect("room");
    let mut actions = Vec::new();
    while !actions.iter().any(|action| action == "journal_recovered") {
        let push = watcher.frame().expect("an event");
        actions.push(push["params"]["payload"]["v"]["action"]["v"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(actions, ["journal_unavailable", "journal_recovered"]);
    assert_eq!(client.render("6 * 7"), "42");
    assert_eq!(client.ok("journal.verify", json!({}))["ok"], json!(true));
    let row = client.ok("journal.query", json!({"head": "sleep", "kinds": ["exec"]}))[0].clone();
    assert_eq!((&row["ok"], &row["ended"]), (&json!(false), &json!("cancelled")), "{row}");
    drop(kernel);
}
