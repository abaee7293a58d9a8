//! `shoal_apply`.

use serde_json::{Map, Value};
use shoal_wire::Method;

use super::{Reply, Tool, exec, pick, wait_for, wait_ms};
use crate::ask::{self, Asked};
use crate::call::{Call, Failure};

pub(super) const TOOL: Tool = Tool {
    name: "shoal_apply",
    description: "Run a plan made by shoal_plan, once, if policy allows it or it was approved.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["plan_ref"],"properties":{"plan_ref":{"type":"string"}}}"#,
    read_only: false,
    destructive: true,
    wider: &[],
};

pub(super) async fn call(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    if let Asked::Question(question) = ask::consult(call, &args, &[]).await? {
        return Ok(Reply::Ask(question));
    }
    let mut params = pick(&args, &["plan_ref"]);
    if let Some(wait) = wait_ms(call, &args) {
        params.insert("timeout_ms".to_owned(), wait);
    }
    let result = wait_for(call, Method::PlanApply, &Value::Object(params), None).await?;
    Ok(Reply::Done(exec::finished(call, result).await))
}
