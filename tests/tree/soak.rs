//! A mix of everything a session does, over eight sessions at once; then the kernel is as it was.
//!
//! Processes and descriptors must be those of the warm-up, exactly or fewer, and threads but for those that wait for work
//! ([`WAITING`]). Memory may have grown by what each
//! role keeps by design ([`KEPT`]) and no more; in a long run it must have stopped growing ([`DRIFT`]), so that a leak of a
//! hundred bytes an operation shows. `SHOAL_SOAK` is the number of operations; `docs/testing.md` has the figures of long
//! ones.

use std::collections::BTreeMap;

use serde_json::json;
use shoal_harness::{Client, Kernel, Place, processes, until};

const SESSIONS: usize = 8;
/// Operations when nothing else is asked for.
const SHORT: usize = 200;
/// From so many operations on, everything that is kept by design is full after the first seven tenths.
const LONG: usize = 10_000;

/// Growth of memory allowed to a role's process from the warm-up on, in KiB, and why.
const KEPT: &[(&str, u64)] = &[
    // Nothing: it holds what it supervises.
    ("shoal-kernel", 256),
    // 8 MiB of pages of the journal's database, rings of events, 128 task records and 1,024 idempotency keys a session.
    ("shoal-broker", 24 * 1024),
    // Nothing but its allocator's slack.
    ("shoal-launcher", 256),
    ("shoal-ptyd", 256),
    // 16 MiB of large results, 4 MiB of small ones, logs of ended tasks, stacks of waiting threads, allocator's slack.
    ("shoal-worker", 32 * 1024),
];

/// Growth allowed to a role's process over the rest of a long run, in KiB: 3,000 operations, 375 in each session.
const DRIFT: &[(&str, u64)] = &[
    ("shoal-kernel", 64),
    // Its rings and pages are full a little later.
    ("shoal-broker", 1024),
    ("shoal-launcher", 64),
    ("shoal-ptyd", 64),
    // What fills up between two trims of its memory.
    ("shoal-worker", 2 * 1024),
];

/// Threads of a worker that may wait for work beyond the one that the warm-up left.
const WAITING: usize = 3;

/// What one role holds, summed over its processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    processes: usize,
    threads: usize,
    descriptors: usize,
    /// Memory of its own, in KiB.
    kib: u64,
}

type Census = BTreeMap<String, Held>;

/// What the kernel holds by role.
fn census(kernel: &Kernel) -> Census {
    let mut roles = Census::new();
    for process in processes::tree(kernel.pid()) {
        let dir = format!("/proc/{}", process.pid);
        let count = |name: &str| std::fs::read_dir(format!("{dir}/{name}")).map_or(0, Iterator::count);
        let held = roles.entry(process.comm).or_default();
        held.processes += 1;
        held.threads += count("task");
        held.descriptors += count("fd");
        held.kib += processes::anonymous_kib(process.pid);
    }
    roles
}

/// Why `now` is not `then` again, if it is not.
fn difference(then: &Census, now: &Census) -> Option<String> {
    let more = |role: &str, now: &Held| {
        let Some(then) = then.get(role) else { return Some(format!("{role} is new")) };
        let waiting = if role == "shoal-worker" { WAITING * then.processes } else { 0 };
        let same = now.processes == then.processes
            && now.threads <= then.threads + waiting
            && now.descriptors <= then.descriptors;
        (!same).then(|| format!("{role}: {then:?} became {now:?}"))
    };
    let gone = then.keys().find(|role| !now.contains_key(*role)).map(|role| format!("{role} is gone"));
    now.iter().find_map(|(role, held)| more(role, held)).or(gone)
}

