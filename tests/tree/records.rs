//! `shoal history` and `shoal token`: the same answers from a running kernel and, without one, from its state directory.

use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use shoal_harness::{Kernel, Place};

/// Runs `shoal` on the place's kernel, or on its state directory when there is none.
fn shoal(place: &Place, words: &[&str]) -> Output {
    let mut command = place.shoal("shoal");
    command.arg("--socket").arg(place.path("run").join("k.sock")).args(words);
    command.stderr(Stdio::piped()).output().expect("shoal runs")
}

/// The same for a command that succeeds: its stdout.
fn said(place: &Place, words: &[&str]) -> String {
    let output = shoal(place, words);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

fn json_said(place: &Place, words: &[&str]) -> Value {
    serde_json::from_str(&said(place, words)).expect("JSON")
}

/// Everything that can be asked of the records, as text; the same whoever answers.
fn asked(place: &Place, id: &str) -> Vec<String> {
    let list = said(place, &["history", "--head", "echo"]);
    let failed = said(place, &["history", "query", "--status", "failed", "--kinds", "exec"]);
    let shown = json_said(place, &["history", "show", id]);
    let export = said(place, &["history", "export", "--kinds", "exec"]);
    for line in export.lines() {
        let row: Value = serde_json::from_str(line).expect("one document a line");
        assert!(row["ts_ns"].is_i64() && row["cwd"].is_string(), "{row}");
    }
    let tokens = said(place, &["token", "list"]);
    vec![list, failed, shown.to_string(), export, tokens]
}

#[test]
fn records_are_read_through_the_kernel_and_without_one_from_the_files() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "echo one"}));
    client.err("exec", json!({"src": "^false"}));
    let hash = client.ok("journal.query", json!({"head": "echo", "kinds": ["exec"]}))[0]["outputs"][0]["hash"].clone();
    let hash = hash.as_str().expect("an output");
    let id = client.ok("journal.query", json!({"head": "echo", "kinds": ["exec"]}))[0]["id"].to_string();
    let online = said(&place, &["token", "create", "agent:online", "--ttl", "3600"]);
    let running = asked(&place, &id);
    assert!(running[0].contains("  ok  echo one"), "{}", running[0]);
    assert!(running[1].contains("  failed  ^false"), "{}", running[1]);
    assert!(running[4].contains("\tagent:online\tdefault\tactive"), "{}", running[4]);
    let head = json_said(&place, &["history", "verify"])["head"].clone();
    kernel.stop();

    assert_eq!(asked(&place, &id), running, "the same without a kernel");
    let verified = json_said(&place, &["history", "verify", "--head", head.as_str().expect("a head")]);
    assert_eq!((&verified["ok"], &verified["head_found"]), (&json!(true), &json!(true)), "{verified}");
    let unknown = shoal(&place, &["history", "verify", "--head", &"0".repeat(64)]);
    assert_eq!(unknown.status.code(), Some(1), "a head that is not found fails");
    let offline = said(&place, &["token", "create", "agent:offline", "build", "--cap", "read"]);
    assert_eq!(json_said(&place, &["history", "pin", hash])["pinned"], true);
    assert_eq!(json_said(&place, &["history", "gc", "--budget", "0"])["dry_run"], true);
    assert_eq!(json_said(&place, &["history", "unpin", hash])["pinned"], false);
    let output = |place: &Place| json_said(place, &["history", "show", &id])["outputs"][0].clone();
    let kept = output(&place);
    assert_eq!((&kept["available"], &kept["aged_out"]), (&json!(true), &json!(false)), "{kept}");
    assert!(kept["stored_len"].as_u64().is_some_and(|len| len > 0), "{kept}");
    assert_eq!(json_said(&place, &["history", "gc", "--budget", "0", "--apply"])["dry_run"], false);
    let gone = output(&place);
    assert_eq!(
        (&gone["available"], &gone["aged_out"], &gone["stored_len"]),
        (&json!(false), &json!(true), &json!(null))
    );
    let listed = json_said(&place, &["--json", "token", "list"]);
    let of_online = listed["tokens"].as_array().expect("tokens").iter().find(|t| t["principal"] == "agent:online");
    let revoked = of_online.expect("listed")["id"].as_str().expect("an id").to_owned();
    said(&place, &["token", "revoke", &revoked]);
    let nobody = shoal(&place, &["token", "revoke", "0123456789abcdef"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert_eq!(shoal(&place, &["history", "show", "999999"]).status.code(), Some(1));

    // A kernel goes on from there: the chain holds, the tokens count, every change is a row.
    let kernel = Kernel::start(&place);
    let mut human = kernel.attach("default");
    assert_eq!(human.ok("journal.verify", json!({}))["ok"], true);
    let admin = human.ok("journal.query", json!({"kinds": ["admin"]}));
    let methods: Vec<&str> =
        admin.as_array().expect("rows").iter().rev().filter_map(|row| row["detail"]["method"].as_str()).collect();
    let expected =
        ["token.create", "token.create", "journal.pin", "journal.gc", "journal.unpin", "journal.gc", "token.revoke"];
    assert_eq!(methods, expected, "{admin}");
    let attach =
        |bearer: &str| kernel.connect().call("session.attach", json!({"session": "s", "token": bearer.trim()}));
    assert_eq!(attach(&online).expect_err("revoked").data["reason"], "revoked");
    let told = attach(&offline);
    // Known, though the built-in policy has no section for it.
    assert!(told.as_ref().map_or_else(|e| e.code != -32030, |told| told["principal"] == "agent:offline"), "{told:?}");
}

#[test]
fn a_state_directory_in_use_is_left_alone() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    kernel.attach("default").value("1");
    // Another socket leads to nobody; the lock says that somebody is there, and the records are asked of it.
    let elsewhere = place.path("run").join("none.sock");
    let mut command = place.shoal("shoal");
    let output = command.arg("--socket").arg(elsewhere).args(["history", "verify"]).stderr(Stdio::piped()).output();
    let output = output.expect("shoal runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let served = output.status.success() && text.contains("\"ok\": true");
    let refused = String::from_utf8_lossy(&output.stderr).contains("in use by a kernel");
    assert!(served || refused, "{output:?}");
    drop(kernel);
    let empty = Place::new();
    let output = shoal(&empty, &["history"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no journal in"), "{output:?}");
    // A token can be made before the first kernel is started.
    let bearer = said(&empty, &["token", "create", "agent:early"]);
    let kernel = Kernel::start(&empty);
    let listed = kernel.attach("default").ok("token.list", json!({}));
    assert_eq!(listed["tokens"][0]["principal"], "agent:early", "{listed}");
    assert_eq!(bearer.trim().len(), 43);
}

#[test]
fn followed_rows_come_as_they_close() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("events.subscribe", json!({"channel": "session"}));
    let mut command = place.shoal("shoal");
    command.arg("--socket").arg(kernel.socket()).args(["--json", "history", "follow"]);
    let mut following = command.stdout(Stdio::piped()).spawn().expect("shoal runs");
    let mut lines = BufReader::new(following.stdout.take().expect("piped")).lines();
    // It subscribes at some time of its own: rows are made until it shows one.
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let line = lines.next().expect("a line").expect("text");
        tell.send(line).expect("waited for");
    });
    let mut shown = None;
    shoal_harness::until("a followed row", || {
        client.ok("exec", json!({"src": "echo followed"}));
        shown = told.try_recv().ok();
        shown.is_some()
    });
    reader.join().expect("read");
    let row: Value = serde_json::from_str(&shown.expect("a row")).expect("JSON");
    assert_eq!((&row["src"], &row["ok"]), (&json!("echo followed"), &json!(true)), "{row}");
    following.kill().expect("ended");
    following.wait().expect("reaped");
}

