//! What is kept of results: memory of a session is bounded, and what was left to the store is exactly what it was.

use serde_json::{Value, json};
use shoal_harness::{Kernel, Place, processes, until};

use crate::agent::Agent;

/// Most memory of a worker at rest, in KiB: results, logs and finished tasks within their budgets, the worker itself, and
/// what its allocator and its waiting threads keep.
const AT_REST: u64 = 48 * 1024;

/// Memory of its own of the only worker, in KiB.
fn worker_kib(kernel: &Kernel) -> u64 {
    let workers = kernel.pids_of("shoal-worker");
    assert_eq!(workers.len(), 1);
    processes::anonymous_kib(workers[0])
}

/// Prints `letter` until there are so many bytes.
fn printing(letter: char, bytes: usize) -> String {
    format!("sh {{ yes {letter} | head -c {bytes} }}")
}

fn int(answer: &Value) -> &Value {
    &answer["value"]["v"]
}

#[test]
fn old_results_leave_memory_and_are_read_back_exactly() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    // Text of it would be lossy, so only its bytes can be right.
    let first = agent.exec(r#"sh { python3 -c 'import os; os.write(1, b"a\0\xff\x1b\r\n" * 400_000)' }"#);
    assert_eq!((&first["ref"], &first["value"]["lossy"]), (&json!("out:1"), &json!(true)), "{first}");
    let made = agent.exec("(0..100_000).map(n => n * 2).collect()");
    assert_eq!(made["value"]["n"], json!(100_000), "{made}");
    for letter in 'b'..='f' {
        agent.exec(&printing(letter, 3_000_000));
    }
    until("the worker has let go of old results", || worker_kib(&kernel) < AT_REST);
    let pattern = b"a\0\xff\x1b\r\n".repeat(2);
    assert_eq!(agent.bytes(&json!("out:1"), "stdout", 1_199_994, 1_200_006), pattern);
    assert_eq!(agent.bytes(&json!("out:1"), "stdout", 2_399_994, 2_400_100), pattern[..6]);
    assert_eq!(int(&agent.exec("out[1].stdout.len()")), &json!(2_400_000));
    assert_eq!(int(&agent.exec("out[2][99_999]")), &json!(199_998));
    assert_eq!(int(&agent.exec("out[3].out.len()")), &json!(2_999_999));
    assert_eq!(int(&agent.exec("out[1].status")), &json!(0));
    let part = agent.tool("shoal_get", json!({"ref": "out:2", "path": "[7]"}));
    assert_eq!(part["value"]["v"], json!(14), "{part}");
    until("reading them takes no memory for good", || worker_kib(&kernel) < AT_REST);
}

#[test]
fn a_session_at_rest_is_small_whatever_it_did() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    // A flood of outputs, records of many tasks, language tasks that outlive their execution, and a large computation.
    for _ in 0..10 {
        agent.exec(&printing('x', 3_000_000));
    }
    for _ in 0..6 {
        let task = agent.start(&printing('y', 1_500_000));
        let uri = format!("shoal://task/{}", task.trim_start_matches("task:"));
        until("the task has ended", || agent.resource(&uri)["state"] == json!("completed"));
    }
    agent.exec("var late = (0..12).map(n => spawn { sh { sleep 0.2; yes z | head -c 2500000 } }).collect()");
    let seen = agent.exec("late.map(t => t.await().stdout.display().len()).max()");
    assert!(int(&seen).as_u64().is_some_and(|len| (1 << 20..3 << 20).contains(&len)), "a task keeps its ends: {seen}");
    agent.exec("late = null");
    agent.exec("(0..50_000).map(n => {n: n, text: \"row\"}).collect().len()");
    until("the worker is small again", || worker_kib(&kernel) < AT_REST);
}

#[test]
fn long_standard_error_keeps_both_ends_and_says_where_the_rest_is() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let src = "sh { yes abcdefghij | head -c 22000 >&2; exit 3 }";
    let error = client.err("exec", json!({"src": src}));
    let reference = error.data["ref"].as_str().expect("the error is kept");
    let outcome = client.value(src);
    let told = [&error.data["stderr"], &outcome["value"]["err"]];
    for (text, out) in told.into_iter().zip([reference, outcome["ref"].as_str().expect("a reference")]) {
        let text = text.as_str().expect("a text");
        let line = format!("…(1256 more lines, fetch via shoal://{}?path=stderr)", out.replace(':', "/"));
        assert_eq!(text.lines().filter(|shown| shown.starts_with('…')).collect::<Vec<_>>(), [line]);
        assert!(text.starts_with("abcdefghij\n") && text.ends_with("abcdefghij\n"), "both ends");
    }
    let whole = client.ok("value.get", json!({"ref": reference, "path": "stderr", "slice": [21_989, 22_000]}));
    assert_eq!(whole["value"]["v"], json!("abcdefghij\n"), "{whole}");
}
