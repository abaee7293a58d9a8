//! Both generations from one process.

use serde_json::json;

use crate::client::{Facade, meta};
use crate::kernel::{Kernel, Say};

fn kernel() -> Kernel {
    Kernel::start(|_, _| Say::Error(json!({"code":-32601,"message":"method not found"})))
}

#[test]
fn handshakes_settle_on_a_served_version() {
    for (asked, answered) in [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2099-01-01", "2025-06-18")]
    {
        let kernel = kernel();
        let mut facade = Facade::start(&kernel, &[]);
        let result = facade.initialize(asked);
        assert_eq!(result["protocolVersion"], answered);
        assert_eq!(result["serverInfo"]["name"], "shoal-mcp");
        assert_eq!(result["capabilities"]["resources"]["subscribe"], true);
        assert!(result.get("resultType").is_none());
    }
}

#[test]
fn before_a_handshake_the_missing_key_is_named() {
    let kernel = kernel();
    let mut facade = Facade::start(&kernel, &[]);
    assert_eq!(facade.result("ping", json!({})), json!({}));
    let error = facade.error("tools/list", json!({}));
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("io.modelcontextprotocol/protocolVersion"));
}

#[test]
fn the_modern_era_remembers_nothing_and_says_everything() {
    let kernel = kernel();
    let mut facade = Facade::modern(&kernel);
    let found = facade.result("server/discover", json!({}));
    assert_eq!(found["supportedVersions"], json!(["2026-07-28", "2025-11-25", "2025-06-18"]));
    assert_eq!(
        (&found["resultType"], &found["ttlMs"], &found["cacheScope"]),
        (&json!("complete"), &json!(300_000), &json!("public"))
    );
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "shoal-mcp");
    for gone in ["ping", "initialize", "resources/subscribe", "resources/unsubscribe", "prompts/list"] {
        let error = facade.error(gone, json!({}));
        assert_eq!((&error["code"], &error["data"]["method"]), (&json!(-32601), &json!(gone)));
    }
    let list = facade.result("resources/list", json!({}));
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(0), &json!("private")));
}

#[test]
fn other_versions_are_told_which_are_served() {
    let kernel = kernel();
    let mut facade = Facade::start(&kernel, &[]);
    let mut other = meta(json!({}));
    other["io.modelcontextprotocol/protocolVersion"] = json!("1999-01-01");
    let error = facade.error("server/discover", json!({ "_meta": other }));
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"], json!({"supported":["2026-07-28","2025-11-25","2025-06-18"],"requested":"1999-01-01"}));
}

#[test]
fn both_eras_in_one_process() {
    let kernel = kernel();
    let mut facade = Facade::modern(&kernel);
    assert_eq!(facade.result("tools/list", json!({}))["resultType"], "complete");
    let mut plain = json!({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18"}});
    facade.send(&plain);
    assert_eq!(facade.answer(&json!("i"))["result"]["protocolVersion"], "2025-06-18");
    plain = json!({"jsonrpc":"2.0","id":"l","method":"tools/list"});
    facade.send(&plain);
    let listed = facade.answer(&json!("l"));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 13);
    assert!(listed["result"].get("resultType").is_none());
    let error = facade.error("tools/list", json!({"cursor": ""}));
    assert_eq!(error["code"], -32602);
}
