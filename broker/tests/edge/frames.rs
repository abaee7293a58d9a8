//! Frames and what clients do to them.

use std::io::Write as _;

use serde_json::json;

use crate::kernel::Kernel;

#[test]
fn strangers_get_the_version_and_nothing_else() {
    let kernel = Kernel::start();
    let mut client = kernel.connect();
    assert_eq!(client.ok("kernel.version", json!({}))["protocol"], 1);
    assert_eq!(client.fails("task.list", json!({})).0, -32000);
    assert_eq!(client.fails("session.steal", json!({})), (-32601, json!({"method": "session.steal"})));
    assert_eq!(client.fails("kernel.version", json!({"x": 1})).1["reason"], "unknown_member");
}

#[test]
fn ids_of_any_shape_come_back_and_bad_frames_end_the_connection() {
    let kernel = Kernel::start();
    let mut client = kernel.connect();
    client.stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":{\"a\":1},\"method\":\"kernel.version\"}\r\n").expect("sent");
    assert_eq!(client.frame().expect("answered")["id"], json!({"a": 1}));
    client.stream.write_all(b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"kernel.version\"}\n").expect("sent");
    assert_eq!(client.frame().expect("answered")["error"]["code"], -32600);
    for bad in ["{bad", "[]", "", r#"{"jsonrpc":"2.0","method":"kernel.version"}"#] {
        let mut client = kernel.connect();
        client.stream.write_all(format!("{bad}\n").as_bytes()).expect("sent");
        assert_eq!(client.frame(), None, "{bad}");
    }
}

#[test]
fn a_giant_frame_ends_its_connection_and_no_other() {
    let kernel = Kernel::start();
    let mut other = kernel.attach("a");
    let mut client = kernel.connect();
    let block = vec![b'x'; 1024 * 1024];
    let mut sent = 0;
    while sent < 64 && client.stream.write_all(&block).is_ok() {
        sent += 1;
    }
    assert!((16..64).contains(&sent), "{sent} MiB were taken");
    assert_eq!(client.frame(), None);
    assert_eq!(other.ok("exec", json!({"src": "value 1"}))["ref"], "out:1");
}

#[test]
fn half_a_frame_has_its_time() {
    let kernel = Kernel::with(&[("frame_read_timeout_ms", 100)]);
    let mut client = kernel.attach("a");
    client.stream.write_all(b"{\"jsonrpc\":").expect("sent");
    assert_eq!(client.frame(), None);
}

#[test]
fn ten_thousand_pipelined_requests_are_answered() {
    let kernel = Kernel::start();
    let mut client = kernel.attach("a");
    let mut writer = client.stream.try_clone().expect("a copy");
    let sender = std::thread::spawn(move || {
        for n in 0..10_000 {
            let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"task.list\"}}\n");
            writer.write_all(frame.as_bytes()).expect("sent");
        }
    });
    let mut seen = vec![false; 10_000];
    for _ in 0..10_000 {
        let frame = client.frame().expect("answered");
        assert_eq!(frame["result"], json!([]));
        let id = usize::try_from(frame["id"].as_u64().expect("a number")).expect("small");
        assert!(!std::mem::replace(&mut seen[id], true), "{id} twice");
    }
    sender.join().expect("sender");
}

#[test]
fn a_client_that_never_reads_is_bounded_and_closed() {
    let kernel = Kernel::start();
    let mut other = kernel.attach("a");
    let big = "x".repeat(1024 * 1024);
    let mut client = kernel.attach("b");
    // Each answer repeats the megabyte that was asked with; nobody reads them.
    let mut asked = 0;
    while asked < 500 {
        let frame = json!({"jsonrpc": "2.0", "id": asked, "method": "complete", "params": {"src": big}});
        if client.stream.write_all(format!("{frame}\n").as_bytes()).is_err() {
            break;
        }
        asked += 1;
    }
    assert!(asked < 500, "the connection was given up");
    let process = shoal_sys::procfs::process(kernel.pid).expect("read").expect("alive");
    assert!(process.rss < 400 * 1024 * 1024, "{} bytes", process.rss);
    assert_eq!(other.ok("exec", json!({"src": "value 1"}))["ref"], "out:1");
}

#[test]
fn the_surplus_connection_is_told_and_closed() {
    let kernel = Kernel::with(&[("connections", 1)]);
    let mut first = kernel.attach("a");
    let mut surplus = kernel.connect();
    let (code, data) = surplus.fails("kernel.version", json!({}));
    assert_eq!((code, &data["limit"]), (-32040, &json!("connections")));
    assert_eq!(surplus.frame(), None);
    first.ok("task.list", json!({}));
}

#[test]
fn frames_behind_an_attach_wait_for_it() {
    let kernel = Kernel::start();
    let mut client = kernel.connect();
    let attach = client.send("session.attach", json!({"session": "a"}));
    let list = client.send("task.list", json!({}));
    assert_eq!(client.answer(attach).expect("attached")["created"], true);
    assert_eq!(client.answer(list), Ok(json!([])));
}
