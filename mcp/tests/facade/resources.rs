//! Resources: lists, reads, and their errors.

use serde_json::{Value, json};

use crate::client::Facade;
use crate::kernel::{Kernel, Say};

fn kernel() -> Kernel {
    Kernel::start(|method, params| match method {
        "value.get" if params["ref"] == "out:999" => {
            Say::Error(json!({"code":-32004,"message":"unknown value ref","data":{"ref":"out:999","reason":"unknown"}}))
        }
        "value.get" if params["format"] == "render" => {
            Say::Result(json!({"ref":"out:1","uri":"shoal://out/1","render":"42"}))
        }
        "value.get" if params["format"] == "raw" => {
            Say::Result(json!({"ref":"out:1","uri":"shoal://out/1","raw_base64":"YQo="}))
        }
        "value.get" => Say::Result(json!({"ref":params["ref"],"uri":"shoal://out/1","value":{"$":"int","v":42}})),
        "session.snapshot" => Say::Result(json!({"session":"default","cwd":{"display":"/"},"state":"idle"})),
        "task.get" if params["task"] == "task:1" => {
            Say::Result(json!({"task":"task:1","state":"running","result_ref":null}))
        }
        "task.get" => Say::Result(json!({"task":"task:2","state":"completed","result_ref":"out:1"})),
        "task.list" => Say::Result(json!([{"task":"task:1","state":"running","src":"make\nall"}])),
        "pty.list" => Say::Result(json!({"ptys":[{"pty_id":"pty:3","cmd":"vim"}]})),
        "watch.list" => Say::Result(json!({"watches":[{"name":"cm","state":"active","uri":"kube://x"}]})),
        "events.read" => Say::Result(
            json!({"channel":"user.z","events":[{"channel":"user.z","seq":3,"ts":1,"payload":{"$":"record","v":{"a":{"$":"int","v":1}}}}],
            "page":{"returned":1,"next_since":3,"truncated":false,"oldest_available":0,"history_lost":false}}),
        ),
        "approval.list" => Say::Result(json!({"approvals":[{"id":"plan:a","state":"pending"}]})),
        _ => Say::Error(json!({"code":-32601,"message":"method not found"})),
    })
}

fn text(result: &Value) -> Value {
    serde_json::from_str(result["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn roots_come_first_then_what_lives() {
    let kernel = kernel();
    let mut facade = Facade::legacy(&kernel, "2025-11-25");
    let listed = facade.result("resources/list", json!({}));
    let uris: Vec<&str> =
        listed["resources"].as_array().unwrap().iter().filter_map(|entry| entry["uri"].as_str()).collect();
    assert_eq!(
        uris,
        [
            "shoal://journal",
            "shoal://jobs",
            "shoal://session/cwd",
            "shoal://session/env",
            "shoal://session/reef",
            "shoal://pty",
            "shoal://task/1",
            "shoal://pty/3",
            "shoal://watch/cm"
        ]
    );
    assert_eq!(listed["resources"][6]["description"], "running make all");
    assert_eq!(listed["resources"][8]["mimeType"], "application/vnd.asyncai.events+json");
    assert_eq!(facade.result("resources/templates/list", json!({}))["resourceTemplates"].as_array().unwrap().len(), 12);
}

#[test]
fn reads_by_shape() {
    let kernel = kernel();
    let mut facade = Facade::modern(&kernel);
    let mut read = |uri: &str| facade.result("resources/read", json!({ "uri": uri }));
    let value = read("shoal://out/1");
    assert_eq!((text(&value), &value["structuredContent"]), (json!({"$":"int","v":42}), &json!({"$":"int","v":42})));
    assert_eq!((&value["ttlMs"], &value["cacheScope"]), (&json!(0), &json!("private")));
    let render = read("shoal://out/1?format=render");
    assert_eq!(render["contents"], json!([{"uri":"shoal://out/1?format=render","mimeType":"text/plain","text":"42"}]));
    let raw = read("shoal://out/1?path=stdout&format=raw");
    assert_eq!(
        (&raw["contents"][0]["blob"], &raw["contents"][0]["mimeType"]),
        (&json!("YQo="), &json!("application/octet-stream"))
    );
    assert_eq!(text(&read("shoal://session/cwd")), json!({"display":"/"}));
    assert_eq!(text(&read("shoal://task/1/out"))["state"], "running");
    assert_eq!(text(&read("shoal://task/2/out?path=x")), json!({"$":"int","v":42}));
    assert_eq!(text(&read("shoal://approval/9b1f6c0e4d7a4c33a1e05b7d2f8890ce"))["state"], "pending");
    let log = read("shoal://events/user.z?since=2");
    assert_eq!(log["contents"][0]["mimeType"], "application/vnd.asyncai.events+json");
    let event = &text(&log)["events"][0];
    assert_eq!((&event["type"], &event["object"], &event["seq"]), (&json!("USER"), &json!({"a":1}), &json!(3)));
}

#[test]
fn errors_are_plain_or_the_kernels() {
    let kernel = kernel();
    let mut facade = Facade::legacy(&kernel, "2025-06-18");
    let error = facade.error("resources/read", json!({"uri":"shoal://out/999"}));
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!(-32004)));
    assert!(error["message"].as_str().unwrap().starts_with("kernel error: {\"code\":-32004,"));
    for uri in ["shoal://nope/1", "http://x", "shoal://", "shoal://out", "shoal://session/zzz", "shoal://out/1?slice=x"]
    {
        let error = facade.error("resources/read", json!({ "uri": uri }));
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32602), &json!(uri)));
        assert!(!error["message"].as_str().unwrap().starts_with("kernel error"));
    }
    assert_eq!(facade.error("resources/read", json!({}))["code"], -32602);
}
