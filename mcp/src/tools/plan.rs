//! `shoal_plan`.

use serde_json::{Map, Value, json};
use shoal_wire::Method;

use super::{Reply, Tool};
use crate::call::{Call, Failure};
use crate::report::Report;

pub(super) const TOOL: Tool = Tool {
    name: "shoal_plan",
    description: "Derive what source would do, without running it: its effects, whether policy allows them, and a plan_ref for shoal_apply.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["src"],"properties":{"src":{"type":"string"}}}"#,
    read_only: true,
    destructive: false,
    wider: &[],
};

pub(super) async fn call(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    let params = json!({ "src": args.get("src"), "mode": "plan", "position": "value" });
    let result = call.server.kernel.call(Method::Exec, &params).await?;
    Ok(Reply::Done(Report::success(result, call.server.kernel.take_notes())))
}
