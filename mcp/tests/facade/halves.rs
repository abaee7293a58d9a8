//! Every tool, every way to end: each half of a result alone tells status, address, cut, code and next step; and the
//! schemas stay in the subset every client takes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::Facade;
use crate::kernel::{Kernel, Say};

const PLAN: &str = "plan:9b1f6c0e4d7a4c33a1e05b7d2f8890ce";

/// The pairs of the status line.
fn pairs(line: &str) -> BTreeMap<String, String> {
    let mut rest = line.strip_prefix("[shoal] ").expect("a status line");
    let mut pairs = BTreeMap::new();
    while let Some((key, tail)) = rest.split_once('=') {
        let (value, after) = match tail.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("a closed quote"),
            None => tail.split_once(' ').unwrap_or((tail, "")),
        };
        pairs.insert(key.to_owned(), value.to_owned());
        rest = after.trim_start();
    }
    pairs
}

/// What one half says, in one form for both.
#[derive(Debug, Default, PartialEq)]
struct Said {
    status: String,
    code: Option<String>,
    address: Option<String>,
    reference: Vec<String>,
    cut: bool,
    next: String,
}

fn text_half(result: &Value) -> Said {
    let items = result["content"].as_array().expect("content");
    let line = items.last().and_then(|item| item["text"].as_str()).expect("a last line");
    assert!(line.len() <= 1024 && !line.contains(char::is_control), "{line}");
    let pairs = pairs(line);
    let get = |key: &str| pairs.get(key).cloned();
    let linked = items.iter().find(|item| item["type"] == "resource_link");
    let link = linked.map(|item| (item["uri"].as_str().unwrap().to_owned(), item["name"].is_string()));
    assert_eq!(link.as_ref().map(|(uri, _)| uri.clone()), get("uri"), "link and line name one address: {line}");
    assert!(link.is_none_or(|(_, named)| named), "links have names");
    Said {
        status: get("status").expect("a status"),
        code: get("code"),
        address: get("uri"),
        reference: ["ref", "task", "plan", "pty"].iter().filter_map(|key| get(key)).collect(),
        cut: pairs.contains_key("cut"),
        next: get("next").unwrap_or_default(),
    }
}

fn structured_half(result: &Value) -> Said {
    let body = &result["structuredContent"];
    assert!(body.to_string().len() <= 48 * 1024);
    let summary = &body["summary"];
    let get = |key: &str| summary[key].as_str().map(str::to_owned);
    let next: Vec<&str> = summary["next"].as_array().expect("next").iter().filter_map(Value::as_str).collect();
    let code = summary["code"].as_i64();
    assert_eq!(code, body["code"].as_i64(), "{summary}");
    Said {
        status: get("status").expect("a status"),
        code: code.map(|code| code.to_string()),
        address: get("uri"),
        reference: ["ref", "task", "plan_ref", "pty_id"].iter().filter_map(|key| get(key)).collect(),
        cut: summary["cut"].as_array().is_some_and(|cut| !cut.is_empty()),
        // The line is made of plain words.
        next: next.join("; ").replace('"', "'"),
    }
}

