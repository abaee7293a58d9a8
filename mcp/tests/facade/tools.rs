//! Tools: what the kernel is asked, and what the client is told.

use serde_json::{Value, json};

use crate::client::Facade;
use crate::kernel::{Kernel, Say};

fn value(n: u64, value: Value, render: &str) -> Value {
    json!({"ref":format!("out:{n}"),"uri":format!("shoal://out/{n}"),"value":value,"render":render,"elapsed_ms":1,"cwd":{"display":"/srv/site"}})
}

fn last_line(result: &Value) -> &str {
    result["content"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap()
}

#[test]
fn exec_attaches_and_reports_both_halves() {
    let kernel = Kernel::start(|_, _| Say::Result(value(8, json!({"$":"int","v":42}), "42")));
    let mut facade = Facade::legacy(&kernel, "2025-11-25");
    let result = facade.tool("shoal_exec", json!({"src":"6*7"}));
    let (_, attach) = kernel.request("session.attach");
    assert_eq!(attach["client"], json!({"kind":"mcp","tty":false,"name":"tester"}));
    assert_eq!(attach["create"]["env"]["PATH"], "/usr/bin:/bin");
    assert!(attach["create"]["env"].get("SECRET_OF_OURS").is_none() && attach["create"]["cwd"].is_string());
    let (_, exec) = kernel.request("exec");
    assert_eq!(exec, json!({"src":"6*7","mode":"run","position":"value","async":false,"timeout_ms":45000}));
    assert_eq!(result["content"][0], json!({"type":"text","text":"42"}));
    assert_eq!(result["content"][1], json!({"type":"resource_link","uri":"shoal://out/8","name":"out:8"}));
    assert_eq!(last_line(&result), "[shoal] status=ok ref=out:8 uri=shoal://out/8 elapsed_ms=1 cwd=/srv/site");
    assert_eq!(
        result["structuredContent"]["summary"],
        json!({"status":"ok","ref":"out:8","uri":"shoal://out/8","cut":[],"next":[]})
    );
    assert_eq!(result["isError"], false);
}

#[test]
fn waiting_is_as_asked_or_by_default() {
    let kernel = Kernel::start(|_, _| {
        Say::Result(json!({"task":"task:1","events":"task.1","uri":"shoal://task/1","timed_out":true}))
    });
    let mut facade = Facade::start(&kernel, &[("SHOAL_MCP_WAIT_MS", "200")]);
    facade.initialize("2025-11-25");
    let waits = |facade: &mut Facade, arguments: Value, meta: Value| {
        facade.result("tools/call", json!({"name":"shoal_exec","arguments":arguments,"_meta":meta}));
        kernel.request("exec").1["timeout_ms"].clone()
    };
    assert_eq!(waits(&mut facade, json!({"src":"x"}), json!({})), 200);
    assert_eq!(waits(&mut facade, json!({"src":"x","timeout_ms":7}), json!({})), 7);
    assert_eq!(waits(&mut facade, json!({"src":"x","timeout_ms":7}), json!({"progressToken":"p"})), 7);
    assert_eq!(waits(&mut facade, json!({"src":"x"}), json!({"progressToken":"p"})), Value::Null);
    let result = facade.tool("shoal_exec", json!({"src":"x"}));
    let summary = &result["structuredContent"]["summary"];
    assert_eq!((&summary["status"], &summary["task"]), (&json!("running"), &json!("task:1")));
    assert!(last_line(&result).contains("read shoal://task/1/log?offset=0"), "{}", last_line(&result));
}

#[test]
fn kernel_errors_are_results_with_their_code() {
    let error = json!({"code":-32002,"message":"division by zero","data":{"code":"div_zero","ref":"out:9","uri":"shoal://out/9"}});
    let kernel = Kernel::start(move |_, _| Say::Error(error.clone()));
    let mut facade = Facade::modern(&kernel);
    let result = facade.tool("shoal_exec", json!({"src":"1/0"}));
    assert_eq!((&result["isError"], &result["structuredContent"]["code"]), (&json!(true), &json!(-32002)));
    assert_eq!(result["structuredContent"]["summary"]["name"], "RAISED");
    assert_eq!(result["content"][1]["uri"], "shoal://out/9");
    assert_eq!(result["resultType"], "complete");
}

#[test]
fn methods_the_kernel_lacks_are_tool_errors() {
    let kernel = Kernel::start(|method, _| {
        Say::Error(json!({"code":-32601,"message":"method not found","data":{"method":method}}))
    });
    let mut facade = Facade::modern(&kernel);
    let result = facade.tool("shoal_pty_list", json!({}));
    assert_eq!(result["structuredContent"]["summary"]["name"], "METHOD_NOT_FOUND");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("pty.list"));
}

