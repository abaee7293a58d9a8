//! How many terminals there may be, and whose they are.

use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place};

use crate::plans::agent;

fn open(client: &mut Client) -> Result<String, shoal_harness::RpcError> {
    let opened = client.call("pty.open", json!({"cmd": "sleep", "args": ["600"]}))?;
    Ok(opened["pty_id"].as_str().expect("an id").to_owned())
}

fn limited(place: &Place, limits: &[&str]) -> Kernel {
    Kernel::start_with(place, |command| {
        for limit in limits {
            command.args(["--limit", limit]);
        }
    })
}

fn refused(client: &mut Client, limit: &str, max: u64) {
    let error = open(client).expect_err("one too many");
    assert_eq!((error.code, &error.data), (-32040, &json!({"limit": limit, "max": max, "used": max})), "{error:?}");
}

#[test]
fn terminals_are_counted_per_session_per_owner_and_together() {
    let place = Place::new();
    let kernel = limited(&place, &["ptys_per_session=2", "ptys_per_principal=3"]);
    let (mut a, mut b) = (kernel.attach("a"), kernel.attach("b"));
    let first = open(&mut a).expect("one");
    open(&mut a).expect("two");
    refused(&mut a, "ptys_per_session", 2);
    open(&mut b).expect("of another session");
    refused(&mut b, "ptys_per_principal", 3);
    // Closing gives back; what is refused costs nothing and disturbs nothing.
    a.ok("pty.close", json!({"pty_id": first}));
    open(&mut b).expect("there is room again");
    refused(&mut b, "ptys_per_session", 2);
    assert_eq!(a.ok("pty.list", json!({}))["ptys"].as_array().map(Vec::len), Some(1));
    drop(kernel);

    let place = Place::new();
    let kernel = limited(&place, &["ptys=1"]);
    open(&mut kernel.attach("a")).expect("one");
    refused(&mut kernel.attach("b"), "ptys", 1);
    // A program that has ended keeps its screen and its place; a session that ends gives all back.
    kernel.attach("c").ok("session.kill", json!({"session": "a"}));
    open(&mut kernel.attach("b")).expect("there is room again");
}

#[test]
fn a_terminal_of_another_session_or_owner_is_unknown() {
    let place = Place::new();
    let kernel = crate::plans::start(&place);
    let mut human = kernel.attach("default");
    let mut docs = agent(&kernel, &mut human, "agent:docs");
    let (theirs, closed) = (open(&mut human).expect("opened"), open(&mut human).expect("opened"));
    human.ok("pty.close", json!({"pty_id": closed}));
    let mut beside = kernel.attach("beside");
    let calls = |pty: &str| -> Vec<(&str, Value)> {
        vec![
            ("pty.send", json!({"pty_id": pty, "input": "x"})),
            ("pty.read", json!({"pty_id": pty})),
            ("pty.resize", json!({"pty_id": pty, "cols": 20, "rows": 5})),
            ("pty.close", json!({"pty_id": pty})),
        ]
    };
    for stranger in [&mut docs, &mut beside] {
        for (method, params) in calls(&theirs) {
            let foreign = stranger.err(method, params);
            assert_eq!((foreign.code, &foreign.data["pty_id"]), (-32022, &json!(theirs)), "{method}: {foreign:?}");
        }
        // Whether it is still open elsewhere is nobody's business.
        let open = stranger.err("pty.read", json!({"pty_id": theirs}));
        let ended = stranger.err("pty.read", json!({"pty_id": closed}));
        assert_eq!((open.message, &open.data["reason"]), (ended.message, &ended.data["reason"]));
        assert_eq!(stranger.ok("pty.list", json!({})), json!({"ptys": []}));
    }
    // Its events are its owner's too.
    docs.ok("events.subscribe", json!({"channel": theirs.replace(':', ".")}));
    human.ok("pty.resize", json!({"pty_id": theirs, "cols": 30, "rows": 6}));
    let read = docs.ok("events.read", json!({"channel": theirs.replace(':', ".")}));
    assert_eq!(read["events"], json!([]), "{read}");
    assert_eq!(human.ok("pty.read", json!({"pty_id": theirs}))["alive"], json!(true), "nobody reached it");
}
