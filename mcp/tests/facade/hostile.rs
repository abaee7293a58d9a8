//! Clients that are careless, greedy or odd.

use serde_json::{Value, json};

use crate::client::{Facade, meta};
use crate::kernel::{Kernel, Say};

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

fn value(n: i64) -> Value {
    json!({"ref":"out:1","uri":"shoal://out/1","value":{"$":"int","v":n},"render":n.to_string()})
}

/// Keeps runs for the test to answer, and answers the rest.
fn slow_kernel() -> Kernel {
    Kernel::start(|method, _| match method {
        "exec" => Say::Later,
        "task.list" => Say::Result(json!([{"task":"task:9","state":"running","src":"sleep 60"}])),
        _ => Say::Result(json!({})),
    })
}

#[test]
fn ids_come_back_as_they_were_or_not_at_all() {
    let kernel = slow_kernel();
    let mut facade = Facade::start(&kernel, &[]);
    for id in ["0", "-1", "9007199254740993", "18446744073709551615", r#""""#, r#""é\u0000☃\"""#] {
        facade.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes());
        facade.write(b"\n");
        assert_eq!(facade.answer(&serde_json::from_str(id).unwrap())["result"], json!({}), "{id}");
    }
    for id in ["1e3", "1.0", "-0", "123456789012345678901234567890", "true", "[1]", r#"{"a":1}"#, r#""\ud800""#] {
        facade.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes());
        facade.write(b"\n");
        assert_eq!(facade.answer(&json!(null))["error"]["code"], -32600, "{id}");
    }
    for (line, code) in [
        (&b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"[..], -32700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}",
            -32700,
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"\x00\",\"method\":\"ping\"}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"p\":NaN}}", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{},\"params\":{}}", -32600),
    ] {
        facade.refuses(line, code);
    }
    assert_eq!(facade.rest(), Vec::<Value>::new());
}

#[test]
fn a_storm_of_cancelled_calls_leaves_one_note_and_no_answers() {
    let kernel = slow_kernel();
    let mut facade = Facade::modern(&kernel);
    for _ in 0..2000 {
        let id = facade.request("tools/call", json!({"name":"shoal_exec","arguments":{"src":"sleep 60"}}));
        facade.notify("notifications/cancelled", json!({"requestId":id}));
    }
    // Runs that were asked for before their cancel came go on; the kernel tells of one, however many there were.
    let mut noted = Value::Null;
    while noted.is_null() {
        noted = facade.tool("shoal_pty_list", json!({}))["structuredContent"]["summary"]["note"].take();
    }
    assert_eq!(noted, "the cancelled call goes on as task:9; shoal_cancel task=task:9 ends it");
    assert_eq!(facade.rest(), Vec::<Value>::new(), "a cancelled request has no answer");
    for odd in [json!({}), json!({"requestId":{}}), json!({"requestId":"never"}), json!(5), json!(null)] {
        facade.notify("notifications/cancelled", odd);
    }
    assert_eq!(facade.rest(), Vec::<Value>::new());
}

#[test]
fn calls_beyond_the_bound_are_told_and_the_rest_is_answered_in_any_order() {
    let kernel = slow_kernel();
    let mut facade = Facade::modern(&kernel);
    let call = json!({"name":"shoal_exec","arguments":{"src":"x"}});
    let calls: Vec<u64> = (0..256).map(|_| facade.request("tools/call", call.clone())).collect();
    let busy = facade.error("tools/call", call.clone());
    assert_eq!(busy["code"], -32603);
    assert!(busy["message"].as_str().unwrap().contains("call again"), "{busy}");
    facade.send(&json!({"jsonrpc":"2.0","id":"alive","method":"server/discover","params":{"_meta":meta(json!({}))}}));
    assert!(facade.answer(&json!("alive"))["result"].is_object(), "constants are answered all the same");
    let mut asked: Vec<Value> = calls.iter().map(|_| kernel.request("exec").0).collect();
    asked.reverse();
    for (n, id) in (0..).zip(&asked) {
        kernel.answer(id, value(n));
    }
    let answered =
        calls.iter().map(|id| facade.answer(&json!(id))["result"]["structuredContent"]["value"]["v"].clone());
    let mut answered: Vec<i64> = answered.map(|value| value.as_i64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..256).collect::<Vec<_>>(), "each call has an answer of its own");
    let id = facade.request("tools/call", call);
    kernel.answer(&kernel.request("exec").0, value(1));
    assert_eq!(facade.answer(&json!(id))["result"]["isError"], false, "there is room again");
}

