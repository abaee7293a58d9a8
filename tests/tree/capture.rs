//! What is kept of output: the useful end, exact totals, exact bytes by reference, and bounded memory.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use shoal_harness::{Kernel, Place, processes};

use crate::agent::Agent;

/// Memory of their own of all processes of the kernel itself, in KiB.
fn kernel_kib(kernel: &Kernel) -> u64 {
    let ours = processes::tree(kernel.pid()).into_iter().filter(|p| p.comm.starts_with("shoal-"));
    ours.map(|p| processes::anonymous_kib(p.pid)).sum()
}

fn total(answer: &Value, path: &str) -> u64 {
    answer["value"]["capture"][path].as_u64().unwrap_or_else(|| panic!("no {path}: {}", answer["value"]))
}

#[test]
fn a_flood_meets_its_caps_and_leaves_others_and_memory_alone() {
    let place = Place::new();
    let kernel = Kernel::start_with(&place, |command| {
        command.env("SHOAL_CAPTURE_STORE_CAP_BYTES", (64 << 20).to_string());
    });
    let mut agent = Agent::of(&place, &kernel, "flood");
    let mut other = Agent::of(&place, &kernel, "other");
    let task = agent.start("sh { timeout 10 yes FLOOD }");
    let uri = format!("shoal://task/{}", task.trim_start_matches("task:"));
    // Ten seconds of flood, and the other session answers at least once in each.
    let (mut answers, mut memory) = (0, Vec::new());
    while agent.resource(&uri)["state"] == json!("running") {
        assert_eq!(other.exec("6 * 7")["value"]["v"], json!(42));
        answers += 1;
        memory.push(kernel_kib(&kernel));
    }
    assert!(answers >= 10, "{answers} answers in ten seconds");
    let (early, late) = (memory[memory.len() / 4], memory[memory.len() - 1]);
    assert!(late < early + 48 * 1024, "memory grew from {early} to {late} KiB");
    let record = agent.resource(&uri);
    assert_eq!((&record["state"], &record["exit_code"]), (&json!("failed"), &json!(124)), "{record}");
    let answer = agent.tool("shoal_get", json!({"ref": record["result_ref"]}));
    let (seen, kept) = (total(&answer, "stdout_seen"), total(&answer, "stdout_kept"));
    assert_eq!(kept, 64 << 20, "the cap is met exactly");
    assert!(seen > kept && record["stdout_bytes"] == json!(seen), "{record}");
    let render = other.exec("1")["render"].clone();
    assert_eq!(render, json!("1"));
    let shown = agent.call("shoal_exec", json!({"src": "it"}))["content"][0]["text"].to_string();
    assert!(shown.contains("capture stopped at 67.11mb of"), "{shown}");
    let stored = std::fs::metadata(place.path("state")).expect("a state directory").permissions().mode();
    assert_eq!(stored & 0o077, 0);
}

#[test]
fn sixty_thousand_lines_show_their_error_and_every_line_is_there() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let src = "sh { seq -f 'line %g of the build' 1 59999; echo 'error: the last line says why' ; exit 3 }";
    let result = agent.call("shoal_exec", json!({"src": src}));
    let answer = &result["structuredContent"];
    assert_eq!((&answer["value"]["status"], &answer["summary"]["status"]), (&json!(3), &json!("failed")));
    assert!(result.to_string().len() < 128 * 1024, "bounded: {}", result.to_string().len());
    for half in [&result["structuredContent"], &result["content"]] {
        let half = half.to_string();
        assert!(half.contains("error: the last line says why"), "{half}");
    }
    let lines: Vec<String> = (1..60_000).map(|n| format!("line {n} of the build")).collect();
    let bytes: u64 = lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>() + 30;
    assert_eq!(answer["value"]["out"]["n"], json!(bytes - 1), "the exact length, without the last newline");
    let reference = answer["ref"].clone();
    let at: u64 = lines.iter().take(31_415).map(|line| line.len() as u64 + 1).sum();
    let got = agent.bytes(&reference, "stdout", at, at + lines[31_415].len() as u64);
    assert_eq!(String::from_utf8(got).expect("text"), lines[31_415]);
    let n = reference.as_str().and_then(|r| r.strip_prefix("out:")).expect("a number").to_owned();
    let line = agent.exec(&format!("out[{n}].stdout.str().lines()[42_000]"));
    assert_eq!(line["value"]["v"], json!(lines[42_000]));
}