#[test]
fn file_changes_are_undone_in_their_session_and_only_below_the_root() {
    let place = Place::new();
    let file = place.write("d/a.txt", "before");
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "'after'.save('d/a.txt')"}));
    let id = client.ok("journal.query", json!({"kinds": ["exec"], "limit": 1}))[0]["id"].to_string();
    let text = || std::fs::read_to_string(&file).expect("there");
    assert_eq!(text(), "after");
    let elsewhere = place.path("home").display().to_string();
    let refused = shoal(&place, &["history", "undo", &id, "--root", &elsewhere]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("outside"), "{refused:?}");
    assert_eq!(text(), "after");
    let root = place.work().display().to_string();
    let undone = said(&place, &["history", "undo", &id, "--root", &root]);
    assert!(undone.contains("restored"), "{undone}");
    assert_eq!(text(), "before");
    assert!(said(&place, &["history", "undo", &id, "--root", &root]).contains("already"));
    // What was changed since is newer than what would be undone.
    client.ok("exec", json!({"src": "'again'.save('d/a.txt')"}));
    let id = client.ok("journal.query", json!({"kinds": ["exec"], "limit": 1}))[0]["id"].to_string();
    place.write("d/a.txt", "newer");
    let stale = shoal(&place, &["history", "undo", &id, "--root", &root]);
    assert!(String::from_utf8_lossy(&stale.stderr).contains("has changed since"), "{stale:?}");
    assert_eq!(text(), "newer");
}
