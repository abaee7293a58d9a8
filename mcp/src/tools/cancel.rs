//! `shoal_cancel`.

use serde_json::{Map, Value};
use shoal_wire::Method;

use super::{Reply, Tool, pick};
use crate::call::{Call, Failure};
use crate::report::Report;

pub(super) const TOOL: Tool = Tool {
    name: "shoal_cancel",
    description: "End a running task with every process of it and say which are gone. Starts at signal and escalates.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["task"],"properties":{
        "task":{"type":"string","description":"task:N"},"signal":{"type":"string","enum":["int","term","kill"]}}}"#,
    read_only: false,
    destructive: true,
    wider: &[],
};

pub(super) async fn call(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    let params = Value::Object(pick(&args, &["task", "signal"]));
    let result = call.server.kernel.call(Method::TaskCancel, &params).await?;
    Ok(Reply::Done(Report::success(result, call.server.kernel.take_notes())))
}