#[test]
fn bytes_are_exact_by_reference_and_their_text_is_marked() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let answer = agent.exec(r"sh { printf 'a\000b\377c\033[31md\r\ne'; printf 'e\377' >&2 }");
    assert_eq!(answer["value"]["lossy"], json!(true), "{answer}");
    assert_eq!(agent.bytes(&answer["ref"], "stdout", 0, 100), b"a\0b\xffc\x1b[31md\r\ne");
    assert_eq!(agent.bytes(&answer["ref"], "stderr", 0, 100), b"e\xff");
    let exact = agent.exec(r"sh { printf 'a\r\n' }");
    assert_eq!(exact["value"].get("lossy"), None, "{exact}");
}

#[test]
fn a_line_of_three_megabytes_never_splits_a_character() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    for (count, unit) in [(500_000, "é😀"), (2_500_000, "x€")] {
        let src = format!("sh {{ python3 -c \"print('{unit}' * {count}, end='')\" }}");
        let result = agent.call("shoal_exec", json!({"src": src}));
        assert_eq!(result["isError"], json!(false), "{result}");
        assert!(!result.to_string().contains('\u{fffd}'), "{result}");
        assert_eq!(result["structuredContent"]["value"].get("lossy"), None);
        let length = unit.len() as u64 * count;
        assert_eq!(result["structuredContent"]["value"]["out"]["n"], json!(length), "{result}");
        let reference = result["structuredContent"]["ref"].clone();
        let expected: Vec<u8> = unit.as_bytes().iter().copied().cycle().take(2 * unit.len()).collect();
        let near_end = length - 2 * unit.len() as u64;
        assert_eq!(agent.bytes(&reference, "stdout", near_end, length + 5), expected);
    }
}

/// A kernel whose workers keep one mebibyte of a stream in memory.
fn small_memory(place: &Place) -> Kernel {
    Kernel::start_with(place, |command| {
        command.env("SHOAL_CAPTURE_CAP_BYTES", (1 << 20).to_string());
    })
}

#[test]
fn output_beyond_memory_is_stored_whole_and_usable_as_a_value() {
    let place = Place::new();
    let kernel = small_memory(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let answer = agent.exec("let big = sh { seq 1 300000; seq 1 200000 >&2 }; big");
    let length: u64 = 1_988_895;
    let out = &answer["value"]["out"];
    assert_eq!((&out["of"], &out["n"]), (&json!("bytes"), &json!(length)), "{answer}");
    assert_eq!(out["tail"].as_str().and_then(|tail| tail.lines().last()), Some("300000"), "{answer}");
    assert_eq!(answer["value"].get("capture"), None, "all of it is kept");
    assert!(answer["value"]["err"].as_str().is_some_and(|err| err.ends_with("200000\n")), "{answer}");
    assert_eq!(agent.bytes(&answer["ref"], "stdout", length - 14, length), b"299999\n300000\n");
    // In the execution that prints, in a later one, and as the input of a program.
    assert_eq!(agent.exec("(sh { seq 1 200000 }).stdout.str().lines().len()")["value"]["v"], json!(200_000));
    assert_eq!(agent.exec("big.stdout.str().lines()[234_567]")["value"]["v"], json!("234568"));
    assert_eq!(agent.exec("big.stdout.feed(^tail -n 1).text")["value"]["v"], json!("300000"));
    let sum = agent.exec("(sh { seq 1 300000 | sha256sum }).text")["value"]["v"].clone();
    assert_eq!(agent.exec("big.stdout.feed(^sha256sum).text")["value"]["v"], sum);
    let path = answer["value"]["out"]["uri"].as_str().expect("an address").to_owned();
    assert!(path.starts_with("shoal://out/") && path.ends_with("path=out"), "{path}");
}

#[test]
fn a_broker_that_dies_while_output_is_stored_ends_no_program() {
    let place = Place::new();
    let kernel = small_memory(&place);
    let mut agent = Agent::of(&place, &kernel, "default");
    let task = agent.start("sh { seq 1 200000; while [ ! -e go ]; do sleep 0.1; done; seq 1 200000; echo end }");
    let n = task.trim_start_matches("task:").to_owned();
    shoal_harness::until("the first part is read", || {
        agent.resource(&format!("shoal://task/{n}"))["stdout_bytes"].as_u64().is_some_and(|seen| seen > 1_288_000)
    });
    let broker = kernel.pids_of("shoal-broker")[0];
    processes::signal(broker, nix::sys::signal::Signal::SIGKILL);
    place.write("go", "");
    let mut client = kernel.attach("default");
    let mut row = Value::Null;
    shoal_harness::until("the row is closed", || {
        row = client.ok("journal.query", json!({"limit": 1, "kinds": ["exec"]}))[0].clone();
        row["ok"].is_boolean()
    });
    assert_eq!((&row["ok"], &row["status"]), (&json!(true), &json!(0)), "{row}");
    let value = client.value("it");
    let render = value["render"].as_str().unwrap_or_default().to_owned();
    assert!(render.contains("\nend\n[stdout: capture stopped at"), "{render}");
}
