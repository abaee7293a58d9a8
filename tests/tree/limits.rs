//! Bad input on the public socket: its documented end, memory bounded, everybody else undisturbed.

use serde_json::json;
use shoal_harness::{Kernel, Place};

fn resident_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("readable");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("a resident size");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn requests_before_attach_and_unknown_ones() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.connect();
    assert_eq!(client.ok("kernel.version", json!({}))["protocol"], json!(1));
    assert_eq!(client.err("exec", json!({"src": "1"})).code, -32000);
    assert_eq!(client.err("no.such", json!({})).code, -32601);
    client.attach("default");
    let unknown = client.err("exec", json!({"src": "1", "timeout": 5}));
    assert_eq!((unknown.code, unknown.data["reason"].as_str()), (-32602, Some("unknown_member")), "{unknown:?}");
    assert_eq!(unknown.data["nearest"], json!("timeout_ms"));
    assert_eq!(client.err("exec", json!({})).data["reason"], json!("missing"));
    assert_eq!(client.err("exec", json!({"src": 5})).data["reason"], json!("type"));
    client.send_raw(b"{\"jsonrpc\":\"1.0\",\"id\":\"v\",\"method\":\"kernel.version\"}\n").expect("sent");
    assert_eq!(client.frame().expect("answered")["error"]["code"], json!(-32600));
}

#[test]
fn broken_frames_end_the_connection_without_a_word() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    for bytes in [&b"\n"[..], b"{\n", b"[]\n", b"{\"method\":\"kernel.version\"}\n", b"\xff\xfe\n", b"5\n"] {
        let mut client = kernel.connect();
        client.send_raw(bytes).expect("sent");
        assert!(client.frame().is_none(), "{bytes:?}");
    }
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{}{}}}\n",
        "[".repeat(80),
        "]".repeat(80)
    );
    let mut client = kernel.connect();
    client.send_raw(deep.as_bytes()).expect("sent");
    assert!(client.frame().is_none());
    kernel.attach("default").value("1");
}

/// Connections and sessions are counted, but not so that one person meets a limit in a day's work.
#[test]
fn one_person_has_fifty_sessions_and_opens_sixteen_more_at_once() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut clients: Vec<_> = (0..66).map(|_| kernel.connect()).collect();
    for client in &mut clients {
        client.ok("kernel.version", json!({}));
    }
    let mut at_once = clients.split_off(50);
    for (n, client) in clients.iter_mut().enumerate() {
        client.attach(&format!("s{n}"));
    }
    let session =
        |n: usize| json!({"session": format!("c{n}"), "client": {"kind": "test", "name": "test", "tty": false}});
    let sent: Vec<i64> =
        at_once.iter_mut().enumerate().map(|(n, client)| client.send("session.attach", session(n))).collect();
    for (client, id) in at_once.iter_mut().zip(sent) {
        client.answer(id).expect("attached");
    }
    for (n, client) in clients.iter_mut().chain(&mut at_once).enumerate() {
        assert_eq!(client.render(&format!("{n} + 1")), (n + 1).to_string());
    }
}

#[test]
fn a_limit_names_itself_and_how_it_is_changed() {
    let place = Place::new();
    let kernel = Kernel::start_with(&place, |kernel| {
        kernel.args(["--limit", "sessions=1"]);
    });
    let _kept = kernel.attach("a");
    let refused = kernel.connect().err("session.attach", json!({"session": "b"}));
    assert_eq!((refused.code, &refused.data), (-32040, &json!({"limit": "sessions", "max": 1, "used": 1})));
    assert!(refused.message.contains("--limit sessions=N"), "{}", refused.message);
}

#[test]
fn a_giant_frame_is_cut_while_it_is_read() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let broker = kernel.pids_of("shoal-broker")[0];
    let mut client = kernel.connect();
    let chunk = vec![b'x'; 1024 * 1024];
    let mut refused = false;
    for _ in 0..64 {
        if client.send_raw(&chunk).is_err() {
            refused = true;
            break;
        }
    }
    assert!(refused, "64 MiB were taken");
    assert!(resident_kib(broker) < 120 * 1024, "{} KiB", resident_kib(broker));
    kernel.attach("default").value("1");
}

#[test]
fn ten_thousand_pipelined_requests_are_all_answered() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let mut reader = std::collections::HashSet::new();
    let mut sent = Vec::new();
    for _ in 0..100 {
        for _ in 0..100 {
            sent.push(client.send("session.snapshot", json!({})));
        }
        for id in sent.drain(..) {
            client.answer(id).expect("answered");
            reader.insert(id);
        }
    }
    assert_eq!(reader.len(), 10_000);
}

#[test]
fn a_client_that_never_reads_is_closed_and_memory_stays_bounded() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let broker = kernel.pids_of("shoal-broker")[0];
    let mut deaf = kernel.attach("deaf");
    deaf.ok("exec", json!({"src": "let big = 'x'.repeat(60000)"}));
    let request = json!({"jsonrpc": "2.0", "id": 9, "method": "value.get", "params": {"ref": "out:1", "elide": {"max_bytes": 65536}}});
    let line = format!("{request}\n");
    let mut closed = false;
    for _ in 0..20_000 {
        if deaf.send_raw(line.as_bytes()).is_err() {
            closed = true;
            break;
        }
    }
    assert!(closed || resident_kib(broker) < 160 * 1024, "{} KiB", resident_kib(broker));
    assert_eq!(kernel.attach("other").render("1 + 1"), "2");
}
