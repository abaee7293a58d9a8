//! The acceptance examples of the language in sessions of several requests over the socket.

use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place};

/// Runs the last of some requests in a fresh session of its own and gives its inline value, or `! code text`.
fn last_of(client: &mut Client, requests: &[&str]) -> String {
    let (last, first) = requests.split_last().expect("a request");
    for src in first {
        client.ok("exec", json!({"src": src}));
    }
    match client.call("exec", json!({"src": format!("{last}"), "position": "stmt"})) {
        Ok(answer) => inline(&answer),
        Err(error) if error.code == -32_001 => format!("! parse_error {} {}", error.message, error.data["hint"]),
        Err(error) => {
            let code = error.data["code"].as_str().unwrap_or("?");
            format!("! {code} {} {}", error.message, error.data["hint"])
        }
    }
}

/// The inline form of a result, made by the session itself.
fn inline(answer: &Value) -> String {
    answer["render"].as_str().unwrap_or_default().to_owned()
}

/// Requests, and what the last of them shows: a rendering, or `! code` and words of its message or hint.
const EXAMPLES: &[(&[&str], &str)] = &[
    (&["let probe = (^false)", "\"{({ probe, answer: 42 })}\""], "{probe: outcome(status: 1, ok: false), answer: 42}"),
    (&["^false\n42"], "! cmd_failed"),
    (&["fn f() { ^false }", "f()\n\"late\""], "! cmd_failed"),
    (&["let ok = true", "if ok { ^false }\n1"], "! cmd_failed"),
    (&["^false || ^true\n1"], "1"),
    (&["try { ^false } catch e { e.status }"], "1"),
    (&["^false\ncatch \"saved\""], "saved"),
    (&["let r = (^false)", "r\nr.status"], "1"),
    (&["\"{range(0, 5).collect()}\""], "[0, 1, 2, 3, 4]"),
    (&["\"{range(10, 0, -3)}\""], "[10, 7, 4, 1]"),
    (&["touch a.txt", "\"{(ls .).where(.type == 'file' && .size >= 0b).map(.name)}\""], "[\"a.txt\"]"),
    (&["touch a.txt", "if (ls .).is_empty() { \"none\" } else { \"some\" }"], "some"),
    (&["touch a.txt", "for f in (ls) { echo (f.name) }"], ""),
    (&["(printf '%s|' --foo-bar --x=1 --y=\"a b\").out"], "--foo-bar|--x=1|--y=a b|"),
    (&["(printf '%s|' ([1, 2]) a\"b\"c).out"], "1|2|abc|"),
    (&["printf '%s' *.nothing"], "! no_matches"),
    (&["(echo a *.nothing -n b).out"], "a -n b"),
    (&["fn f(n) { match n { 1 => { return \"early\" }, _ => 0 }\n\"late\" }", "f(1)"], "early"),
    (&["var n = 0", "for i in 1..9 { match i { 4 => { break }, _ => { n += i } } }\nn"], "6"),
    (&["match 5 { null => \"missing\"; _ => \"there\" }"], "there"),
    (&["match \"v1.2\" { re\"^v\\d\" => \"tag\"; _ => \"other\" }"], "tag"),
    (&["match -2.5 { -2.5 => 1; _ => 0 }"], "1"),
    (&["let [a, ...rest] = [1, 2, 3]", "\"{rest}\""], "[2, 3]"),
    (&["\"{[[\"k\", 1]].map(([k, v]) => \"{k}={v}\")}\""], "[\"k=1\"]"),
    (&["env.SURELY_UNSET ?? \"dflt\""], "dflt"),
    (&["raise(\"bad input\") catch e { e.msg }"], "bad input"),
    (&["raise(\"app_down\", \"no answer\") catch e { e.code }"], "app_down"),
    (&["\"{(1 / 0) catch null}\""], "null"),
    (&["fn g(a, b) { a - b }", "g(a: 1, 2)"], "-1"),
    (&["fn h(n: int, tag: str?) { tag ?? n }", "h(3)"], "3"),
    (&["fn h(n: int) { n }", "h(5.5)"], "! arg_error expected int, found float"),
    (&["(1 < 2) == true"], "true"),
    (&["1h30m == 90m"], "true"),
    (&["99999999999w"], "! parse_error out of range"),
    (&["t\"2026-07-09T14:00+02:00\".hour"], "14"),
    (&["\"{path(\"a b.txt\")}\""], "a b.txt"),
    (&["\"{\"a=1;b=2\".captures(re\"(\\w)=(\\d)\").map(.get(\"2\"))}\""], "[\"1\", \"2\"]"),
    (&["\"{[{a: 1, b: 2}].select(\"b\")}\""], "[{b: 2}]"),
    (&["json.stringify(json.parse('{\"b\": 1, \"a\": 2}'))"], "{\"b\":1,\"a\":2}"),
    (&["json.parse('[{\"a\": 1}]')[0].a"], "1"),
    (&["\"{[4, 9].map(math.sqrt)}\""], "[2, 3]"),
    (&["(\"a b\".split(\" \").map(\"<{.upper()}>\")).join(\"\")"], "<A><B>"),
    (&["\"{[{a: 2}, {a: 1}].sort_by(-.a).map({x: .a})}\""], "[{x: 2}, {x: 1}]"),
    (&["sh { echo out; echo err >&2; exit 3 }"], "! cmd_failed exited with status 3"),
    (
        &[
            "let e = try { sh { echo out; echo err >&2; exit 3 }\nnull } catch e { e }",
            "json.stringify([e.status, e.stdout, e.stderr])",
        ],
        "[3,\"out\\n\",\"err\\n\"]",
    ),
    (&["(sh { echo \"[1]\" }).text"], "[1]"),
    (&["let r = (sh { sleep 30 & echo done })", "\"{r.out} {r.capture.held_by}\""], "done 1"),
    (&["(sh { cat; tty }).status != 0"], "true"),
    (&["let r = (sh { kill -9 $$ })", "\"{r.signal} {r.status}\""], "SIGKILL null"),
    (&["python3 {\n    import json\n    print(json.dumps({\"a\": 1}))\n}.out.a"], "1"),
    (&["every(10ms).map(x => \"t\").feed(head -2).out"], "t\nt"),
    (&["let r = (yes).feed(head -1)", "\"{r.out} {r.stages.map(.ok)}\""], "y [true, true]"),
    (&["let r = (sh { echo a; exit 3 }).feed(cat)", "\"{r.status} {r.stages.map(.status)}\""], "3 [3, 0]"),
    (&["echo hi > f.txt && true", "\"{cat(\"f.txt\").lines}\""], "[\"hi\"]"),
    (&["mkdir sub", "with cwd: path(\"sub\") { pwd.name }"], "sub"),
    (&["with cwd: \"nope\" { 1 }"], "! not_found"),
    (&["fn down(n: int) { if n == 0 { 0 } else { down(n - 1) } }", "down(9000)"], "0"),
    (&["let y = sort"], "! undefined_var (^sort)"),
    (&["cp {a,b} d"], "! parse_error no brace expansion"),
    (&["let a = 1", "cp {a,b} d"], "! parse_error no brace expansion"),
    (&["echo {1..3}"], "! arg_error no brace expansion"),
    (&["let p = (plan { \"x\".save(\"f.txt\") })", "p.effects.any(x => x == \"write {pwd}/f.txt\")"], "true"),
    (&["let p = (plan { frob(1) })", "\"{p.effects}\""], "[\"opaque (effects unknown)\"]"),
    (&["let x = 4", "x + 1"], "5"),
    (&["fn inc() { n += 1 }\nvar n = 0", "inc()", "n"], "1"),
    (&["[3, 1]", "\"{it.sort()}\""], "[1, 3]"),
    (&["touch a.txt", "cp a.txt b.txt", "undo", "path(\"b.txt\").exists"], "false"),
    (&["watch_start(name: \"w\", uri: \"shoal://events/journal\", on_event: x => x)"], "! arg_error source text"),
    (
        &[
            "let w = watch_start(name: \"w\", uri: \"shoal://events/journal\", \
             on_event: 'if !event.object.ok { \"failed: {event.object.head}\" }')",
            "\"{w}\"",
        ],
        "{name: \"w\", uri: \"shoal://events/journal\", shape: \"event-log\"}",
    ),
];