/// What the kernel says, and the status that is to be told.
type Ending = (Say, &'static str);

/// Tool, arguments, and how its call may end.
fn table() -> Vec<(&'static str, Value, Vec<Ending>)> {
    let place = json!({"display": "/srv/my site"});
    let value = |value: Value, render: &str| json!({"ref":"out:9","uri":"shoal://out/9","value":value,"render":render,"elapsed_ms":3,"cwd":place});
    let int = || Say::Result(value(json!({"$":"int","v":42}), "42"));
    let big = || {
        let preview = json!({"$":"list","v":[{"$":"int","v":1}]});
        Say::Result(value(json!({"$":"ref","uri":"shoal://out/9","of":"list","n":100000,"preview":preview}), "1\n…"))
    };
    let outcome = || {
        let outcome =
            json!({"$":"outcome","ok":false,"status":3,"signal":null,"out":{"$":"str","v":""},"err":"","cmd":"false"});
        Say::Result(value(outcome, ""))
    };
    let task = || Say::Result(json!({"task":"task:4","events":"task.4","uri":"shoal://task/4","timed_out":true}));
    let plan = |verdict: &str| {
        Say::Result(
            json!({"plan_ref":PLAN,"verdict":verdict,"effects":[{"kind":"opaque"}],"reversibility":"irreversible"}),
        )
    };
    let grant = |grant: &str| Say::Result(json!({"grant":grant,"plan_ref":PLAN,"why":"filed","uncovered_effects":[]}));
    let error = |code: i64, data: Value| Say::Error(json!({"code":code,"message":"it failed","data":data}));
    let raised = || error(-32002, json!({"code":"div_zero","ref":"out:9","uri":"shoal://out/9","stderr":"x"}));
    let denied = || error(-32010, json!({"reason":"policy","hint":"grant fs.read = [\"/etc/x\"]"}));
    let waits = || error(-32011, json!({"plan_ref":PLAN,"effects":[{"kind":"opaque"}]}));
    let consumed = || error(-32012, json!({"plan_ref":PLAN,"reason":"consumed","entry_id":7,"ref":"out:9"}));
    let drifted = || error(-32012, json!({"plan_ref":PLAN,"reason":"drifted","what":["cwd"]}));
    let unknown = || error(-32004, json!({"ref":"out:999","reason":"unknown"}));
    let lost = || error(-32050, json!({"session":"default","reason":"worker_lost"}));
    let full = || error(-32040, json!({"limit":"tasks","max":1,"used":1}));
    let frozen = || error(-32052, json!({"session":"default"}));
    let pty = || Say::Result(json!({"pty_id":"pty:3","uri":"shoal://pty/3","cmd":"vim","cols":80,"rows":24}));
    let screen = || {
        Say::Result(
            json!({"pty_id":"pty:3","uri":"shoal://pty/3","alive":true,"screen":["$ ",""],"cursor":{"row":0,"col":2}}),
        )
    };
    let no_pty = || error(-32022, json!({"pty_id":"pty:3","reason":"closed"}));
    vec![
        (
            "shoal_exec",
            json!({"src":"x"}),
            vec![
                (int(), "ok"),
                (big(), "ok"),
                (outcome(), "failed"),
                (task(), "running"),
                (raised(), "error"),
                (denied(), "error"),
                (waits(), "error"),
                (lost(), "error"),
                (full(), "error"),
                (frozen(), "error"),
            ],
        ),
        (
            "shoal_plan",
            json!({"src":"x"}),
            vec![
                (plan("allow"), "planned"),
                (plan("approval_required"), "pending"),
                (plan("deny"), "denied"),
                (denied(), "error"),
            ],
        ),
        (
            "shoal_apply",
            json!({"plan_ref":PLAN}),
            vec![
                (int(), "ok"),
                (task(), "running"),
                (waits(), "error"),
                (consumed(), "error"),
                (drifted(), "error"),
                (denied(), "error"),
            ],
        ),
        ("shoal_get", json!({"ref":"out:9"}), vec![(int(), "ok"), (big(), "ok"), (unknown(), "error")]),
        (
            "shoal_journal",
            json!({}),
            vec![
                (Say::Result(json!([{"id":1,"src":"x"}])), "ok"),
                (
                    Say::Result(json!((0..900).map(|id| json!({"id":id,"src":"x".repeat(200)})).collect::<Vec<_>>())),
                    "ok",
                ),
                (denied(), "error"),
            ],
        ),
        (
            "shoal_cancel",
            json!({"task":"task:4"}),
            vec![
                (
                    Say::Result(
                        json!({"task":"task:4","uri":"shoal://task/4","state":"cancelled","receipt":{"ended":[1],"survived":[]}}),
                    ),
                    "ok",
                ),
                (error(-32021, json!({"task":"task:4"})), "error"),
            ],
        ),
        (
            "shoal_cap_request",
            json!({"plan_ref":PLAN}),
            vec![
                (grant("approval_pending"), "pending"),
                (grant("approved"), "planned"),
                (consumed(), "error"),
                (denied(), "error"),
            ],
        ),
        ("shoal_pty_open", json!({"cmd":"vim"}), vec![(pty(), "ok"), (waits(), "error"), (full(), "error")]),
        ("shoal_pty_send", json!({"pty_id":"pty:3","input":["x"]}), vec![(pty(), "ok"), (no_pty(), "error")]),
        ("shoal_pty_read", json!({"pty_id":"pty:3"}), vec![(screen(), "ok"), (no_pty(), "error")]),
        ("shoal_pty_resize", json!({"pty_id":"pty:3","cols":80,"rows":24}), vec![(pty(), "ok"), (no_pty(), "error")]),
        ("shoal_pty_close", json!({"pty_id":"pty:3"}), vec![(pty(), "ok"), (no_pty(), "error")]),
        (
            "shoal_pty_list",
            json!({}),
            vec![(Say::Result(json!({"ptys":[{"pty_id":"pty:3","cmd":"vim"}]})), "ok"), (denied(), "error")],
        ),
    ]
}

#[test]
fn either_half_of_any_result_tells_everything() {
    let mut tools = Vec::new();
    for (tool, arguments, outcomes) in table() {
        tools.push(tool);
        for (say, status) in outcomes {
            let said = match &say {
                Say::Result(result) => Say::Result(result.clone()),
                Say::Error(error) => Say::Error(error.clone()),
                Say::Later => Say::Later,
            };
            let kernel = Kernel::start(move |_, _| match &say {
                Say::Error(error) => Say::Error(error.clone()),
                Say::Result(result) => Say::Result(result.clone()),
                Say::Later => Say::Later,
            });
            for mut facade in [Facade::modern(&kernel), Facade::legacy(&kernel, "2025-06-18")] {
                let result = facade.tool(tool, arguments.clone());
                let (text, structured) = (text_half(&result), structured_half(&result));
                assert_eq!(text, structured, "{tool}: {result}");
                assert_eq!(text.status, status, "{tool}: {result}");
                assert_eq!(result["isError"], json!(status == "error"), "{tool}: {result}");
                assert_eq!(text.code.is_some(), matches!(said, Say::Error(_)), "{tool}: {result}");
                // Whoever is told to wait, to decide or that something failed is told what to do.
                let leads_on = matches!(status, "running" | "pending" | "planned" | "error" | "failed") || text.cut;
                assert_eq!(leads_on, !text.next.is_empty(), "{tool} {status}: {result}");
                assert_eq!(text.cut, result["structuredContent"]["summary"]["cut"] != json!([]), "{tool}");
            }
        }
    }
    let kernel = Kernel::start(|_, _| Say::Later);
    let listed = Facade::modern(&kernel).result("tools/list", json!({}));
    let listed: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, listed, "every tool is in the table");
}

