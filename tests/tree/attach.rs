//! `shoal pty attach`: a person in a terminal of their own, beside an agent.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use shoal_harness::{Kernel, Place, until};

use crate::agent::Agent;

/// A person at a terminal in which `shoal` runs.
struct Person {
    child: Child,
    keys: File,
    shown: Arc<Mutex<String>>,
}

impl Person {
    fn runs(place: &Place, kernel: &Kernel, words: &[&str]) -> Self {
        let size = nix::pty::Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = nix::pty::openpty(Some(&size), None).expect("a terminal");
        let slave = || ends.slave.try_clone().expect("a descriptor");
        let mut command = place.command("setsid");
        command.arg("-c").arg(place.program("shoal")).arg("--socket").arg(kernel.socket()).args(words);
        command.env("TERM", "xterm-256color").stdin(slave()).stdout(slave()).stderr(slave());
        let child = command.spawn().expect("shoal starts");
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut screen, seen) = (File::from(ends.master.try_clone().expect("a descriptor")), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                seen.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Self { child, keys: File::from(ends.master), shown }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sees(&self, text: &str) {
        until(&format!("the person sees {text:?}"), || self.shown().contains(text));
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("typed");
    }

    /// Waits for the end of the command and what it says.
    fn leaves(mut self) -> String {
        let mut status = None;
        until("the command ends", || {
            status = self.child.try_wait().expect("our child");
            status.is_some()
        });
        assert!(status.is_some_and(|s| s.success()), "{status:?}: {}", self.shown());
        let is_said = |shown: String| shown.rsplit_once("\x1b[?1049l").is_some_and(|(_, said)| said.ends_with("\r\n"));
        until("the first screen is back, with the last word", || is_said(self.shown()));
        self.shown()
    }
}

fn rows_of(client: &mut shoal_harness::Client) -> Vec<Value> {
    let rows = client.ok("journal.query", json!({"kinds": ["pty"], "limit": 20}));
    rows.as_array().expect("rows").clone()
}

#[test]
fn a_person_takes_a_terminal_types_a_secret_and_hands_it_back() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let script = "stty -echo; printf 'Password: '; read -r secret; stty echo; echo; echo \"length ${#secret}\"; \
                  read -r more; echo \"then $more\"; read -r end";
    let pty = agent.open("sh", &["-c", script]);
    agent.see(&pty, "Password:");
    let mut person = Person::runs(&place, &kernel, &["pty", "attach", &pty, "--take"]);
    person.sees("Password:");
    let refused = agent.refused("shoal_pty_send", json!({"pty_id": pty, "input": ["mine\n"]}));
    assert_eq!((&refused["code"], &refused["data"]["reason"]), (&json!(-32010), &json!("taken")), "{refused}");
    let listed = agent.tool("shoal_pty_list", json!({}))["ptys"][0].clone();
    assert_eq!(
        (&listed["taken"], &listed["cols"], &listed["rows"]),
        (&json!(true), &json!(100), &json!(30)),
        "as large as the person's own"
    );
    person.types("hunter2!\r");
    agent.see(&pty, "length 8");
    person.sees("length 8");
    person.types("\x1d");
    let shown = person.leaves();
    assert!(shown.ends_with(&format!("detached from {pty}\r\n")), "{shown:?}");
    assert!(!shown.contains("hunter2"), "{shown:?}");
    agent.send(&pty, json!("agent\n"));
    let screen = agent.see(&pty, "then agent");
    assert_eq!((&screen["cols"], &screen["rows"]), (&json!(80), &json!(24)), "the size it had");
    let mut operator = kernel.attach("default");
    let rows = rows_of(&mut operator);
    let actions: Vec<&str> = rows.iter().filter_map(|row| row["detail"]["action"].as_str()).collect();
    assert_eq!(actions, ["release", "take", "open"], "{rows:?}");
    assert_eq!(rows[0]["detail"]["record"], json!(false));
    assert!(!format!("{rows:?}").contains("hunter2"));
    // Nowhere in the state directory either.
    let found = std::process::Command::new("grep").args(["-rqaF", "hunter2"]).arg(place.path("state")).status();
    assert_eq!(found.expect("grep runs").code(), Some(1), "the secret is stored nowhere");
}