#[test]
fn acceptance_examples_hold_over_requests() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let mut wrong = Vec::new();
    for (at, (requests, wanted)) in EXAMPLES.iter().enumerate() {
        // Each example has a directory of its own, as it would in a session of its own.
        let home = place.work().display().to_string();
        client.ok("exec", json!({"src": format!("cd '{home}'\nmkdir e{at}\ncd e{at}")}));
        let found = last_of(&mut client, requests);
        let mut words = wanted.splitn(3, ' ');
        let holds = match (words.next(), words.next(), words.next()) {
            (Some("!"), Some(code), text) => {
                found.starts_with(&format!("! {code}")) && found.contains(text.unwrap_or_default())
            }
            _ => found == *wanted,
        };
        if !holds {
            wrong.push(format!("{requests:?}\n    wanted {wanted}\n    found  {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), EXAMPLES.len(), wrong.join("\n"));
}

#[test]
fn exit_ends_the_request_and_not_the_session() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "let kept = 7\nfn f() { exit 4\necho late > late.txt }"}));
    client.ok("exec", json!({"src": "f()\n1"}));
    assert_eq!(client.render("kept"), "7");
    assert_eq!(client.render("path(\"late.txt\").exists"), "false");
}

#[test]
fn overlapping_requests_keep_their_own_names() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let (mut first, mut second) = (kernel.attach("default"), kernel.attach("default"));
    let request = |name: &str| json!({"src": format!("let k = \"{name}\"\nsleep(300ms)\nk")});
    let (one, two) = (first.send("exec", request("a")), second.send("exec", request("b")));
    let one = first.answer(one).expect("the first answers");
    let two = second.answer(two).expect("the second answers");
    assert_eq!((inline(&one).as_str(), inline(&two).as_str()), ("a", "b"));
    let kept = first.render("k");
    assert!(kept == "a" || kept == "b", "{kept}");
}