#[test]
fn argument_errors_by_era() {
    let kernel = Kernel::start(|_, _| Say::Later);
    let mut june = Facade::legacy(&kernel, "2025-06-18");
    let missing = json!({"name":"shoal_exec","arguments":{}});
    let error = june.error("tools/call", missing.clone());
    assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!("missing string argument \"src\"")));
    for mut newer in [Facade::legacy(&kernel, "2025-11-25"), Facade::modern(&kernel)] {
        let result = newer.result("tools/call", missing.clone());
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["code"], -32602);
        assert_eq!(result["structuredContent"]["message"], "missing string argument \"src\"");
        let unknown = newer.tool("shoal_exec", json!({"src":"1","x":1}));
        assert_eq!(unknown["structuredContent"]["data"]["reason"], "unknown_member");
        let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
        let large = newer.tool("shoal_pty_send", json!({"pty_id":"pty:1","input":deep}));
        assert_eq!(large["structuredContent"]["data"]["reason"], "too_large");
        let error = newer.error("tools/call", json!({"name":"nope"}));
        assert_eq!(error["message"], "unknown tool \"nope\"");
        assert_eq!(
            newer.result("tools/call", json!({"name":"shoal_journal","arguments":{"limit":-1}}))["isError"],
            true
        );
    }
}

#[test]
fn terminal_input_is_wider_than_its_schema() {
    let kernel = Kernel::start(|_, _| Say::Result(json!({"pty_id":"pty:1","sent":1,"complete":true})));
    let mut facade = Facade::legacy(&kernel, "2025-06-18");
    for input in [json!("x"), json!({"key":"Enter"}), json!([{"text":"a"}]), json!(["a", {"bytes":"aGk="}])] {
        let result = facade.tool("shoal_pty_send", json!({"pty_id":"pty:1","input":input}));
        assert_eq!(result["isError"], false, "{input}");
        assert_eq!(kernel.request("pty.send").1["input"], input);
    }
    let error = facade.error("tools/call", json!({"name":"shoal_pty_send","arguments":{"pty_id":"pty:1","input":[1]}}));
    assert_eq!(error["code"], -32602);
}

#[test]
fn calls_are_answered_as_they_finish() {
    let kernel = Kernel::start(|_, _| Say::Later);
    let mut facade = Facade::legacy(&kernel, "2025-11-25");
    let call = |src: &str| json!({"name":"shoal_exec","arguments":{"src":src}});
    let first = facade.request("tools/call", call("slow"));
    let (slow, _) = kernel.request("exec");
    let second = facade.request("tools/call", call("fast"));
    let (fast, _) = kernel.request("exec");
    kernel.answer(&fast, value(1, json!({"$":"int","v":1}), "1"));
    assert_eq!(facade.answer(&json!(second))["result"]["structuredContent"]["ref"], "out:1");
    kernel.answer(&slow, value(2, json!({"$":"int","v":2}), "2"));
    assert_eq!(facade.answer(&json!(first))["result"]["structuredContent"]["ref"], "out:2");
}

#[test]
fn a_cancelled_run_goes_on_and_the_next_result_says_so() {
    let kernel = Kernel::start(|method, params| match method {
        "exec" if params["src"] == "sleep 60" => Say::Later,
        "task.list" => Say::Result(json!([{"task":"task:4","state":"running","src":"sleep 60"}])),
        _ => Say::Result(value(1, json!({"$":"int","v":1}), "1")),
    });
    let mut facade = Facade::legacy(&kernel, "2025-11-25");
    let id = facade.request("tools/call", json!({"name":"shoal_exec","arguments":{"src":"sleep 60"}}));
    kernel.request("exec");
    facade.notify("notifications/cancelled", json!({"requestId":id}));
    kernel.request("task.list");
    // The note is made from the answer to the request above, which is on its way; ask until it is there.
    let noted = (0..100).find_map(|_| {
        let result = facade.tool("shoal_exec", json!({"src":"1"}));
        result["structuredContent"]["summary"]["note"].as_str().map(str::to_owned)
    });
    assert!(noted.unwrap().contains("goes on as task:4"));
    assert!(facade.rest().is_empty(), "no answer to the cancelled call");
}

