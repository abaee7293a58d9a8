//! Methods that the worker answers.

use serde_json::json;
use shoal_proto::broker_worker::{Method, Position};

use crate::session::Session;

#[test]
fn a_value_is_given_whole_in_part_and_in_three_forms() {
    let mut session = Session::start();
    session.run("{a: [1, 2, 3], s: \"héllo\"}");
    let got = session.ask(Method::ValueGet, &json!({"ref": "out:1", "path": ".a[1]"})).expect("a value");
    assert_eq!((&got["value"], &got["uri"]), (&json!({"$": "int", "v": 2}), &json!("shoal://out/1?path=.a[1]")));
    let got = session.ask(Method::ValueGet, &json!({"ref": "out:1", "path": "a", "slice": [1, 9]})).expect("a value");
    assert_eq!(got["value"]["v"].as_array().map(Vec::len), Some(2));
    let got = session.ask(Method::ValueGet, &json!({"ref": "out:1", "path": "s", "format": "raw"})).expect("raw");
    assert_eq!(got["raw"], json!("héllo"));
    let got = session.ask(Method::ValueGet, &json!({"ref": "out:1", "path": "s", "format": "render"})).expect("text");
    assert_eq!(got["render"], json!("héllo"));
    let (code, data) = session.ask(Method::ValueGet, &json!({"ref": "out:1", "path": "b"})).expect_err("no such field");
    assert_eq!((code, &data["reason"]), (-32_005, &json!("path")));
    let (code, data) = session.ask(Method::ValueGet, &json!({"ref": "out:9"})).expect_err("no such value");
    assert_eq!((code, &data["reason"]), (-32_004, &json!("evicted")));
    let stored = json!({"ref": "out:9", "stored": {"$": "list", "v": [{"$": "int", "v": 5}]}, "path": "[0]"});
    assert_eq!(session.ask(Method::ValueGet, &stored).expect("a value")["value"]["v"], json!(5));
}

#[test]
fn snapshot_and_environment_follow_the_commits() {
    let mut session = Session::start();
    let facts = json!({"session": "default", "owner": "uid:0", "state": "idle", "execs_running": 0, "last_ref": null, "idle_ttl_ms": null});
    let before = session.ask(Method::Snapshot, &facts).expect("facts");
    assert_eq!((&before["cwd_exists"], &before["state"]), (&json!(true), &json!("idle")));
    session.run_stmt("env.B = \"x\"");
    let after = session.ask(Method::Snapshot, &facts).expect("facts");
    assert_ne!(before["env_hash"], after["env_hash"]);
    let env = session.ask(Method::Env, &json!({})).expect("names");
    assert_eq!((&env["granted"], &env["env"]), (&json!(false), &json!({"A": "1"})));
    assert!(env["names"].as_array().is_some_and(|names| names.contains(&json!("B"))));
}

#[test]
fn syntax_methods_know_the_session_s_names() {
    let mut session = Session::start();
    session.run_stmt("let xylophone = 1");
    let got = session.ask(Method::Complete, &json!({"src": "xyl"})).expect("names");
    assert_eq!(got["candidates"], json!(["xylophone"]));
    let got = session.ask(Method::Parse, &json!({"src": "xylophone + 1"})).expect("a tree");
    assert_eq!((&got["ast_version"], got["ast"]["stmts"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    let (code, _) = session.ask(Method::Parse, &json!({"src": "let = 3"})).expect_err("a mistake");
    assert_eq!(code, -32_001);
    let got = session.ask(Method::Explain, &json!({"src": "ls"})).expect("effects");
    assert!(got["effects"].is_array() && got["reversibility"].is_string());
}

#[test]
fn output_is_read_while_a_run_goes_on_and_after() {
    let mut session = Session::start();
    let run = session
        .begin("sh { echo one; echo two >&2; while ! test -e go; do sleep 0.01; done; echo three }", Position::Value);
    let ask = |session: &mut Session, offset: i64| {
        let params = json!({"run": run, "stream": "both", "offset": offset, "max": 16384});
        session.ask(Method::TaskOutput, &params).expect("output")
    };
    let first = loop {
        let answer = ask(&mut session, 0);
        if answer["total_seen"] == json!(8) {
            break answer;
        }
    };
    assert_eq!((&first["eof"], &first["task"]), (&json!(false), &json!(format!("task:{run}"))));
    assert_eq!(first["chunks"].as_array().map(Vec::len), Some(2));
    std::fs::File::create(session.dir.path().join("go")).expect("made");
    session.done();
    let rest = ask(&mut session, 8);
    assert_eq!((&rest["chunks"][0]["data"], &rest["eof"]), (&json!("three\n"), &json!(true)));
    let params = json!({"run": 999, "stream": "both", "offset": 0, "max": 10});
    assert_eq!(session.ask(Method::TaskOutput, &params).expect_err("unknown").0, -32_021);
}

#[test]
fn a_stream_is_fetched_once_in_order() {
    let mut session = Session::start();
    session.run("range(0, 300).stream().map(n => n * 2)");
    let mut pull = |params: serde_json::Value| session.ask(Method::StreamPull, &params);
    let first = pull(json!({"ref": "out:1", "max": 100})).expect("items");
    assert_eq!((&first["first_seq"], &first["items"][1]["v"], &first["done"]), (&json!(0), &json!(2), &json!(false)));
    let mut next = first["items"].as_array().map_or(0, Vec::len);
    while next < 300 {
        let more = pull(json!({"ref": "out:1", "max": 256})).expect("items");
        assert_eq!((&more["first_seq"], &more["items"][0]["v"]), (&json!(next), &json!(next * 2)));
        next += more["items"].as_array().map_or(0, Vec::len);
    }
    let end = pull(json!({"ref": "out:1"})).expect("an end");
    assert_eq!((&end["items"], &end["done"]), (&json!([]), &json!(true)));
    let closed = session.ask(Method::StreamClose, &json!({"ref": "out:1"})).expect("closed");
    assert_eq!(closed, json!({"ref": "out:1", "closed": true, "pulled": 300}));
    session.run("5");
    let (code, data) = session.ask(Method::StreamPull, &json!({"ref": "out:2"})).expect_err("no stream");
    assert_eq!((code, &data["reason"]), (-32_005, &json!("not_a_stream")));
    session.run("range(0, 3).stream()");
    session.run("it.collect()");
    let (code, data) = session.ask(Method::StreamPull, &json!({"ref": "out:3"})).expect_err("used");
    assert_eq!((code, &data["reason"]), (-32_005, &json!("stream_consumed")));
}