/// Roles that grew by more than each of their processes may.
fn grown(then: &Census, now: &Census, allowed: &[(&str, u64)]) -> Vec<String> {
    let limit = |role: &str| allowed.iter().find(|(name, _)| *name == role).map_or(0, |(_, kib)| *kib);
    let is_over = |role: &str, held: &Held| {
        let before = then.get(role).map_or(0, |held| held.kib);
        (held.kib > before + limit(role) * held.processes as u64)
            .then(|| format!("{role}: {before} to {} KiB", held.kib))
    };
    now.iter().filter_map(|(role, held)| is_over(role, held)).collect()
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
            let answer = client.value(&format!("sh {{ sleep 2 & echo {n} }}"));
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

/// Ends what only passes, such as descendants and threads that have no more work, and counts.
fn settled(kernel: &Kernel, before: &Census) -> Census {
    let due = std::time::Instant::now() + shoal_harness::patience();
    loop {
        let now = census(kernel);
        let Some(why) = difference(before, &now) else { return now };
        assert!(std::time::Instant::now() < due, "{why}");
    }
}

fn tell(operations: usize, counts: [&Census; 3]) {
    let [before, half, after] = counts;
    eprintln!("{operations} operations over {SESSIONS} sessions");
    eprintln!("role            processes   threads descriptors   KiB after warm-up, most, all");
    for (role, then) in before {
        let (half, now) = (half.get(role).cloned().unwrap_or_default(), after.get(role).cloned().unwrap_or_default());
        let pair = |then: usize, now: usize| format!("{then}/{now}");
        let (processes, threads) = (pair(then.processes, now.processes), pair(then.threads, now.threads));
        let descriptors = pair(then.descriptors, now.descriptors);
        let kib = format!("{} {} {}", then.kib, half.kib, now.kib);
        eprintln!("{role:<15} {processes:>9} {threads:>9} {descriptors:>11}   {kib}");
    }
}

#[test]
fn soak() {
    let asked = std::env::var("SHOAL_SOAK").ok().map(|n| n.parse().expect("SHOAL_SOAK is a number"));
    let operations = asked.unwrap_or(SHORT);
    let each = operations.div_ceil(SESSIONS);
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut clients: Vec<Client> = (0..SESSIONS).map(|n| kernel.attach(&format!("soak{n}"))).collect();
    // Every kind twice: roles that start at their first use, such as terminal hosts, are up.
    work(&mut clients, &(0..40));
    let mut before = Census::new();
    until("leftovers of the warm-up are gone", || {
        before = census(&kernel);
        !before.contains_key("sleep")
    });
    // Large results fill their budget after about 6,000 operations.
    let most = (each * 7).div_ceil(10);
    work(&mut clients, &(0..most));
    let between = settled(&kernel, &before);
    work(&mut clients, &(most..each));
    let after = settled(&kernel, &before);
    tell(operations, [&before, &between, &after]);
    assert_eq!(grown(&before, &after, KEPT), Vec::<String>::new(), "more memory than is kept by design");
    if operations >= LONG {
        assert_eq!(grown(&between, &after, DRIFT), Vec::<String>::new(), "memory goes on growing");
    }
    for client in &mut clients {
        assert_eq!(client.ok("pty.list", json!({}))["ptys"], json!([]));
    }
}

#[test]
fn a_census_that_is_not_the_one_before_is_told() {
    let held = |threads, kib| Held { processes: 8, threads, descriptors: 80, kib };
    let of = |role: &str, held: Held| Census::from([(role.to_owned(), held)]);
    let before = of("shoal-launcher", held(8, 1000));
    assert_eq!(difference(&before, &of("shoal-launcher", held(8, 9000))), None);
    for after in [of("shoal-launcher", held(9, 1000)), of("sleep", held(8, 0)), Census::new()] {
        assert!(difference(&before, &after).is_some(), "{after:?}");
    }
    let fewer = Held { processes: 7, ..held(7, 1000) };
    assert!(difference(&before, &of("shoal-launcher", fewer)).is_some(), "a role that died");
    assert_eq!(grown(&before, &of("shoal-launcher", held(8, 1000 + 8 * 64)), DRIFT).len(), 0);
    assert_eq!(grown(&before, &of("shoal-launcher", held(8, 1001 + 8 * 64)), DRIFT).len(), 1);
    assert_eq!(grown(&before, &of("sleep", held(8, 1)), KEPT).len(), 1, "nothing is allowed to what is not a role");
}
