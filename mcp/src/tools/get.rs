//! `shoal_get`.

use serde_json::{Map, Value};
use shoal_wire::Method;

use super::{Reply, Tool, pick};
use crate::bound;
use crate::call::{Call, Failure};
use crate::report::Report;

pub(super) const TOOL: Tool = Tool {
    name: "shoal_get",
    description: "Read a stored value again, whole or in part: path selects inside (out.items[3].name, stderr), \
        slice [start,end) takes items, rows, characters or bytes.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["ref"],"properties":{
        "ref":{"type":"string","description":"out:N, val:blake3:HEX, last, or a shoal:// URI"},
        "path":{"type":"string"},
        "slice":{"type":"array","items":{"type":"integer","minimum":0},"minItems":2,"maxItems":2},
        "elide":{"type":"object","additionalProperties":false,"properties":{
            "max_bytes":{"type":"integer","minimum":0},"max_rows":{"type":"integer","minimum":0},"max_items":{"type":"integer","minimum":0}}}}}"#,
    read_only: true,
    destructive: false,
    wider: &[],
};

pub(super) async fn call(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    let params = Value::Object(pick(&args, &["ref", "path", "slice", "elide"]));
    let mut result = call.server.kernel.call(Method::ValueGet, &params).await?;
    bound::fit_value(&call.server.kernel, &mut result, Some(params)).await;
    Ok(Reply::Done(Report::success(result, call.server.kernel.take_notes())))
}