#[test]
fn values_too_large_for_a_model_are_fetched_again_smaller() {
    let wide = json!({"$":"ref","uri":"shoal://out/1","of":"table","n":9000,"preview":{"$":"str","v":"x".repeat(60_000)},"render_head":""});
    let narrow = json!({"$":"ref","uri":"shoal://out/1","of":"table","n":9000,"preview":{"$":"table","cols":{},"n":5},"render_head":""});
    let kernel = Kernel::start(move |method, _| match method {
        "exec" => Say::Result(value(1, wide.clone(), &"line\n".repeat(9000))),
        _ => Say::Result(json!({"ref":"out:1","uri":"shoal://out/1","value":narrow})),
    });
    let mut facade = Facade::modern(&kernel);
    let result = facade.tool("shoal_exec", json!({"src":"x"}));
    assert_eq!(kernel.request("value.get").1, json!({"ref":"out:1","elide":{"max_bytes":16384}}));
    let structured = &result["structuredContent"];
    assert!(structured.to_string().len() <= 48 * 1024);
    assert_eq!(structured["value"]["preview"]["n"], 5);
    assert_eq!(
        structured["summary"]["cut"][0],
        json!({"what":"value","shown":5,"total":9000,"unit":"rows","uri":"shoal://out/1"})
    );
    assert_eq!(structured["summary"]["next"], json!(["shoal_get ref=out:1 slice=[0,100]"]));
}

#[test]
fn journal_entries_that_do_not_fit_are_counted() {
    let rows: Vec<Value> = (0..200).rev().map(|id| json!({"id":id,"src":"x".repeat(900)})).collect();
    let kernel = Kernel::start(move |_, _| Say::Result(json!(rows)));
    let mut facade = Facade::legacy(&kernel, "2025-06-18");
    let result = facade.tool("shoal_journal", json!({"limit":200}));
    let structured = &result["structuredContent"];
    let entries = structured["entries"].as_array().unwrap();
    let cut = &structured["summary"]["cut"][0];
    assert_eq!((&cut["what"], &cut["shown"], &cut["total"]), (&json!("entries"), &json!(entries.len()), &json!(200)));
    assert_eq!(cut["uri"], format!("shoal://journal?before={}", entries.last().unwrap()["id"]));
    assert!(structured.to_string().len() <= 48 * 1024);
}

#[test]
fn without_a_kernel_a_call_fails_and_the_facade_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut facade = Facade::at(&dir.path().join("none.sock"), dir.path(), &[]);
    facade.initialize("2025-11-25");
    assert_eq!(facade.result("tools/list", json!({}))["tools"].as_array().unwrap().len(), 13);
    for _ in 0..2 {
        let error = facade.error("tools/call", json!({"name":"shoal_exec","arguments":{"src":"1"}}));
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("no_kernel")));
    }
    assert_eq!(facade.result("resources/list", json!({}))["resources"].as_array().unwrap().len(), 6);
}

#[test]
fn a_lost_kernel_is_said_and_reached_again() {
    let kernel = Kernel::start(|_, params| match params["src"].as_str() {
        Some("stay") => Say::Later,
        _ => Say::Result(value(1, json!({"$":"int","v":1}), "1")),
    });
    let mut facade = Facade::legacy(&kernel, "2025-11-25");
    let id = facade.request("tools/call", json!({"name":"shoal_exec","arguments":{"src":"stay"}}));
    kernel.request("exec");
    kernel.drop_connections();
    let error = &facade.answer(&json!(id))["error"];
    assert_eq!((&error["code"], &error["data"]), (&json!(-32603), &json!({"reason":"kernel_lost","retry":true})));
    let result = facade.tool("shoal_exec", json!({"src":"1"}));
    assert!(result["structuredContent"]["summary"]["note"].as_str().unwrap().starts_with("the session is new"));
}

#[test]
fn an_ended_session_is_made_anew_by_the_next_call() {
    let kernel = Kernel::start(|_, params| match params["src"].as_str() {
        Some("last") => Say::Error(json!({"code":-32051,"message":"ended","data":{"session":"default"}})),
        _ => Say::Result(value(1, json!({"$":"int","v":1}), "1")),
    });
    let mut facade = Facade::legacy(&kernel, "2025-11-25");
    let ended = facade.tool("shoal_exec", json!({"src":"last"}));
    assert_eq!(ended["structuredContent"]["summary"]["next"], json!(["run again; the session's bindings are gone"]));
    kernel.request("session.attach");
    let result = facade.tool("shoal_exec", json!({"src":"1"}));
    assert_eq!(result["isError"], false);
    kernel.request("session.attach");
}
