//! `shoal_exec`.

use serde_json::{Map, Value, json};
use shoal_wire::Method;

use super::{Reply, Tool, pick, wait_for, wait_ms};
use crate::bound;
use crate::call::{Call, Failure};
use crate::report::Report;

pub(super) const TOOL: Tool = Tool {
    name: "shoal_exec",
    description: "Run Shoal source in the session and return its typed result. Bindings, directory and environment \
        persist. Large values come as a preview with a ref for shoal_get. A run longer than timeout_ms goes on as a task.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["src"],"properties":{
        "src":{"type":"string","description":"Shoal program, one or more statements"},
        "mode":{"type":"string","enum":["run","plan"]},
        "position":{"type":"string","enum":["stmt","value"],"description":"value: a failing last command is a result; stmt: it is an error"},
        "background":{"type":"boolean","description":"answer at once with a task"},
        "timeout_ms":{"type":"integer","minimum":1,"description":"how long to wait; the run is not ended"},
        "deadline_ms":{"type":"integer","minimum":1,"maximum":86400000,"description":"end the run after this long"},
        "key":{"type":"string","description":"idempotency key: a repeated call gets the first result"},
        "elide":{"type":"object","additionalProperties":false,"properties":{
            "max_bytes":{"type":"integer","minimum":0},"max_rows":{"type":"integer","minimum":0},"max_items":{"type":"integer","minimum":0}}}}}"#,
    read_only: false,
    destructive: true,
    wider: &[],
};

pub(super) async fn call(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    let mut params = pick(&args, &["src", "mode", "position", "deadline_ms", "key", "elide"]);
    params.entry("mode").or_insert_with(|| json!("run"));
    params.entry("position").or_insert_with(|| json!("value"));
    params.insert("async".to_owned(), json!(args.get("background") == Some(&json!(true))));
    if let Some(wait) = wait_ms(call, &args) {
        params.insert("timeout_ms".to_owned(), wait);
    }
    let src = args.get("src").and_then(Value::as_str);
    let result = wait_for(call, Method::Exec, &Value::Object(params), src).await?;
    Ok(Reply::Done(finished(call, result).await))
}

/// The report of a run, its value made to fit.
pub(super) async fn finished(call: &Call, mut result: Value) -> Report {
    let again = result.get("ref").map(|reference| json!({ "ref": reference }));
    bound::fit_value(&call.server.kernel, &mut result, again).await;
    Report::success(result, call.server.kernel.take_notes())
}
