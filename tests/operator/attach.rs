//! `shoal attach` driven on a terminal.

use serde_json::json;
use shoal_harness::{Kernel, Place, Terminal, until};
use shoal_sys::process::Exit;

fn attach(place: &Place, args: &[&str]) -> Terminal {
    let words: Vec<&str> = std::iter::once("attach").chain(args.iter().copied()).collect();
    Terminal::start(place, "shoal", &words, (100, 30), &[])
}

fn leave(mut terminal: Terminal) {
    terminal.type_text("exit\r");
    terminal.see("left ");
    assert_eq!(terminal.end(), Exit::Code(0));
}

#[test]
fn a_session_is_worked_in_and_left_as_it_is() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let terminal = attach(&place, &["work"]);
    terminal.see("new session work");
    terminal.see("work> ");
    terminal.type_text("let answer = 6 * 7\r");
    terminal.see_that("a second prompt", |screen| screen.matches("work> ").count() == 2);
    terminal.type_text("answer + 1\r");
    terminal.see_row("43");
    terminal.type_text("mkdir sub; cd sub\r");
    terminal.see("sub> ");
    // A mistake is said with its hint, and the sign of the prompt tells.
    terminal.type_text("^false\r");
    terminal.see("! ");
    // An open bracket asks for more.
    terminal.type_text("[1,\r");
    terminal.see("... ");
    terminal.type_text("2].len()\r");
    terminal.see_row("2");
    leave(terminal);
    // The bindings and the directory are the session's, and a second prompt finds the lines of the first.
    let mut client = kernel.attach("work");
    assert_eq!(client.render("answer"), "42");
    let terminal = attach(&place, &["work"]);
    terminal.see("sub> ");
    // The newest is what the client ran; the one before it is the last line of the prompt.
    terminal.type_text("\x1b[A");
    terminal.see("sub> answer");
    terminal.type_text("\x1b[A");
    terminal.see("2].len()");
    terminal.type_text("\x03");
    terminal.see_that("a fresh prompt", |screen| screen.trim_end().ends_with("sub>"));
    leave(terminal);
}

#[test]
fn names_of_the_session_are_completed() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("work");
    client.ok("exec", json!({"src": "let unmistakable = 99"}));
    let terminal = attach(&place, &["work"]);
    terminal.see("> ");
    terminal.type_text("unmis\t");
    terminal.see("> unmistakable");
    terminal.type_text(" + 1\r");
    terminal.see_row("100");
    leave(terminal);
}

#[test]
fn output_comes_live_and_ctrl_c_cancels() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let terminal = attach(&place, &["work"]);
    terminal.see("> ");
    terminal.type_text("sh { echo first; sleep 1000; echo second }\r");
    terminal.see_row("first");
    assert!(!kernel.pids_of("sleep").is_empty());
    terminal.type_text("\x03");
    terminal.see("cancelling task:");
    terminal.see("! ");
    until("the command is gone", || kernel.pids_of("sleep").is_empty());
    let screen = terminal.screen();
    assert!(!screen.contains("\nsecond\n"), "{screen}");
    terminal.type_text("1 + 1\r");
    terminal.see_row("2");
    leave(terminal);
}

#[test]
fn ctrl_z_leaves_a_run_going_and_its_end_is_announced() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let terminal = attach(&place, &["work"]);
    terminal.see("> ");
    terminal.type_text("sh { echo begun; while ! test -e go; do sleep 0.05; done }\r");
    terminal.see_row("begun");
    terminal.type_text("\x1a");
    terminal.see("goes on");
    terminal.type_text("2 + 3\r");
    terminal.see_row("5");
    place.write("go", "");
    terminal.see(" ended; its result");
    leave(terminal);
    drop(kernel);
}

#[test]
fn what_others_do_is_told_escaped_and_nothing_steers_the_terminal() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let terminal = attach(&place, &["work"]);
    terminal.see("> ");
    terminal.type_text("\"a\\u{1b}[31mred\"\r");
    terminal.see("\\u{1b}[31mred");
    let mut other = kernel.attach("work");
    let opened = other.ok("pty.open", json!({"cmd": "cat", "args": []}));
    terminal.see(&format!("terminal {} opened", opened["pty_id"].as_str().expect("an id")));
    other.ok("session.freeze", json!({"session": "work"}));
    terminal.see("-- session frozen");
    other.ok("session.thaw", json!({"session": "work"}));
    terminal.see("-- session thawed");
    leave(terminal);
}

#[test]
fn a_killed_session_is_told_within_a_line() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let terminal = attach(&place, &["work"]);
    terminal.see("> ");
    terminal.type_text("sh { echo begun; sleep 1000 }\r");
    terminal.see_row("begun");
    let mut other = kernel.attach("other");
    let receipt = other.ok("session.kill", json!({"session": "work", "reason": "enough"}));
    assert_eq!(receipt["survived"], json!([]));
    // The waiting line ends with the reason, and so does the prompt: there is nothing left to work in.
    terminal.see("killed");
    terminal.see("shoal attach work");
    let mut terminal = terminal;
    assert_eq!(terminal.end(), Exit::Code(1));
}

#[test]
fn without_a_terminal_the_next_command_is_named() {
    let place = Place::new();
    let output = place.shoal("shoal").arg("attach").output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(text.contains("shoal exec"), "{text}");
}
