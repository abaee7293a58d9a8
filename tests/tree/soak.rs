//! A mix of everything a session does, over eight sessions at once; then the kernel is as it was.
//!
//! `SHOAL_SOAK` is the number of operations; `docs/testing.md` has the figures of a long one.

use std::collections::BTreeMap;

use serde_json::json;
use shoal_harness::{Client, Kernel, Place, processes, until};

const SESSIONS: usize = 8;
/// Operations when nothing else is asked for.
const SHORT: usize = 200;

/// What one role holds, summed over its processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    processes: usize,
    threads: usize,
    descriptors: usize,
}

/// What the kernel holds by role, and its own memory in KiB.
fn census(kernel: &Kernel) -> (BTreeMap<String, Held>, u64) {
    let (mut roles, mut kib) = (BTreeMap::<String, Held>::new(), 0);
    for process in processes::tree(kernel.pid()) {
        let dir = format!("/proc/{}", process.pid);
        let count = |name: &str| std::fs::read_dir(format!("{dir}/{name}")).map_or(0, Iterator::count);
        let held = roles.entry(process.comm).or_default();
        held.processes += 1;
        held.threads += count("task");
        held.descriptors += count("fd");
        let status = std::fs::read_to_string(format!("{dir}/status")).unwrap_or_default();
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        kib += anonymous.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0);
    }
    (roles, kib)
}

/// One operation of the mix, the `n`-th of its session, checked.
fn operate(client: &mut Client, n: usize) {
    match n % 20 {
        0..=6 => assert_eq!(client.render(&format!("{n} * 2")), (n * 2).to_string()),
        7..=10 => assert_eq!(client.render(&format!("sh {{ echo {n} }}")), n.to_string()),
        11 => {
            let answer = client.value("sh { seq 1 40000; exit 3 }");
            assert_eq!((&answer["value"]["status"], &answer["value"]["out"]["n"]), (&json!(3), &json!(228_893)));
        }
        12 => {
            let answer = client.value(&format!("sh {{ sleep 0.3 & echo {n} }}"));
            assert_eq!((&answer["value"]["out"]["v"], &answer["held_by"]), (&json!(n.to_string()), &json!(1)));
        }
        13 | 14 => {
            let started =
                client.ok("exec", json!({"src": format!("sh {{ echo {n} }}"), "position": "value", "async": true}));
            let ended = client.ok("task.await", json!({"task": started["task"], "timeout_ms": 60_000}));
            assert_eq!((&ended["state"], &ended["exit_code"]), (&json!("completed"), &json!(0)), "{ended}");
            let log = client.ok("task.output", json!({"task": started["task"]}));
            assert_eq!(log["chunks"][0]["data"], json!(format!("{n}\n")), "{log}");
        }
        15 => {
            let src = "sh { sleep 4321.5 & sleep 4321.6 }";
            let started = client.ok("exec", json!({"src": src, "position": "value", "timeout_ms": 0}));
            let cancelled = client.ok("task.cancel", json!({"task": started["task"], "signal": "term"}));
            assert_eq!(cancelled["receipt"]["survived"], json!([]), "{cancelled}");
        }
        16 => assert_eq!(client.err("exec", json!({"src": "no-such-program-here"})).code, -32002),
        17 => assert_eq!(client.render("'fed'.feed(^cat).text"), "fed"),
        _ => {
            let script = format!("echo mark-{n}; read -r a; echo got $a");
            let opened = client.ok("pty.open", json!({"cmd": "sh", "args": ["-c", script]}));
            let pty = opened["pty_id"].clone();
            client.ok("pty.send", json!({"pty_id": pty, "input": ["word", {"key": "Enter"}]}));
            let ended = client.ok("pty.read", json!({"pty_id": pty, "wait": {"exit": true, "timeout_ms": 45_000}}));
            let screen = ended["screen"].to_string();
            assert!(screen.contains(&format!("mark-{n}")) && screen.contains("got word"), "{ended}");
            client.ok("pty.close", json!({"pty_id": pty}));
        }
    }
}

/// Each session does its operations `range` at the same time as the others.
fn work(clients: &mut [Client], range: &std::ops::Range<usize>) {
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(|| range.clone().for_each(|n| operate(client, n)));
        }
    });
}

#[test]
fn soak() {
    let asked = std::env::var("SHOAL_SOAK").ok().map(|n| n.parse().expect("SHOAL_SOAK is a number"));
    let each = asked.unwrap_or(SHORT).div_ceil(SESSIONS);
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut clients: Vec<Client> = (0..SESSIONS).map(|n| kernel.attach(&format!("soak{n}"))).collect();
    // Every kind once: roles that start at their first use, such as terminal hosts, are up.
    work(&mut clients, &(0..20));
    let (mut before, _) = census(&kernel);
    until("leftovers of the warm-up are gone", || {
        before = census(&kernel).0;
        !before.contains_key("sleep")
    });
    let half = each.div_ceil(2);
    work(&mut clients, &(0..half));
    let (_, memory_half) = census(&kernel);
    work(&mut clients, &(half..each));
    let (mut after, mut memory) = (BTreeMap::new(), 0);
    until("no role holds more than it did", || {
        (after, memory) = census(&kernel);
        let is_no_more = |now: &Held, then: &Held| {
            now.processes == then.processes && now.threads <= then.threads && now.descriptors <= then.descriptors
        };
        after.len() == before.len()
            && after.iter().all(|(role, now)| before.get(role).is_some_and(|b| is_no_more(now, b)))
    });
    eprintln!("{} operations over {SESSIONS} sessions", each * SESSIONS);
    eprintln!("role               processes threads descriptors, before and after");
    for ((role, then), now) in before.iter().zip(after.values()) {
        let pair = |then: usize, now: usize| format!("{then}/{now}");
        let (processes, threads) = (pair(then.processes, now.processes), pair(then.threads, now.threads));
        eprintln!("{role:<18} {processes:>9} {threads:>7} {:>11}", pair(then.descriptors, now.descriptors));
    }
    eprintln!("memory: {memory_half} KiB after half, {memory} KiB at the end");
    assert!(memory < memory_half + memory_half / 4 + 16 * 1024, "memory grew: {memory_half} to {memory} KiB");
    for client in &mut clients {
        assert_eq!(client.ok("pty.list", json!({}))["ptys"], json!([]));
    }
}
