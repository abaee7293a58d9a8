//! Watches: from a change to a notice, over worker, broker and servers.

use std::io::Write as _;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place, processes, until};

/// The next notice of a watch on this connection, which is subscribed to its channel.
pub(crate) fn notice(client: &mut Client, watch: &str) -> Vec<String> {
    let channel = format!("watch.{watch}");
    loop {
        let frame = client.frame().expect("the connection lasts");
        let params = &frame["params"];
        if frame["method"] == "event"
            && params["channel"] == channel.as_str()
            && params["payload"]["v"]["lines"].is_object()
        {
            return texts(&params["payload"]["v"]["lines"]);
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list["v"].as_array().expect("a list");
    items.iter().map(|item| item["v"].as_str().expect("a str").to_owned()).collect()
}

pub(crate) fn subscribe(client: &mut Client, channel: &str) {
    client.ok("events.subscribe", json!({"channel": channel}));
}

pub(crate) fn record(client: &mut Client, watch: &str) -> Value {
    client.ok("watch.get", json!({"name": watch}))["watch"].clone()
}

#[test]
fn an_event_becomes_a_notice() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("events.publish", json!({"channel": "user.t", "payload": {"type": "BEFORE"}}));
    let started = client.ok("watch.start", json!({"name": "w", "uri": "shoal://events/user.t"}));
    assert_eq!(started, json!({"name": "w", "uri": "shoal://events/user.t", "shape": "event-log"}));
    subscribe(&mut client, "watch.w");
    client.ok("events.publish", json!({"channel": "user.t", "payload": {"type": "Ping", "metadata": {"name": "x"}}}));
    assert_eq!(notice(&mut client, "w"), ["Ping x"]);
    let got = client.ok("watch.get", json!({"name": "w"}));
    assert_eq!((&got["watch"]["state"], &got["watch"]["events"]), (&json!("active"), &json!(1)), "{got}");
    assert_eq!((&got["channel"], got["events"].as_array().map(Vec::len)), (&json!("watch.w"), Some(1)), "{got}");
    assert_eq!(client.ok("watch.list", json!({}))["watches"][0]["name"], json!("w"));
    let again = client.err("watch.start", json!({"name": "w", "uri": "shoal://jobs"}));
    assert_eq!((again.code, &again.data["reason"]), (-32602, &json!("exists")), "{again:?}");
    assert_eq!(client.ok("watch.stop", json!({"name": "w"})), json!({"name": "w", "stopped": true}));
    assert_eq!(client.ok("watch.stop", json!({"name": "w"})), json!({"name": "w", "stopped": false}));
    assert_eq!(client.err("watch.get", json!({"name": "w"})).code, -32004);
    assert!(kernel.log().lines().any(|line| line.contains(r#""event":"watch.notice""#)), "{}", kernel.log());
}

#[test]
fn the_language_starts_reads_and_stops() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let started = client.value("watch_start(name: \"dir\", uri: \"shoal://session/cwd\")");
    assert_eq!(started["value"]["v"]["shape"], json!({"$": "str", "v": "state"}), "{started}");
    assert_eq!(client.render("watch_list().map(.name)"), client.render("[\"dir\"]"));
    subscribe(&mut client, "watch.dir");
    client.ok("exec", json!({"src": "cd /"}));
    assert_eq!(notice(&mut client, "dir").len(), 1);
    assert_eq!(client.render("read_resource(\"shoal://session/cwd\").display"), "/");
    let listed = client.render("list_resources().where(.name == \"events\").map(.subscribable)");
    assert_eq!(listed, client.render("[true]"));
    assert_eq!(client.render("watch_stop(\"dir\")"), "true");
    assert_eq!(client.render("watch_stop(\"dir\")"), "false");
    let closure =
        client.err("exec", json!({"src": "watch_start(\"c\", \"shoal://jobs\", x => x)", "position": "value"}));
    assert_eq!(closure.data["code"], json!("arg_error"), "{closure:?}");
    let unknown = client.err("exec", json!({"src": "watch_start(\"c\", \"shoal://out/1\")", "position": "value"}));
    assert_eq!(unknown.data["code"], json!("watch_failed"), "{unknown:?}");
}

#[test]
fn channels_of_the_language_and_of_clients_are_one() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    subscribe(&mut client, "user.q");
    client.ok("watch.start", json!({"name": "q", "uri": "shoal://events/user.q"}));
    subscribe(&mut client, "watch.q");
    client.ok("exec", json!({"src": "channel(\"user.q\").emit({type: \"Ping\", key: \"a\"})"}));
    let frame = client.frame().expect("the event");
    assert_eq!(frame["params"]["payload"]["v"]["key"], json!({"$": "str", "v": "a"}), "{frame}");
    assert_eq!(notice(&mut client, "q").len(), 1);
    client.ok("events.publish", json!({"channel": "user.q", "payload": {"who": "outside"}}));
    until("the language sees it", || client.render("channel(\"user.q\").latest().who") == "outside");
}

#[test]
fn filters_are_checked_before_and_choose_the_lines() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let mut refused = |filter: &str| {
        let params = json!({"name": "f", "uri": "shoal://events/user.t", "on_event": filter});
        let error = client.err("watch.start", params);
        (error.code, error.data["reason"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(refused("let ="), (-32602, "syntax".to_owned()));
    for filter in [
        "(nope_name)",
        "rm x",
        "echo x | cat",
        "sh { true }",
        "cd /",
        "spawn { 1 }",
        "env.X = \"1\"",
        "watch_stop(\"f\")",
    ] {
        assert_eq!(refused(filter).0, -32602, "{filter}");
    }
    let python = client.err("watch.start", json!({"name":"f","uri":"shoal://jobs","on_event":"x","lang":"python"}));
    assert_eq!(python.data["reason"], json!("lang_unavailable"), "{python:?}");
    assert_eq!(client.ok("watch.list", json!({}))["watches"], json!([]), "nothing was started");

    let counts = "state = (state ?? 0) + 1\nif event.type == \"Ping\" { \"{state}: {event.object.who}\" }";
    client.ok("watch.start", json!({"name": "f", "uri": "shoal://events/user.t", "on_event": counts}));
    subscribe(&mut client, "watch.f");
    for (kind, who) in [("Ping", "a"), ("Other", "b"), ("Ping", "c")] {
        client.ok("events.publish", json!({"channel": "user.t", "payload": {"type": kind, "who": who}}));
    }
    assert_eq!(notice(&mut client, "f"), ["1: a", "3: c"]);
    client.ok("events.publish", json!({"channel": "user.t", "payload": {"type": "Ping"}}));
    let lost = notice(&mut client, "f");
    assert!(lost[0].starts_with("filter error: field_missing:"), "{lost:?}");
}

#[test]
fn a_sixth_watch_is_one_too_many() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    for n in 0..5 {
        client.ok("watch.start", json!({"name": format!("w{n}"), "uri": "shoal://jobs"}));
    }
    let sixth = client.err("watch.start", json!({"name": "w5", "uri": "shoal://jobs"}));
    assert_eq!((sixth.code, &sixth.data), (-32040, &json!({"limit": "watches_per_session", "max": 5, "used": 5})));
}

#[test]
fn watches_outlive_a_worker_and_a_broker() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("watch.start", json!({"name": "kept", "uri": "shoal://events/user.t"}));
    client.ok("watch.start", json!({"name": "lost", "uri": "shoal://jobs", "persist": false}));
    subscribe(&mut client, "watch.restore");
    let worker = kernel.pids_of("shoal-worker")[0];
    processes::signal(worker, Signal::SIGKILL);
    assert_eq!(notice(&mut client, "restore"), ["restored kept"]);
    assert_eq!(record(&mut client, "kept")["state"], json!("active"));
    assert_eq!(client.err("watch.get", json!({"name": "lost"})).code, -32004);

    let broker = kernel.pids_of("shoal-broker")[0];
    processes::signal(broker, Signal::SIGKILL);
    until("a new broker", || kernel.pids_of("shoal-broker").first().is_some_and(|pid| *pid != broker));
    let mut client = kernel.attach("default");
    subscribe(&mut client, "watch.kept");
    until("the watch is active again", || record(&mut client, "kept")["state"] == "active");
    client.ok("events.publish", json!({"channel": "user.t", "payload": {"type": "After"}}));
    let lines = notice(&mut client, "kept");
    assert!(lines.iter().any(|line| line.contains("After")), "{lines:?}");
}

/// A kernel with the test server configured, and the FIFO that feeds it.
pub(crate) fn with_server(place: &Place, env: &str) -> (Kernel, PathBuf) {
    let script = place.write("server.py", include_str!("watched_server.py"));
    let feed = place.work().join("feed");
    shoal_harness::place::acting_as(place.uid(), || {
        nix::unistd::mkfifo(&feed, nix::sys::stat::Mode::S_IRWXU).map_err(std::io::Error::from)
    })
    .expect("a FIFO");
    let toml = format!(
        "[mcp.memo]\ncommand = \"python3\"\nargs = [{:?}, {:?}]\nenv = {{ {env} }}\n",
        script.display().to_string(),
        feed.display().to_string()
    );
    let config = place.path("home").join("shoal.toml");
    std::fs::write(&config, toml).expect("written");
    let folder = place.path("home");
    let kernel = Kernel::start_with(place, |command| {
        command.arg("--config").arg(&folder);
    });
    (kernel, feed)
}

pub(crate) fn feed_line(place: &Place, feed: &PathBuf, line: &str) {
    let opened = shoal_harness::place::acting_as(place.uid(), || std::fs::OpenOptions::new().write(true).open(feed));
    writeln!(opened.expect("the server reads"), "{line}").expect("written");
}

#[test]
fn a_configured_server_is_watched() {
    let place = Place::new();
    let (kernel, feed) = with_server(&place, "");
    let mut client = kernel.attach("default");
    let filter = "let seen = call_tool(\"memo\", \"look\", {what: event.object}).seen\n\"{event.type} {seen}\"";
    let started = client.ok("watch.start", json!({"name": "m", "uri": "memo://log", "on_event": filter}));
    assert_eq!(started["shape"], json!("event-log"));
    subscribe(&mut client, "watch.m");
    feed_line(&place, &feed, r#"{"type":"ADDED","object":"one"}"#);
    assert_eq!(notice(&mut client, "m"), ["ADDED one"]);
    let other = json!({"name": "n", "uri": "memo://log", "on_event": "call_tool(\"memo\", \"touch\")"});
    let refused = client.err("watch.start", other);
    assert_eq!((refused.code, &refused.data["reason"]), (-32602, &json!("filter_error")), "{refused:?}");
    assert_eq!(
        client.render("list_resources().where(.server == \"memo\").map(.uri)"),
        client.render("[\"memo://log\"]")
    );
    assert_eq!(client.render("read_resource(\"memo://log\").events.len()"), "1");
    let missing = client.err("watch.start", json!({"name": "x", "uri": "memo://nothing"}));
    assert_eq!((missing.code, &missing.data["reason"]), (-32060, &json!("not_subscribable")), "{missing:?}");

    let server = processes::tree(kernel.pid()).into_iter().find(|p| p.comm.starts_with("python")).expect("it runs");
    processes::signal(server.pid, Signal::SIGKILL);
    until("the watch resubscribed", || record(&mut client, "m")["state"] == "resubscribing");
    until("the server was started again", || record(&mut client, "m")["state"] == "active");
}

#[test]
fn an_older_server_is_read_and_not_watched() {
    let place = Place::new();
    let (kernel, _) = with_server(&place, "OLD = \"1\"");
    let mut client = kernel.attach("default");
    assert_eq!(client.render("read_resource(\"memo://log\").events.len()"), "0");
    let refused = client.err("watch.start", json!({"name": "m", "uri": "memo://log"}));
    assert_eq!(refused.code, -32060, "{refused:?}");
    assert_eq!((&refused.data["reason"], &refused.data["required_version"]), (&json!("version"), &json!("2026-07-28")));
    assert!(refused.message.contains("speaks 2025-06-18"), "{refused:?}");
}