#[test]
fn channels_cross_between_requests_tasks_and_clients() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "channel(\"build\").emit({step: 1})"}));
    assert_eq!(client.render("channel(\"build\").latest().step"), "1");
    client.ok("exec", json!({"src": "let t = spawn { channel(\"user.in\").take(timeout: 20s) }"}));
    // The task may subscribe after an event, so it is told until it has one.
    shoal_harness::until("the task has an event", || {
        client.ok("events.publish", json!({"channel": "user.in", "payload": {"a": [1, "x"]}}));
        client.render("t.is_done()") == "true"
    });
    assert_eq!(client.render("\"{t.await()}\""), "{a: [1, \"x\"]}");
    client.ok("exec", json!({"src": "channel(\"user.out\").emit({a: 1})"}));
    let page = client.ok("events.read", json!({"channel": "user.out"}));
    assert_eq!(page["events"][0]["payload"], json!({"$": "record", "v": {"a": {"$": "int", "v": 1}}}), "{page}");
}

/// Cases that are known to fail, as the evaluator's own test lists them.
const EXPECTED_FAILURES: &str = include_str!("../../worker/eval/tests/language/expected-failures");

#[test]
fn the_shared_cases_hold_for_the_program() {
    let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(shared) = repository.join("../shared").canonicalize() else { return };
    let place = Place::new();
    let names: Vec<&str> = EXPECTED_FAILURES.lines().filter(|line| !line.starts_with('#')).collect();
    let names: Vec<&str> = names.into_iter().filter_map(|line| line.split_once("::")).map(|(_, case)| case).collect();
    let list = place.write("expected-failures", names.join("\n"));
    let program = format!("{} eval --verdict", place.program("shoal").display());
    let cases = shared.join("cases");
    let run = std::process::Command::new("python3")
        .arg(shared.join("tools/run_cases.py"))
        .arg(cases.join("visible"))
        .args(["--program", &program, "--gate", "--expect-fail"])
        .arg(list)
        .arg("--deviations")
        .arg(cases.join("deviations.toml"))
        .output()
        .expect("python3 runs the cases");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
