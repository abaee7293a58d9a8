//! Commands and tasks as an agent runs them: nothing hangs, nothing survives, and what ended is proved.

use nix::sys::signal::Signal;
use serde_json::json;
use shoal_harness::{Kernel, Place, processes, until};

use crate::agent::Agent;

/// Host pids whose command line holds all of these words.
pub(crate) fn running(words: &str) -> Vec<i32> {
    let line = |pid: i32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_it = |pid: &i32| String::from_utf8_lossy(&line(*pid)).replace('\0', " ").trim_end() == words;
    processes::all().into_iter().map(|p| p.pid).filter(is_it).collect()
}

#[test]
fn a_descendant_that_stays_delays_nothing_and_ends_with_its_session() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let answer = agent.tool("shoal_exec", json!({"src": "sh { sleep 3107.01 & echo done }", "timeout_ms": 3000}));
    assert_eq!(answer["value"]["out"], json!({"$": "str", "v": "done"}), "{answer}");
    assert_eq!((&answer["value"]["status"], &answer["held_by"]), (&json!(0), &json!(1)), "{answer}");
    assert_eq!(running("sleep 3107.01").len(), 1);
    kernel.connect().attach("operator");
    let killed = kernel.attach("operator").ok("session.kill", json!({"session": "default"}));
    assert_eq!(killed["survived"], json!([]), "{killed}");
    until("the descendant is gone", || running("sleep 3107.01").is_empty());
}

#[test]
fn what_ignores_int_and_term_is_killed_and_the_record_says_so() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let task = agent.start("sh { trap '' TERM; (trap '' TERM; sleep 6321.1) & sleep 6322.2 }");
    until("both sleep", || running("sleep 6321.1").len() + running("sleep 6322.2").len() == 2);
    let uri = format!("shoal://task/{}", task.trim_start_matches("task:"));
    assert_eq!(agent.resource(&uri)["controls"]["active_process_groups"], json!(1));
    let cancelled = agent.tool("shoal_cancel", json!({"task": task}));
    assert_eq!(cancelled["receipt"]["escalated"], json!("kill"), "{cancelled}");
    assert_eq!(cancelled["receipt"]["survived"], json!([]), "{cancelled}");
    assert!(running("sleep 6321.1").is_empty() && running("sleep 6322.2").is_empty());
    assert_eq!(cancelled["state"], json!("cancelled"));
    let record = agent.resource(&uri);
    assert_eq!(record["controls"]["active_process_groups"], json!(0));
    assert_eq!((&record["state"], &record["receipt"]), (&json!("cancelled"), &cancelled["receipt"]), "{record}");
    let again = agent.tool("shoal_cancel", json!({"task": task}));
    assert_eq!((&again["already_ended"], &again["receipt"]), (&json!(true), &cancelled["receipt"]), "{again}");
}

#[test]
fn a_worker_that_is_shot_costs_its_own_session_alone() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let task = agent.start("sh { sleep 6331.1 }");
    until("it sleeps", || !running("sleep 6331.1").is_empty());
    let worker = kernel.pids_of("shoal-worker")[0];
    let mut other = Agent::of(&place, &kernel, "other");
    let kept = other.start("sh { sleep 6332.2 }");
    other.exec("let mine = 41");
    processes::signal(worker, Signal::SIGKILL);
    assert_eq!(other.exec("mine + 1")["value"]["v"], json!(42), "the other session goes on");
    until("the command of the lost worker ends", || running("sleep 6331.1").is_empty());
    let uri = format!("shoal://task/{}", task.trim_start_matches("task:"));
    until("the task is reported", || agent.resource(&uri)["state"] == json!("failed"));
    assert_eq!(agent.resource(&uri)["error"]["code"], json!(-32050));
    let rows = agent.tool("shoal_journal", json!({"limit": 20}));
    let row = rows["entries"].as_array().expect("rows").iter().find(|row| row["src"] == json!("sh { sleep 6331.1 }"));
    let row = row.unwrap_or_else(|| panic!("no row: {rows}"));
    assert_eq!((&row["ended"], &row["ok"]), (&json!("worker_lost"), &json!(false)), "{row}");
    assert_eq!(agent.exec("1 + 1")["value"]["v"], json!(2), "the session works again");
    assert_eq!(other.tool("shoal_cancel", json!({"task": kept}))["receipt"]["survived"], json!([]));
}

#[test]
fn a_directory_that_is_gone_is_a_typed_error_and_can_be_left() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    agent.exec("mkdir d; cd d; sh { rmdir \"$PWD\" }");
    let refused = agent.refused("shoal_exec", json!({"src": "sh { pwd }"}));
    assert_eq!(refused["data"]["code"], json!("cwd_gone"), "{refused}");
    let work = place.work().display().to_string();
    agent.exec(&format!("cd {work}"));
    assert_eq!(agent.exec("sh { pwd }")["value"]["out"]["v"], json!(work));
}

