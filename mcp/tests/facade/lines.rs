//! What lines are answered with, whatever they hold.

use serde_json::json;

use crate::client::Facade;
use crate::kernel::{Kernel, Say};

fn facade() -> (Kernel, Facade) {
    let kernel = Kernel::start(|_, _| Say::Later);
    let facade = Facade::start(&kernel, &[]);
    (kernel, facade)
}

#[test]
fn no_line_ends_the_process() {
    let (_kernel, mut facade) = facade();
    for (line, code) in [
        (&b"{bad"[..], -32700),
        (b"\xff\xfe{}", -32700),
        (b"[]", -32600),
        (b"{\"id\":5,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", -32600),
    ] {
        facade.refuses(line, code);
    }
    facade.write(b"\n  \r\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"\"}}\n");
    facade.write(b"{\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"ping\"}\r\n");
    assert_eq!(facade.answer(&json!("crlf"))["result"], json!({}));
    assert_eq!(facade.rest(), Vec::<serde_json::Value>::new());
}

#[test]
fn a_giant_line_is_refused_unstored() {
    let (_kernel, mut facade) = facade();
    facade.send(&json!({"jsonrpc":"2.0","id":1,"method":"ping"}));
    facade.answer(&json!(1));
    let before = facade.peak_memory();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        facade.write(&piece);
    }
    facade.write(b"\n");
    assert_eq!(facade.answer(&json!(null))["error"]["code"], -32600);
    facade.send(&json!({"jsonrpc":"2.0","id":2,"method":"ping"}));
    assert_eq!(facade.answer(&json!(2))["result"], json!({}));
    if let (Some(before), Some(after)) = (before, facade.peak_memory()) {
        assert!(after - before < 36 * 1024, "{before} -> {after} KiB");
    }
}

#[test]
fn a_frame_of_sixteen_mebibytes_is_taken() {
    let (_kernel, mut facade) = facade();
    let (head, tail) = (&br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"p":""#[..], &br#""}}"#[..]);
    let mut line = head.to_vec();
    line.resize((16 << 20) - tail.len(), b'x');
    line.extend_from_slice(tail);
    line.push(b'\n');
    facade.write(&line);
    assert_eq!(facade.answer(&json!(1))["result"], json!({}));
}

#[test]
fn the_last_line_needs_no_end() {
    let (_kernel, mut facade) = facade();
    facade.write(br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    assert_eq!(facade.close().0, Some(0));
    assert_eq!(facade.remaining(), [json!({"jsonrpc":"2.0","id":7,"result":{}})]);
}

#[test]
fn an_id_in_flight_cannot_be_used_again() {
    let (kernel, mut facade) = facade();
    facade.initialize("2025-11-25");
    let call = json!({"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"shoal_exec","arguments":{"src":"1"}}});
    facade.send(&call);
    let (id, _) = kernel.request("exec");
    facade.send(&call);
    assert_eq!(facade.answer(&json!("same"))["error"]["code"], -32600);
    kernel.answer(&id, json!({"ref":"out:1","value":{"$":"int","v":1},"render":"1"}));
    assert_eq!(facade.answer(&json!("same"))["result"]["isError"], false);
}

#[test]
fn the_end_of_stdin_ends_the_process_while_work_goes_on() {
    let (kernel, mut facade) = facade();
    facade.initialize("2025-11-25");
    facade.request("tools/call", json!({"name":"shoal_exec","arguments":{"src":"sleep 60"}}));
    kernel.request("exec");
    let (status, took) = facade.close();
    assert_eq!(status, Some(0));
    // The contract is one second; the bound here is for a machine that is busy with other things.
    assert!(took < crate::kernel::SOON, "{took:?}");
}