#[test]
fn what_a_person_types_is_kept_when_they_say_so() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let pty = agent.open("sh", &["-c", "echo ready; read -r a; echo \"got $a\"; read -r end"]);
    agent.see(&pty, "ready");
    let mut person = Person::runs(&place, &kernel, &["pty", "attach", &pty, "--take", "--record"]);
    person.sees("ready");
    person.types("spoken\r");
    person.sees("got spoken");
    person.types("\x1d");
    person.leaves();
    let rows = rows_of(&mut kernel.attach("default"));
    assert_eq!(rows[0]["detail"]["typed"], json!("spoken\r"), "{rows:?}");
}

#[test]
fn a_terminal_that_is_taken_over_or_closed_keeps_what_was_to_be_recorded() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let pty = agent.open("cat", &[]);
    let (mut first, mut second) = (kernel.attach("default"), kernel.attach("default"));
    let take = json!({"pty_id": pty, "action": "take", "record": true});
    let types = |text: &str| json!({"pty_id": pty, "input": text});
    first.ok("pty.control", take.clone());
    first.ok("pty.send", types("one\n"));
    second.ok("pty.control", take);
    assert_eq!(first.err("pty.send", types("lost\n")).data["reason"], json!("taken"));
    second.ok("pty.send", types("two\n"));
    agent.tool("shoal_pty_close", json!({"pty_id": pty}));
    let rows = rows_of(&mut first);
    let typed: Vec<&str> = rows.iter().filter_map(|row| row["detail"]["typed"].as_str()).collect();
    assert_eq!(typed, ["two\n", "one\n"], "{rows:?}");
}

#[test]
fn a_person_who_watches_types_nothing_and_sees_the_end() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    // The program asks its terminal where the cursor is; the answer comes once, from the terminal host.
    let script =
        "stty raw -echo; printf 'ask\\033[6n'; head -c 6 | od -An -c; stty -raw echo; read -r a; echo \"got $a\"";
    let pty = agent.open("bash", &["-c", script]);
    agent.see(&pty, "033   [   1   ;   4   R");
    let mut person = Person::runs(&place, &kernel, &["pty", "attach", &pty]);
    person.sees("033   [   1   ;   4   R");
    assert!(!person.shown().contains("\x1b[6n"), "no query reaches the person's terminal");
    person.types("person\r");
    agent.send(&pty, json!("agent\n"));
    person.sees("got agent");
    let shown = person.leaves();
    assert!(shown.ends_with(&format!("{pty} ended with status 0\r\n")), "{shown:?}");
    assert!(!shown.contains("person"), "{shown:?}");
}

#[test]
fn a_session_is_frozen_thawed_and_killed_from_the_command_line() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "work");
    let pty = agent.open("sh", &["-c", "while read -r a; do echo \"got $a\"; done"]);
    agent.send(&pty, json!("one\n"));
    agent.see(&pty, "got one");
    let shoal = |words: &[&str]| {
        let output =
            place.shoal("shoal").arg("--socket").arg(kernel.socket()).args(words).output().expect("shoal runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(shoal(&["session", "freeze", "work"]), (Some(0), "work is frozen\n".to_owned()));
    let refused = agent.refused("shoal_exec", json!({"src": "1", "timeout_ms": 1000}));
    assert_eq!(refused["code"], json!(-32052), "{refused}");
    let (status, listed) = shoal(&["session", "list"]);
    assert!(status == Some(0) && listed.lines().any(|l| l.contains("work") && l.contains("frozen")), "{listed}");
    let (status, thawed) = shoal(&["session", "thaw", "work"]);
    assert!(status == Some(0) && thawed.starts_with("work is "), "{thawed}");
    agent.send(&pty, json!("two\n"));
    agent.see(&pty, "got two");
    let (status, shown) = shoal(&["--session", "work", "pty", "show", &pty]);
    assert!(status == Some(0) && shown.contains("got one") && shown.contains("got two"), "{shown}");
    let (status, receipt) = shoal(&["session", "kill", "work"]);
    assert!(
        status == Some(0) && receipt.contains("shoal-worker") && receipt.contains("survived: nothing"),
        "{receipt}"
    );
    let gone = agent.refused("shoal_pty_read", json!({"pty_id": pty}));
    assert!([json!(-32022), json!(-32051)].contains(&gone["code"]), "{gone}");
}