#[test]
fn the_seventeenth_execution_is_refused_and_room_comes_back() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let tasks: Vec<String> = (0..16).map(|_| agent.start("sh { sleep 6340.1 }")).collect();
    let refused = agent.refused("shoal_exec", json!({"src": "1"}));
    assert_eq!(
        (&refused["code"], &refused["data"]["limit"]),
        (&json!(-32040), &json!("execs_per_session")),
        "{refused}"
    );
    for task in &tasks {
        agent.tool("shoal_cancel", json!({"task": task}));
    }
    assert_eq!(agent.exec("2 * 3")["value"]["v"], json!(6));
    assert!(running("sleep 6340.1").is_empty());
}

#[test]
fn a_session_full_of_processes_says_so_and_gets_its_room_back() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.connect();
    let create = json!({"limits": {"pids": 64}});
    client.ok("session.attach", json!({"session": "full", "client": {"kind": "test"}, "create": create}));
    let mut agent = Agent::of(&place, &kernel, "full");
    let mut other = Agent::of(&place, &kernel, "other");
    agent.exec("let mine = 41");
    // The worker has threads for these, which then wait for more work.
    let state = |agent: &mut Agent, task: &str| {
        agent.resource(&format!("shoal://task/{}", task.trim_start_matches("task:")))["state"].clone()
    };
    let few: Vec<String> = (0..3).map(|_| agent.start("sh { sleep 0.5 }")).collect();
    few.iter().for_each(|task| until("it has ended", || state(&mut agent, task) == json!("completed")));
    // Fills the session until the system refuses, then stays.
    let fill = "import os, time
while True:
    try:
        if os.fork() == 0: time.sleep(6360)
    except BlockingIOError: break
print('full', flush=True)
time.sleep(6361)";
    let task = agent.start(&format!("sh {{ exec python3 -c \"{fill}\" }}"));
    let uri = format!("shoal://task/{}", task.trim_start_matches("task:"));
    until("the session is full", || agent.resource(&uri)["stdout_bytes"] == json!(5));
    let refused = agent.refused("shoal_exec", json!({"src": "^true"}));
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("limit `pids`")), "{refused}");
    assert_eq!(other.exec("sh { echo other }")["value"]["out"]["v"], json!("other"));
    // Threads count too: an execution for which there is none is refused, and costs the session nothing.
    let busy = || json!({"src": "sleep 6362s", "background": true});
    let full = (0..8).map(|_| agent.call("shoal_exec", busy())).find(|answer| answer["isError"] == json!(true));
    let full = full.expect("no thread is left")["structuredContent"].clone();
    assert_eq!((&full["code"], &full["data"]["limit"]), (&json!(-32040), &json!("pids")), "{full}");
    let cancelled = agent.tool("shoal_cancel", json!({"task": task}));
    assert_eq!(cancelled["receipt"]["survived"], json!([]), "{cancelled}");
    assert_eq!(agent.exec("mine + 1")["value"]["v"], json!(42), "the worker is the same");
    assert_eq!(agent.exec("sh { echo room }")["value"]["out"]["v"], json!("room"));
}

#[test]
fn an_outcome_says_which_limit_ended_its_program() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.connect();
    client.ok(
        "session.attach",
        json!({"session": "bounded", "client": {"kind": "test"}, "create": {"limits": {"cpu_seconds": 1}}}),
    );
    drop(client);
    let mut agent = Agent::of(&place, &kernel, "bounded");
    let spun = agent.exec("sh { exec python3 -c 'while True: pass' }");
    assert_eq!(
        (&spun["value"]["limit"], &spun["value"]["signal"]),
        (&json!("cpu_seconds"), &json!("SIGKILL")),
        "{spun}"
    );
    assert!(spun["value"]["usage"]["cpu_ns"].as_u64().is_some_and(|ns| ns >= 500_000_000), "{spun}");
    assert!(spun["value"]["usage"]["peak_bytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{spun}");
    let used = agent.exec("(sh { true }).usage.peak_memory > 100kb");
    assert_eq!(used["value"]["v"], json!(true), "{used}");
    // A limit that a script sets for itself is named as well.
    let large = agent.exec("sh { ulimit -f 1; exec head -c 100000 /dev/zero > large }");
    assert_eq!(large["value"]["limit"], json!("file_size"), "{large}");
    assert!(spun["render"].as_str().is_some_and(|text| text.contains("limit cpu_seconds")), "{spun}");
}
