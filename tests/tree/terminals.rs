//! Terminals over the public socket: real programs driven to their end, and what survives the death of which process.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place, processes, until};

fn open(client: &mut Client, cmd: &str, args: &[&str]) -> String {
    let opened = client.ok("pty.open", json!({"cmd": cmd, "args": args, "cols": 80, "rows": 12}));
    assert_eq!((opened["alive"].clone(), opened["cols"].clone()), (json!(true), json!(80)), "{opened}");
    opened["pty_id"].as_str().expect("an id").to_owned()
}

fn sh(client: &mut Client, script: &str) -> String {
    open(client, "sh", &["-c", script])
}

fn send(client: &mut Client, pty: &str, input: Value) {
    let sent = client.ok("pty.send", json!({"pty_id": pty, "input": input}));
    assert_eq!(sent["complete"], json!(true), "{sent}");
}

fn read(client: &mut Client, pty: &str, mut wait: Value) -> Value {
    wait["timeout_ms"] = json!(30_000);
    client.ok("pty.read", json!({"pty_id": pty, "wait": wait}))
}

fn see(client: &mut Client, pty: &str, text: &str) -> Value {
    let screen = read(client, pty, json!({"text": text}));
    assert_eq!(screen["matched"], json!("text"), "{text:?} never came: {screen}");
    screen
}

fn rows(screen: &Value) -> Vec<&str> {
    let rows = screen["screen"].as_array().expect("rows");
    rows.iter().filter_map(Value::as_str).filter(|row| !row.is_empty()).collect()
}

#[test]
fn a_python_session_from_the_first_prompt_to_the_last_screen() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let pty = open(&mut client, "/usr/bin/python3", &["-q"]);
    see(&mut client, &pty, ">>> ");
    send(&mut client, &pty, json!(["print(6 * 7)", {"key": "Enter"}]));
    let screen = see(&mut client, &pty, "\n42\n>>> ");
    assert_eq!(rows(&screen), [">>> print(6 * 7)", "42", ">>>"]);
    assert_eq!(screen["cursor"], json!({"row": 2, "col": 4, "hidden": false}));
    assert_eq!(screen["screen"].as_array().map(Vec::len), Some(12));
    send(&mut client, &pty, json!({"key": "Ctrl-D"}));
    let ended = read(&mut client, &pty, json!({"exit": true}));
    assert_eq!((ended["matched"].clone(), ended["alive"].clone()), (json!("exit"), json!(false)), "{ended}");
    assert_eq!(ended["exit"], json!({"status": 0, "signal": null}));
    assert!(rows(&ended).contains(&"42"), "the last screen stays");
    let listed = client.ok("pty.list", json!({}));
    assert_eq!((listed["ptys"][0]["id"].clone(), listed["ptys"][0]["alive"].clone()), (json!(pty), json!(false)));
    let closed = client.ok("pty.close", json!({"pty_id": pty}));
    assert_eq!(closed["exit"], json!({"status": 0, "signal": null}), "its own end: {closed}");
    assert_eq!(client.err("pty.read", json!({"pty_id": pty})).code, -32022);
}

#[test]
fn an_editor_writes_a_file_of_the_session() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let pty = open(&mut client, "vim", &["-u", "NONE", "-i", "NONE", "-n", "note.txt"]);
    see(&mut client, &pty, "~\n~");
    send(&mut client, &pty, json!(["ihello", {"key": "Escape"}]));
    see(&mut client, &pty, "hello\n~");
    send(&mut client, &pty, json!([":wq", {"key": "Enter"}]));
    read(&mut client, &pty, json!({"exit": true}));
    assert_eq!(std::fs::read_to_string(place.work().join("note.txt")).expect("written"), "hello\n");
}

#[test]
fn input_is_refused_whole_or_arrives_whole() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let line = sh(&mut client, "echo ready; read -r line; echo \"got ${#line}\"");
    see(&mut client, &line, "ready");
    let long = format!("{}\n", "x".repeat(6000));
    let refused = client.err("pty.send", json!({"pty_id": line, "input": long}));
    assert_eq!((refused.code, refused.data["reason"].as_str()), (-32602, Some("line_too_long")), "{refused:?}");
    assert_eq!(refused.data["max"], json!(4095));
    let refused = client.err("pty.send", json!({"pty_id": line, "input": ["abc", {"key": "Entre"}]}));
    assert_eq!(refused.code, -32602, "{refused:?}");
    send(&mut client, &line, json!("short\n"));
    see(&mut client, &line, "got 5");
    let raw = sh(&mut client, "stty raw -echo; printf ready; head -c 200000 | wc -c");
    see(&mut client, &raw, "ready");
    send(&mut client, &raw, json!("z".repeat(200_000)));
    see(&mut client, &raw, "200000");
}

#[test]
fn a_size_and_its_change_reach_the_program() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let pty = sh(&mut client, "stty size; read a; stty size; read b");
    see(&mut client, &pty, "12 80");
    let resized = client.ok("pty.resize", json!({"pty_id": pty, "cols": 5000, "rows": 20}));
    assert_eq!((resized["cols"].clone(), resized["rows"].clone()), (json!(1000), json!(20)));
    send(&mut client, &pty, json!("\n"));
    let screen = see(&mut client, &pty, "20 1000");
    assert_eq!((screen["cols"].clone(), screen["rows"].clone()), (json!(1000), json!(20)));
}

#[test]
fn a_terminal_host_that_dies_costs_the_screen_alone() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let pty = sh(&mut client, "echo shown; while read -r word; do echo \"got $word\"; done");
    see(&mut client, &pty, "shown");
    let host = kernel.pids_of("shoal-ptyd")[0];
    processes::signal(host, Signal::SIGKILL);
    until("the terminal host is replaced", || kernel.pids_of("shoal-ptyd").iter().any(|pid| *pid != host));
    let mut typed = Err(());
    until("the terminal answers", || {
        typed = client.call("pty.send", json!({"pty_id": pty, "input": "word\n"})).map_err(|_restarting| ());
        typed.is_ok()
    });
    let screen = see(&mut client, &pty, "got word");
    assert_eq!(screen["reset"], json!(true), "{screen}");
    assert!(!rows(&screen).contains(&"shown"));
    assert_eq!(client.ok("pty.read", json!({"pty_id": pty})).get("reset"), None, "said once");
}

#[test]
fn a_broker_that_dies_costs_no_terminal() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let pty = sh(&mut client, "echo shown; while read -r word; do echo \"got $word\"; done");
    see(&mut client, &pty, "shown");
    let broker = kernel.pids_of("shoal-broker")[0];
    processes::signal(broker, Signal::SIGKILL);
    until("the broker is replaced", || kernel.pids_of("shoal-broker").iter().any(|pid| *pid != broker));
    let mut client = kernel.attach("default");
    send(&mut client, &pty, json!("word\n"));
    let screen = see(&mut client, &pty, "got word");
    assert!(rows(&screen).contains(&"shown"), "{screen}");
}

#[test]
fn a_flood_on_a_terminal_leaves_other_calls_alone() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let flood = open(&mut client, "yes", &["FLOOD"]);
    see(&mut client, &flood, "FLOOD\nFLOOD");
    let quiet = sh(&mut client, "read -r a; echo \"got $a\"");
    send(&mut client, &quiet, json!("word\n"));
    see(&mut client, &quiet, "got word");
    let mut other = kernel.attach("other");
    assert_eq!(other.render("6 * 7"), "42");
    let closed = client.ok("pty.close", json!({"pty_id": flood}));
    assert_eq!(closed["exit"], json!({"status": null, "signal": "SIGKILL"}), "{closed}");
}
