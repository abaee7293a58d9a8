//! What outlives a session: nothing. And what floods one: only itself.

use serde_json::json;
use shoal_harness::{processes, until};

use crate::field::{Field, Ground, Principal};

/// Processes whose command line has a mark.
fn marked(mark: &str) -> Vec<i32> {
    let has_it = |pid: i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    };
    processes::all().into_iter().map(|process| process.pid).filter(|pid| has_it(*pid)).collect()
}

/// A12: three ways to become nobody's child.
#[test]
fn no_daemon_survives_its_session() {
    for layers in ["", "namespaces"] {
        let field = Field::without(layers);
        let mark = format!("7654.{}", std::process::id());
        let script = format!(
            "sh {{ setsid sleep {mark}1 & nohup sleep {mark}2 & ( ( sleep {mark}3 & ) & ) ; (trap '' TERM INT HUP; \
             exec setsid -f sleep {mark}4) ; true }}",
        );
        for principal in Principal::BOTH {
            let mut client = field.session(principal, "daemons");
            let task = client.send("exec", json!({"src": script, "position": "value", "timeout_ms": 0}));
            client.answer(task).expect("handed over or ended");
            until("all four run", || marked(&mark).len() == 4);
            field.end(&mut client, principal, "daemons");
            assert_eq!(marked(&mark), Vec::<i32>::new(), "{principal:?} without {layers:?}");
        }
    }
}

/// A11, the part that is allowed: killing one's own worker crashes one's own session and nothing more.
#[test]
fn a_command_that_kills_its_own_worker_has_crashed_its_own_session() {
    let field = Field::start(Ground::new(&[]), |_| {});
    let mut other = field.session(Principal::Permissive, "other");
    other.value("let kept = 5\nkept");
    let mut client = field.session(Principal::Permissive, "suicide");
    let lost = client.err("exec", json!({"src": "sh { pkill -KILL shoal-worker; sleep 654.7 }", "position": "value"}));
    assert_eq!(lost.code, -32050, "{lost:?}");
    assert_eq!(other.render("kept"), "5");
    assert_eq!(client.render("1 + 1"), "2", "a new worker goes on");
}

/// A47: no byte of a program reaches a renderer as anything but text.
#[test]
fn escapes_are_text_in_every_answer() {
    let field = Field::start(Ground::new(&[]), |_| {});
    let mut client = field.session(Principal::Permissive, "escapes");
    let bytes = r"\033]52;c;aGk=\007\033]0;title\007\033[31mred\033P$q\033\\\033]8;;http://x\033\\ \342\200\256rtl\r\b";
    let calm = |what: &str, text: &str| {
        let bad = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(bad, None, "{what}: {text:?}");
    };
    // Cells of a screen are what the program drew; everywhere else the direction of writing is the reader's.
    let calm_and_straight = |what: &str, text: &str| {
        calm(what, text);
        assert!(!text.contains('\u{202e}'), "{what}: {text:?}");
    };
    let printed = client.value(&format!("sh {{ printf '{bytes}' }}"));
    calm_and_straight("render", printed["render"].as_str().expect("a render"));
    let failed =
        client.err("exec", json!({"src": format!("sh {{ printf '{bytes}' >&2; exit 3 }}"), "position": "stmt"}));
    calm_and_straight("message", &failed.message);
    client.ok("exec", json!({"src": format!("sh {{ : > \"$(printf 'a{bytes}b' | tr -d /)\" }}")}));
    let listed = client.value("ls .");
    calm_and_straight("names", listed["render"].as_str().expect("a render"));
    let opened = client.ok("pty.open", json!({"cmd": "/usr/bin/printf", "args": [bytes], "cols": 80, "rows": 5}));
    let screen =
        client.ok("pty.read", json!({"pty_id": opened["pty_id"], "wait": {"exit": true, "timeout_ms": 20_000}}));
    for row in screen["screen"].as_array().expect("rows") {
        calm("screen", row.as_str().expect("a row"));
    }
    calm("kernel log", &field.kernel.log());
}

/// A48: sequences that cost an emulator much do not cost other sessions anything.
#[test]
fn a_bomb_for_the_emulator_is_its_own_sessions() {
    let field = Field::start(Ground::new(&[]), |_| {});
    let mut other = field.session(Principal::Permissive, "other");
    let mut client = field.session(Principal::Permissive, "bombs");
    let bombs = r"\033[65535@\033[65535L\033[65535T\033c\033[65535;65535r\033[65535X\033[65535b\033]0;";
    let script = format!("i=0; while [ $i -lt 100 ]; do printf '{bombs}'; i=$((i+1)); done; printf '\\007done'");
    let opened = client.ok("pty.open", json!({"cmd": "/bin/sh", "args": ["-c", script], "cols": 200, "rows": 200}));
    for n in 0..5 {
        assert_eq!(other.render(&format!("{n} + 1")), (n + 1).to_string());
    }
    let screen =
        client.ok("pty.read", json!({"pty_id": opened["pty_id"], "wait": {"exit": true, "timeout_ms": 44_000}}));
    assert_eq!(screen["alive"], json!(false), "the emulator kept up");
    let ptyd = field.kernel.pids_of("shoal-ptyd");
    let status = std::fs::read_to_string(format!("/proc/{}/status", ptyd[0])).expect("it lives");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = peak.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number");
    assert!(kib < 512 * 1024, "{kib} KiB");
}

/// A64: descriptors on their way count for the whole user, and the kernel has more room than any session.
#[test]
fn descriptors_in_flight_are_no_way_to_starve_the_kernel() {
    let field = Field::start(Ground::new(&[]), |_| {});
    let mut client = field.session(Principal::Permissive, "flight");
    let program = field.ground.place.program("attacker");
    let source = format!("sh {{ '{}' hold it }}", program.display());
    let task = client.ok("exec", json!({"src": source, "position": "value", "timeout_ms": 0}));
    let held = field.ground.place.work().join("repo/held");
    until("all are on their way", || held.exists());
    for n in 0..3 {
        let mut other = field.session(Principal::Permissive, &format!("other-{n}"));
        assert_eq!(other.render("range(0, 100000).collect().len()"), "100000", "results travel as descriptors");
    }
    client.ok("task.cancel", json!({"task": task["task"]}));
}
