//! Methods that look at source and run nothing.

use serde_json::json;
use shoal_harness::{Kernel, Place};

#[test]
fn a_tree_is_explained_like_its_source() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "let goal = 'a.txt'"}));
    let source = "for f in [goal] { rm (f) }\n^git status";
    let tree = client.ok("parse", json!({"src": source}))["ast"].clone();
    let by_source = client.ok("explain", json!({"src": source}));
    let by_tree = client.ok("explain", json!({"ast": tree}));
    assert_eq!(by_tree, by_source);
    assert!(by_tree["effects"].as_array().is_some_and(|effects| !effects.is_empty()), "{by_tree}");

    let missing = client.err("explain", json!({}));
    assert_eq!((missing.code, missing.data["reason"].as_str()), (-32602, Some("missing")), "{missing:?}");
    let mut broken = client.ok("parse", json!({"src": "1 + 2"}))["ast"].clone();
    broken["stmts"][0]["expr"]["lhs"] = json!(7);
    let refused = client.err("explain", json!({"ast": broken}));
    assert_eq!((refused.code, refused.data["param"].as_str()), (-32602, Some("ast.stmts[0].expr.lhs")), "{refused:?}");
}

#[test]
fn completion_offers_the_sessions_names() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "let zebra_count = 3"}));
    let offered = client.ok("complete", json!({"src": "fn zebra_name() { 1 }\nzebra"}));
    assert_eq!(offered["candidates"], json!(["zebra_count", "zebra_name"]));
}
