//! What a filter may cost for one event: time, memory, calls, text. Whatever it does, its watch lives on, the session is
//! not held up, and the next event has everything again.

use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place};

use crate::watches::{feed_line, notice, record, subscribe, with_server};

/// Starts a watch of a channel of its own whose filter acts on events of type `go`.
fn watch(client: &mut Client, name: &str, filter: &str) {
    let uri = format!("shoal://events/user.{name}");
    let on_event = format!("if event.type == \"go\" {{\n{filter}\n}} else {{ event.type }}");
    client.ok("watch.start", json!({"name": name, "uri": uri, "on_event": on_event}));
    subscribe(client, &format!("watch.{name}"));
}

fn publish(client: &mut Client, name: &str, payload: Value) {
    client.ok("events.publish", json!({"channel": format!("user.{name}"), "payload": payload}));
}

/// The lines of an event that costs too much and of an ordinary one behind it.
fn lines(client: &mut Client, name: &str, filter: &str) -> Vec<String> {
    watch(client, name, filter);
    publish(client, name, json!({"type": "go"}));
    publish(client, name, json!({"type": "next"}));
    assert_eq!(client.render("6 * 7"), "42", "the session is not held up");
    let mut lines = notice(client, name);
    if lines.len() < 2 {
        // The first event took longer than a notice is held back.
        lines.extend(notice(client, name));
    }
    assert_eq!(record(client, name)["state"], json!("active"));
    client.ok("watch.stop", json!({"name": name}));
    lines
}

#[test]
fn time_and_depth_are_bounded_for_each_event() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let late = ["filter error: timeout: the filter ran longer than 2 s", "next"];
    assert_eq!(lines(&mut client, "loop", "while true { }"), late);
    assert_eq!(lines(&mut client, "wait", "sleep 600s"), late);
    let swallowed = "while true { try { while true { } } catch e { 1 } }";
    assert_eq!(lines(&mut client, "swallow", swallowed), late, "an error that is caught buys no time");
    let deep = lines(&mut client, "deep", "fn f(x) { f(x + 1) }\nf(1)");
    assert!(deep[0].starts_with("filter error: recursion_limit: ") && deep[1] == "next", "{deep:?}");
    let huge = lines(&mut client, "huge", "(1..1000000000).map(x => x).len()");
    assert!(huge[0].starts_with("filter error: ") && huge[1] == "next", "{huge:?}");
}

#[test]
fn memory_is_bounded_for_each_event() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let full = ["filter error: budget_exceeded: a filter has 64 MiB for an event", "next"];
    for (name, filter) in [
        ("text", "var s = \"x\"\nwhile true { s = s + s }"),
        ("grown", "var s = \"x\"\nwhile true { s += s }"),
        ("list", "var l = [1]\nwhile true { l = l + l }"),
        ("within", "fn f() { var l = [1]\nwhile true { l += l } }\nf()"),
        ("repeated", "\"x\".repeat(100000000)"),
    ] {
        assert_eq!(lines(&mut client, name, filter), full, "{name}");
    }
    let many = lines(&mut client, "many", "var l = []\nfor i in 0..10000 { l += [i] }\n\"{l.len()}\"");
    assert_eq!(many, ["10000", "next"], "what grows in place costs what it grows by");
}

#[test]
fn resource_calls_are_counted_for_each_event() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let reads = |n: usize| format!("for i in 1..={n} {{ read_resource(\"shoal://session/cwd\") }}\n\"read {n}\"");
    assert_eq!(lines(&mut client, "ten", &reads(10)), ["read 10", "next"]);
    let eleven = lines(&mut client, "eleven", &reads(11));
    assert_eq!(eleven, ["filter error: budget_exceeded: a filter has 10 resource calls for an event", "next"]);
    // Each event has its ten.
    watch(&mut client, "each", &reads(10));
    for _ in 0..3 {
        publish(&mut client, "each", json!({"type": "go"}));
    }
    assert_eq!(notice(&mut client, "each"), ["read 10 ×3"]);
}

#[test]
fn tool_calls_are_counted_for_each_event() {
    let place = Place::new();
    let (kernel, feed) = with_server(&place, "");
    let mut client = kernel.attach("default");
    let calls = "for i in 1..=event.object { call_tool(\"memo\", \"look\", {what: i}) }\n\"called {event.object}\"";
    client.ok("watch.start", json!({"name": "m", "uri": "memo://log", "on_event": calls}));
    subscribe(&mut client, "watch.m");
    for calls in [10, 11, 10] {
        feed_line(&place, &feed, &json!({"type": "ADDED", "object": calls}).to_string());
    }
    let told = notice(&mut client, "m");
    assert_eq!(told, ["called 10 ×2", "filter error: budget_exceeded: a filter has 10 tool calls for an event"]);
}

#[test]
fn lines_are_short_whatever_a_filter_or_an_event_makes_of_them() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let long = lines(&mut client, "long", "\"é\".repeat(5000)");
    assert!(long[0].len() <= 1024 && long[0].starts_with("éé"), "{} bytes", long[0].len());
    let tricky = lines(&mut client, "tricky", "\"a\\nb\\u{1b}[2J</watch-event>\"");
    assert_eq!(tricky[0], "a b[2J<\\/watch-event>");

    // A filter sees an event whole as long as a reader of the log would; of a larger one it sees that it was left out.
    watch(&mut client, "big", "\"{event.object.text.len()}\"");
    publish(&mut client, "big", json!({"type": "go", "text": "x".repeat(20_000)}));
    assert_eq!(notice(&mut client, "big"), ["20000"]);
    watch(&mut client, "huge", "\"left out: {event.elided}\"");
    publish(&mut client, "huge", json!({"type": "go", "text": "x".repeat(65_000)}));
    assert_eq!(notice(&mut client, "huge"), ["left out: true"]);
    let over = json!({"channel": "user.big", "payload": {"type": "go", "text": "x".repeat(65_536)}});
    assert_eq!(client.err("events.publish", over).code, -32602);

    // A flood is processed pass by pass, and told in twenty lines and a number.
    watch(&mut client, "flood", "\"{event.object.n}\"");
    for n in 0..250 {
        publish(&mut client, "flood", json!({"type": "go", "n": n}));
    }
    let mut seen = 0;
    while seen < 250 {
        let frame = client.frame().expect("the connection lasts");
        let payload = &frame["params"]["payload"]["v"];
        if frame["params"]["channel"] == "watch.flood" {
            let shown = payload["lines"]["v"].as_array().map_or(0, Vec::len) as i64;
            assert!(shown <= 20, "{frame}");
            seen += shown + payload["more"]["v"].as_i64().unwrap_or(0);
        }
    }
    assert_eq!((seen, record(&mut client, "flood")["events"].clone()), (250, json!(250)), "none is lost");
}

#[test]
fn a_filter_has_a_size() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let of = |bytes: usize| format!("#{}\n1", "x".repeat(bytes - 3));
    let params = |source: String| json!({"name": "f", "uri": "shoal://jobs", "on_event": source});
    let refused = client.err("watch.start", params(of(64 * 1024 + 1)));
    assert_eq!((refused.code, &refused.data["param"]), (-32602, &json!("on_event")), "{refused:?}");
    let src = format!("watch_start(\"f\", \"shoal://jobs\", '''{}''')", of(64 * 1024 + 1));
    let raised = client.err("exec", json!({"src": src, "position": "value"}));
    assert!(raised.message.contains("65536"), "{raised:?}");
    assert_eq!(client.ok("watch.list", json!({}))["watches"], json!([]));
    client.ok("watch.start", params(of(64 * 1024)));
}
