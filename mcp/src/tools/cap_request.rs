//! `shoal_cap_request`.

use serde_json::{Map, Value};
use shoal_wire::Method;
use shoal_wire::params::Member;
use shoal_wire::params::plan::EffectName;

use super::{Reply, Tool, pick};
use crate::ask::{self, Asked};
use crate::call::{Call, Failure};
use crate::report::Report;

pub(super) const TOOL: Tool = Tool {
    name: "shoal_cap_request",
    description: "Ask for a plan that needs approval to be approved. Without effects all of the plan's are asked for.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["plan_ref"],"properties":{
        "plan_ref":{"type":"string"},"effects":{"type":"array","items":{"type":"string"}}}}"#,
    read_only: false,
    destructive: false,
    wider: &["effects"],
};

pub(super) async fn call(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    let effects = match args.get("effects").filter(|effects| !effects.is_null()) {
        None => Vec::new(),
        Some(effects) => Vec::<EffectName>::read("effects", &effects.to_string())
            .map_err(|error| super::argument_failure(call, error))?,
    };
    let names: Vec<String> = effects.into_iter().map(|EffectName(name)| name).collect();
    let decided_by = match ask::consult(call, &args, &names).await? {
        Asked::Question(question) => return Ok(Reply::Ask(question)),
        Asked::Decided(mut decision) => decision.get_mut("decided_by").map(Value::take),
        Asked::GoOn => None,
    };
    let params = Value::Object(pick(&args, &["plan_ref", "effects"]));
    let mut result = call.server.kernel.call(Method::CapRequest, &params).await?;
    if let Some(decided_by) = decided_by {
        result["decided_by"] = decided_by;
    }
    Ok(Reply::Done(Report::success(result, call.server.kernel.take_notes())))
}
