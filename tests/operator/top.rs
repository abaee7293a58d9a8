//! `shoal top` driven on a terminal.

use serde_json::json;
use shoal_harness::{Kernel, Place, Terminal, until};
use shoal_sys::process::Exit;

/// An agent that has to ask.
const POLICY: &str = include_str!("asking.toml");

fn top(place: &Place, size: (u16, u16), env: &[(&str, &str)]) -> Terminal {
    let terminal = Terminal::start(place, "shoal", &["top"], size, env);
    terminal.see("processes");
    terminal
}

fn quit(mut terminal: Terminal) {
    terminal.type_text("q");
    assert_eq!(terminal.end(), Exit::Code(0));
    // What it wrote last may still be on its way to the screen.
    until("the screen before and the cursor are back", || {
        terminal.with_screen(|screen| !screen.alternate_screen() && !screen.hide_cursor())
    });
}

/// A kernel with an agent's session whose plan waits for a decision.
fn with_a_plan(place: &Place) -> (Kernel, shoal_harness::Client, String) {
    let policy = place.write("leash.toml", POLICY);
    let kernel = Kernel::start_with(place, |command| {
        command.arg("--policy").arg(policy);
    });
    let mut human = kernel.attach("default");
    let made = human.ok("token.create", json!({"principal": "agent:docs"}));
    let mut agent = kernel.connect();
    agent.ok("session.attach", json!({"session": "docs", "token": made["token"], "client": {"kind": "mcp"}}));
    let plan = agent.ok("exec", json!({"src": "sh { echo tidy }", "mode": "plan"}));
    let reference = plan["plan_ref"].as_str().expect("a plan").to_owned();
    agent.ok("cap.request", json!({"plan_ref": reference}));
    (kernel, agent, reference)
}

#[test]
fn sessions_tasks_and_terminals_are_seen_as_they_come() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let terminal = top(&place, (140, 40), &[]);
    terminal.see("sessions 0");
    let _other = kernel.attach("default");
    terminal.see("/default");
    let mut client = kernel.attach("work");
    terminal.see("/work");
    client.ok("exec", json!({"src": "sh { echo working; sleep 1000 }", "async": true}));
    client.ok("pty.open", json!({"cmd": "cat", "args": []}));
    // The second session is the other row.
    terminal.type_text("\x1b[B");
    let screen = terminal.see("tasks and terminals of work");
    assert!(screen.contains("worker") && screen.contains("supervisor"), "{screen}");
    let screen = terminal.see("cat");
    assert!(screen.contains("task:") && screen.contains("sleep 1000") && screen.contains("busy"), "{screen}");
    // Rates: three events of the session channel came at least.
    terminal.see_that("a rate", |screen| screen.contains("events/s") && !screen.contains("session 0.0"));
    // Cancel the task from the keyboard.
    terminal.type_text("\t");
    terminal.type_text("k");
    terminal.see("cancel task:");
    terminal.type_text("y");
    terminal.see("cancelled");
    until("the command is gone", || kernel.pids_of("sleep").is_empty());
    quit(terminal);
}

#[test]
fn a_session_is_frozen_thawed_and_killed() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "sleep 1000s", "async": true}));
    let terminal = top(&place, (100, 30), &[]);
    terminal.see("busy");
    terminal.type_text("f");
    terminal.see("default is frozen");
    terminal.type_text("f");
    terminal.see_gone("frozen");
    terminal.type_text("k");
    terminal.see("kill session default");
    terminal.type_text("n");
    terminal.see("nothing done");
    terminal.type_text("k");
    terminal.see("kill session default");
    terminal.type_text("y");
    terminal.see("0 survived");
    terminal.see("sessions 0");
    quit(terminal);
}

#[test]
fn a_plan_is_read_and_approved() {
    let place = Place::new();
    let (kernel, mut agent, reference) = with_a_plan(&place);
    let terminal = top(&place, (120, 40), &[]);
    terminal.see("approvals (1 wait)");
    terminal.see("agent:docs");
    terminal.type_text("a");
    terminal.see("select the plan");
    terminal.type_text("a");
    let screen = terminal.see("y: yes");
    assert!(screen.contains("echo tidy"), "the source is shown before the decision:\n{screen}");
    terminal.type_text("y");
    terminal.see("approved");
    terminal.see("approvals (0 wait)");
    let applied = agent.ok("plan.apply", json!({"plan_ref": reference}));
    assert_eq!(applied["value"]["ok"], json!(true), "{applied}");
    quit(terminal);
    drop(kernel);
}

#[test]
fn sessions_of_others_are_looked_into_only_when_asked() {
    let place = Place::new();
    let (kernel, agent, _) = with_a_plan(&place);
    let mut human = kernel.attach("default");
    human.ok("exec", json!({"src": "sh { sleep 633.2 }", "async": true}));
    let terminal = top(&place, (140, 40), &[]);
    terminal.see("/docs");
    // The first row is the own session, which was made first.
    terminal.type_text("\x1b[B");
    terminal.see("not yours");
    let rows_of = |human: &mut shoal_harness::Client| {
        let rows = human.ok("journal.query", json!({"kinds": ["session"], "session": "docs"}));
        rows.as_array().expect("rows").iter().filter(|row| row["detail"]["action"] == json!("attached")).count()
    };
    assert_eq!(rows_of(&mut human), 0);
    terminal.type_text("\r");
    terminal.see_gone("not yours");
    until("the attachment is on record", || rows_of(&mut human) == 1);
    // One attachment, whatever is looked at meanwhile.
    for _ in 0..2 {
        terminal.type_text("\x1b[A");
        terminal.see("633.2");
        terminal.type_text("\x1b[B");
        terminal.see_gone("633.2");
    }
    assert_eq!(rows_of(&mut human), 1);
    drop(agent);
    quit(terminal);
    drop(kernel);
}

#[test]
fn a_small_terminal_and_no_colour_work_too() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let _session = kernel.attach("default");
    let terminal = top(&place, (80, 24), &[("NO_COLOR", "1")]);
    terminal.see("/default");
    terminal.with_screen(|screen| {
        let (rows, cols) = screen.size();
        for row in 0..rows.get() {
            for col in 0..cols.get() {
                let cell = screen.cell(row, col).expect("inside");
                assert_eq!(cell.fgcolor(), vt100::Color::Default, "row {row}, column {col}");
            }
        }
    });
    terminal.type_text("?");
    terminal.see("freeze or thaw");
    terminal.type_text("\x1b");
    terminal.see_gone("freeze or thaw");
    quit(terminal);
    drop(kernel);
}

#[test]
fn the_kernel_may_be_replaced_or_absent() {
    let place = Place::new();
    let output = place.shoal("shoal").arg("top").output().expect("runs");
    assert_eq!(output.status.code(), Some(2), "no terminal");
    let kernel = Kernel::start(&place);
    let _session = kernel.attach("default");
    let terminal = top(&place, (100, 30), &[]);
    terminal.see("/default");
    let broker = kernel.pids_of("shoal-broker")[0];
    shoal_harness::processes::signal(broker, nix::sys::signal::Signal::SIGKILL);
    terminal.see("connected to the kernel again");
    quit(terminal);
    assert!(kernel.stop().success());
    let mut terminal = Terminal::start(&place, "shoal", &["top"], (100, 30), &[]);
    assert_eq!(terminal.end(), Exit::Code(1));
    let screen = terminal.screen();
    assert!(screen.contains("shoal kernel start"), "{screen}");
}