#[test]
fn listen_streams_have_a_bound_of_their_own() {
    let kernel = Kernel::start(|_, _| Say::Result(json!({"ptys":[]})));
    let mut facade = Facade::modern(&kernel);
    let wanted = json!({"notifications":{"resourceSubscriptions":["shoal://jobs"]}});
    let streams: Vec<u64> = (0..64).map(|_| facade.request("subscriptions/listen", wanted.clone())).collect();
    for _ in &streams {
        facade.notification(ACKNOWLEDGED);
    }
    let refused = facade.error("subscriptions/listen", wanted.clone());
    assert_eq!(refused["code"], -32603);
    assert!(refused["message"].as_str().unwrap().starts_with("subscription limit reached"), "{refused}");
    assert_eq!(facade.tool("shoal_pty_list", json!({}))["isError"], false, "calls are not held up by streams");
    facade.notify("notifications/cancelled", json!({"requestId":streams[0]}));
    facade.request("subscriptions/listen", wanted);
    facade.notification(ACKNOWLEDGED);
    assert_eq!(facade.close().0, Some(0));
}

#[test]
fn subscriptions_that_cross_stay_within_their_bound() {
    let kernel = slow_kernel();
    let mut facade = Facade::start(&kernel, &[]);
    facade.initialize("2025-06-18");
    let asked: Vec<u64> = (0..200)
        .map(|n| facade.request("resources/subscribe", json!({"uri":format!("shoal://events/user.n{n}")})))
        .collect();
    let accepted = asked.iter().filter(|id| facade.answer(&json!(id)).get("result").is_some()).count();
    assert_eq!(accepted, 64);
    for uri in ["", "jobs", "1:x", "out:", ":", "no scheme"] {
        let answer = facade.call("resources/subscribe", json!({"uri":uri}));
        assert_eq!(answer.get("error").is_some(), uri != "out:", "{uri}: {answer}");
    }
}

#[test]
fn odd_progress_tokens_and_cursors() {
    let kernel = Kernel::start(|_, _| Say::Result(value(1)));
    let mut facade = Facade::start(&kernel, &[("SHOAL_MCP_WAIT_MS", "7")]);
    facade.initialize("2025-11-25");
    let mut wait = |token: Value| {
        let call = json!({"name":"shoal_exec","arguments":{"src":"1"},"_meta":{"progressToken":token}});
        assert_eq!(facade.result("tools/call", call)["isError"], false);
        kernel.request("exec").1["timeout_ms"].clone()
    };
    for token in [json!("p"), json!(0), json!(-1), json!(1.5), json!("x".repeat(1000))] {
        assert_eq!(wait(token), Value::Null, "a client that is kept awake waits without limit");
    }
    for odd in [json!(true), json!(null), json!({}), json!([1])] {
        assert_eq!(wait(odd), 7, "no token");
    }
    for list in ["tools/list", "resources/list", "resources/templates/list"] {
        for made_up in [json!("x"), json!(""), json!(5), json!({})] {
            assert_eq!(facade.error(list, json!({"cursor":made_up}))["data"]["param"], "cursor");
        }
        facade.result(list, json!({"cursor":null}));
    }
}

#[test]
fn names_nobody_has_are_not_repeated_at_length() {
    let kernel = slow_kernel();
    let mut facade = Facade::start(&kernel, &[]);
    facade.initialize("2025-06-18");
    let cyrillic = facade.error("tools/call", json!({"name":"sh\u{43e}al_exec"}));
    assert_eq!((&cyrillic["code"], &cyrillic["data"]["nearest"]), (&json!(-32602), &json!("shoal_exec")));
    for name in ["", "exec", "shoal_exec\n", "shoal_exec\u{202e}", "☃"] {
        let error = facade.error("tools/call", json!({"name":name}));
        assert!(error["data"]["expected"].as_str().unwrap().contains("shoal_exec, shoal_plan"), "{error}");
    }
    let long = "é".repeat(1 << 20);
    for (method, params) in [
        ("tools/call", json!({"name":long})),
        ("tools/call", json!({"name":"shoal_exec","arguments":{"src":"1",&long:1}})),
        ("resources/read", json!({"uri":long})),
        ("resources/subscribe", json!({"uri":long})),
        (long.as_str(), json!({})),
    ] {
        let answer = facade.error(method, params).to_string();
        assert!(answer.len() < 16 * 1024, "{} bytes repeat what the client sent", answer.len());
    }
}

#[test]
fn stdin_that_ends_within_a_line_is_answered_and_ends_the_process() {
    let kernel = slow_kernel();
    let mut facade = Facade::modern(&kernel);
    facade.request("tools/call", json!({"name":"shoal_exec","arguments":{"src":"sleep 60"}}));
    kernel.request("exec");
    facade.write(br#"{"jsonrpc":"2.0","id":7,"method":"to"#);
    assert_eq!(facade.close().0, Some(0));
    let left = facade.remaining();
    assert_eq!((left.len(), &left[0]["error"]["code"]), (1, &json!(-32700)), "{left:?}");
}