/// Keywords that every known client takes.
const KEYWORDS: [&str; 11] = [
    "type",
    "enum",
    "minimum",
    "maximum",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "minItems",
    "maxItems",
];

fn lint(tool: &str, schema: &Value, root: bool) {
    let members = schema.as_object().unwrap_or_else(|| panic!("{tool}: a schema is an object: {schema}"));
    for keyword in members.keys() {
        assert!(KEYWORDS.contains(&&**keyword), "{tool}: `{keyword}` is outside the subset");
    }
    let kind = schema["type"].as_str().unwrap_or_else(|| panic!("{tool}: one type, no union: {schema}"));
    assert!(!root || kind == "object", "{tool}");
    match kind {
        "object" => {
            assert!(!schema["additionalProperties"].is_null(), "{tool}: open or closed, but said: {schema}");
            let properties = schema["properties"].as_object();
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(properties.is_some_and(|p| p.contains_key(name.as_str().unwrap())), "{tool}: {name}");
            }
            properties.into_iter().flatten().for_each(|(_, property)| lint(tool, property, false));
            if schema["additionalProperties"].is_object() {
                lint(tool, &schema["additionalProperties"], false);
            }
        }
        "array" => lint(tool, &schema["items"], false),
        "string" => assert!(schema["enum"].as_array().into_iter().flatten().all(Value::is_string), "{tool}"),
        "integer" | "number" | "boolean" => {}
        other => panic!("{tool}: type {other}"),
    }
}

#[test]
fn schemas_stay_in_the_common_subset() {
    let kernel = Kernel::start(|_, _| Say::Later);
    let list = Facade::modern(&kernel).result("tools/list", json!({}));
    let tools = list["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 13);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 40 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
        lint(name, &tool["inputSchema"], true);
        let hints = &tool["annotations"];
        assert!(hints["readOnlyHint"].is_boolean() || hints["destructiveHint"].is_boolean(), "{name}: {hints}");
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty() && text.len() < 1024), "{name}");
    }
    assert!(list.to_string().len() <= 12 * 1024, "the list is read by every model: {} bytes", list.to_string().len());
}
