//! Terminals in numbers, and what does not fit into one.

use serde_json::json;
use shoal_harness::{Kernel, Place, processes};

use crate::agent::Agent;

/// Open descriptors of each process of the kernel and of its jails, by name, and how many zombies there are.
fn census(kernel: &Kernel) -> (Vec<(String, usize)>, usize) {
    let tree = processes::tree(kernel.pid());
    let zombies = tree.iter().filter(|p| p.state == 'Z').count();
    let descriptors = |pid: i32| std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let mut counts: Vec<_> = tree.iter().map(|p| (p.comm.clone(), descriptors(p.pid))).collect();
    counts.sort();
    (counts, zombies)
}

#[test]
fn two_hundred_terminals_that_print_and_end_all_show_it_and_leave_nothing() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agents: Vec<Agent> = (0..8).map(|_| Agent::of(&place, &kernel, "default")).collect();
    let one = |agent: &mut Agent, n: usize| {
        let pty = agent.open("sh", &["-c", &format!("echo mark-{n}-$((40 + 2))")]);
        let screen = agent.read(&pty, json!({"exit": true}));
        assert_eq!(screen["screen"][0], json!(format!("mark-{n}-42")), "{screen:#}");
        assert_eq!(screen["exit"], json!({"status": 0, "signal": null}));
        agent.tool("shoal_pty_close", json!({"pty_id": pty}));
    };
    // A facade connects at its first call; the first terminal brings up the terminal host, whose descriptors stay.
    agents.iter_mut().for_each(|agent| drop(agent.tool("shoal_pty_list", json!({}))));
    one(&mut agents[0], 0);
    let before = census(&kernel);
    std::thread::scope(|scope| {
        for (at, agent) in agents.iter_mut().enumerate() {
            scope.spawn(move || (0..25).for_each(|n| one(agent, 1 + at * 25 + n)));
        }
    });
    let due = std::time::Instant::now() + shoal_harness::patience();
    let mut after = census(&kernel);
    // A descriptor may have been open for a moment when the first census was taken.
    let is_no_more = |after: &(Vec<(String, usize)>, usize)| {
        let same = after.0.len() == before.0.len();
        same && after.1 == 0 && after.0.iter().zip(&before.0).all(|(now, then)| now.0 == then.0 && now.1 <= then.1)
    };
    while !is_no_more(&after) && std::time::Instant::now() < due {
        after = census(&kernel);
    }
    assert!(is_no_more(&after), "more descriptors, processes or zombies than before: {after:?}, {before:?}");
    assert_eq!(agents[0].tool("shoal_pty_list", json!({}))["ptys"], json!([]));
}

#[test]
fn what_a_terminal_cannot_take_is_refused_whole_and_a_raw_one_takes_it() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let line = agent.open("sh", &["-c", "echo ready; read -r line; echo \"got ${#line}\""]);
    agent.see(&line, "ready");
    let long = format!("{}\n", "x".repeat(6000));
    let refused = agent.refused("shoal_pty_send", json!({"pty_id": line, "input": [{"text": long}]}));
    assert_eq!(refused["data"]["reason"], json!("line_too_long"), "{refused}");
    assert_eq!(refused["data"]["max"], json!(4095));
    agent.send(&line, json!("short\n"));
    agent.see(&line, "got 5");
    let raw = agent.open("sh", &["-c", "stty raw -echo; printf ready; head -c 200000 | wc -c"]);
    agent.see(&raw, "ready");
    agent.send(&raw, json!("z".repeat(200_000)));
    agent.see(&raw, "200000");
}

#[test]
fn lines_that_left_the_screen_are_read_by_their_numbers() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let opened = client.ok("pty.open", json!({"cmd": "sh", "args": ["-c", "seq 1 100; read a"], "rows": 10}));
    let pty = opened["pty_id"].clone();
    client.ok("pty.read", json!({"pty_id": pty, "wait": {"text": "100\n", "timeout_ms": 20_000}}));
    let read = client.ok("pty.read", json!({"pty_id": pty, "scrollback": [40, 43]}));
    assert_eq!(read["scrollback"], json!({"len": 91, "start": 40, "lines": ["41", "42", "43"]}), "{read}");
    assert_eq!(read["screen"][0], json!("92"));
    assert_eq!(client.ok("pty.read", json!({"pty_id": pty})).get("scrollback"), None);
}
