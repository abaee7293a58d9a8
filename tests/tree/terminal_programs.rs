//! Programs that need a terminal, driven to their end by an agent through its tools.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use nix::unistd::Uid;
use serde_json::json;
use shoal_harness::{Kernel, Place};

use crate::agent::Agent;

const OK: &str = r#"{"status":0,"signal":null}"#;

fn has_ended_well(agent: &mut Agent, pty: &str) {
    let exit = agent.ended(pty);
    assert_eq!(exit, serde_json::from_str::<serde_json::Value>(OK).expect("JSON"), "{pty}");
    let closed = agent.tool("shoal_pty_close", json!({"pty_id": pty}));
    assert_eq!(closed["closed"], json!(true));
}

#[test]
fn vim_edits_a_file() {
    let place = Place::new();
    place.write("note.txt", "one\ntwo\n");
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let pty = agent.open("vim", &["-u", "NONE", "-i", "NONE", "-n", "note.txt"]);
    agent.see(&pty, "two\n~");
    agent.send(&pty, json!([{"key": "Down"}, "Athree", {"key": "Escape"}]));
    agent.see(&pty, "twothree\n~");
    agent.send(&pty, json!([":wq", {"key": "Enter"}]));
    has_ended_well(&mut agent, &pty);
    assert_eq!(std::fs::read_to_string(place.work().join("note.txt")).expect("written"), "one\ntwothree\n");
}

#[test]
fn less_finds_a_line_and_goes_to_the_end() {
    let place = Place::new();
    let lines: String = (1..=2000).map(|n| format!("line {n}\n")).collect();
    place.write("long.txt", lines);
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let pty = agent.open("less", &["long.txt"]);
    agent.see(&pty, "line 23\n");
    agent.send(&pty, json!({"key": "PageDown"}));
    agent.see(&pty, "line 46\n");
    agent.send(&pty, json!(["/line 1234", {"key": "Enter"}]));
    agent.see(&pty, "line 1234\nline 1235");
    agent.send(&pty, json!("G"));
    agent.see(&pty, "line 2000\n");
    agent.send(&pty, json!("q"));
    has_ended_well(&mut agent, &pty);
}

#[test]
fn top_shows_the_session_and_quits() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let pty = agent.open("top", &["-d", "0.5"]);
    agent.see(&pty, "COMMAND");
    let screen = agent.read(&pty, json!({"regex": r"(?m)^\s*1\s.*shoal-l"}));
    assert_eq!(screen["matched"], json!("regex"), "pid 1 of the jail: {screen:#}");
    agent.send(&pty, json!("q"));
    has_ended_well(&mut agent, &pty);
}

#[test]
fn python_answers_and_ends_at_the_end_of_input() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let pty = agent.open("/usr/bin/python3", &["-q"]);
    agent.see(&pty, ">>> ");
    agent.send(&pty, json!(["def f(n):", {"key": "Enter"}, "    return n * 7", {"key": "Enter"}, {"key": "Enter"}]));
    agent.see(&pty, "...\n>>> ");
    agent.send(&pty, json!(["f(6)", {"key": "Enter"}]));
    agent.see(&pty, "42\n>>> ");
    agent.send(&pty, json!({"key": "Ctrl-D"}));
    has_ended_well(&mut agent, &pty);
}

#[test]
fn git_adds_one_of_two_hunks() {
    let place = Place::new();
    let before: String = (1..=30).map(|n| format!("{n}\n")).collect();
    place.write("f.txt", &before);
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    agent.exec("sh { git init -q . && git add f.txt && git -c user.name=n -c user.email=e@x commit -qm base }");
    place.write("f.txt", before.replacen("1\n", "first\n", 1).replace("30\n", "last\n"));
    let pty = agent.open("git", &["add", "-p"]);
    agent.see(&pty, "(1/2) Stage this hunk");
    agent.send(&pty, json!(["n", {"key": "Enter"}]));
    agent.see(&pty, "(2/2) Stage this hunk");
    agent.send(&pty, json!(["y", {"key": "Enter"}]));
    has_ended_well(&mut agent, &pty);
    let staged = agent.exec("sh { git diff --cached }")["value"]["out"]["v"].to_string();
    assert!(staged.contains("+last") && !staged.contains("+first"), "{staged}");
}

#[test]
fn fzf_narrows_and_picks() {
    let place = Place::new();
    place.write("fruit", "apple\nbanana\ncherry\nbanknote\n");
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let pty = agent.open("sh", &["-c", "fzf < fruit > picked"]);
    agent.see(&pty, "4/4");
    agent.send(&pty, json!("ban"));
    agent.see(&pty, "2/4");
    agent.send(&pty, json!([{"key": "Up"}, {"key": "Enter"}]));
    has_ended_well(&mut agent, &pty);
    let picked = std::fs::read_to_string(place.work().join("picked")).expect("written");
    assert!(["banana\n", "banknote\n"].contains(&picked.as_str()), "{picked}");
}

/// An SSH server that knows one password, on a port of the loopback interface that it chose.
struct SshServer {
    child: Child,
    port: String,
}

impl SshServer {
    fn start(place: &Place) -> Self {
        let venv = std::env::var("SHOAL_TEST_VENV").expect("SHOAL_TEST_VENV names the clients' venv: run tests/run");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../tree/ssh_server.py");
        let mut server = std::process::Command::new(format!("{venv}/bin/python"));
        server.arg(script).current_dir(place.work()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = server.spawn().expect("python starts");
        let mut port = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut port).expect("the server says its port");
        assert!(!port.is_empty(), "the server did not start: is asyncssh installed in {venv}?");
        Self { child, port: port.trim().to_owned() }
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        if let Err(e) = self.child.kill().and_then(|()| self.child.wait().map(drop)) {
            eprintln!("cannot end the server: {e}");
        }
    }
}

#[test]
fn ssh_asks_for_a_password_that_is_not_shown() {
    // ssh serves users that the system knows, which the fresh user of a test run by root is not.
    let place = if Uid::effective().is_root() { Place::of_root() } else { Place::new() };
    let server = SshServer::start(&place);
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let known = format!("UserKnownHostsFile={}", place.work().join("known").display());
    let options = ["-F", "none", "-o", &known, "-o", "PreferredAuthentications=password", "-p", &server.port];
    let words: Vec<&str> = options.into_iter().chain(["tester@127.0.0.1", "anything"]).collect();
    let pty = agent.open("ssh", &words);
    agent.see(&pty, "(yes/no/[fingerprint])?");
    agent.send(&pty, json!(["yes", {"key": "Enter"}]));
    agent.see(&pty, "tester@127.0.0.1's password:");
    agent.send(&pty, json!(["wrong", {"key": "Enter"}]));
    agent.see(&pty, "Permission denied, please try again.");
    agent.send(&pty, json!(["open sesame", {"key": "Enter"}]));
    let screen = agent.see(&pty, "welcome, tester");
    assert!(!screen.to_string().contains("sesame"), "{screen}");
    has_ended_well(&mut agent, &pty);
}
