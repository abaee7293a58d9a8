//! `shoal_journal`.

use serde_json::{Map, Value, json};
use shoal_resources::bound::fit_list;
use shoal_wire::Method;

use super::{Reply, Tool, pick};
use crate::bound;
use crate::call::{Call, Failure};
use crate::report::{Cut, Report};

pub(super) const TOOL: Tool = Tool {
    name: "shoal_journal",
    description: "List what ran, newest first, with source, status, effects and stored outputs. since and until are nanoseconds since the epoch.",
    schema: r#"{"type":"object","additionalProperties":false,"properties":{
        "since":{"type":"integer"},"until":{"type":"integer"},"principal":{"type":"string"},
        "head":{"type":"string","description":"first word of the source"},"ok":{"type":"boolean"},
        "effects":{"type":"array","items":{"type":"string"}},"limit":{"type":"integer","minimum":1}}}"#,
    read_only: true,
    destructive: false,
    wider: &[],
};

pub(super) async fn call(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    let names = ["since", "until", "principal", "head", "ok", "effects", "limit"];
    let params = Value::Object(pick(&args, &names));
    let rows = call.server.kernel.call(Method::JournalQuery, &params).await?;
    let Value::Array(mut entries) = rows else {
        return Ok(Reply::Done(Report::success(rows, call.server.kernel.take_notes())));
    };
    let total = fit_list(&mut entries, bound::BODY_BYTES);
    let cut = (entries.len() < total).then(|| Cut {
        what: "entries",
        shown: entries.len(),
        total,
        unit: "entries",
        uri: Some(rest(&entries)),
    });
    let report = Report::success(json!({ "entries": entries }), call.server.kernel.take_notes());
    Ok(Reply::Done(report.and_cut(cut)))
}

/// Where the entries behind the last one shown are.
fn rest(shown: &[Value]) -> String {
    match shown.last().and_then(|row| row["id"].as_i64()) {
        Some(id) => format!("shoal://journal?before={id}"),
        None => "shoal://journal?limit=1".to_owned(),
    }
}
