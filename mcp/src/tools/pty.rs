//! The terminal tools.

use serde_json::{Map, Value, json};
use shoal_resources::bound::fit_list;
use shoal_wire::Method;
use shoal_wire::params::Member;
use shoal_wire::params::pty::Inputs;

use super::{Reply, Tool, argument_failure, wait_for};
use crate::bound;
use crate::call::{Call, Failure};
use crate::report::{Cut, Report};

pub(super) const OPEN: Tool = Tool {
    name: "shoal_pty_open",
    description: "Start an interactive program on a terminal of its own.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["cmd"],"properties":{
        "cmd":{"type":"string"},"args":{"type":"array","items":{"type":"string"}},
        "cols":{"type":"integer","minimum":1,"maximum":1000},"rows":{"type":"integer","minimum":1,"maximum":1000},
        "env":{"type":"object","additionalProperties":{"type":"string"}}}}"#,
    read_only: false,
    destructive: true,
    wider: &[],
};

pub(super) const SEND: Tool = Tool {
    name: "shoal_pty_send",
    description: "Type into a terminal: text as it is, named keys (Enter, Ctrl-c, Up, F1), or base64 bytes.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["pty_id","input"],"properties":{
        "pty_id":{"type":"string"},"paste":{"type":"boolean"},
        "input":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{
            "text":{"type":"string"},"key":{"type":"string"},"bytes":{"type":"string"}}}}}}"#,
    read_only: false,
    destructive: true,
    wider: &["input"],
};

pub(super) const READ: Tool = Tool {
    name: "shoal_pty_read",
    description: "Read the screen of a terminal. With wait it returns once text or regex shows, output is quiet, or the program exits.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["pty_id"],"properties":{
        "pty_id":{"type":"string"},"wait":{"type":"object","additionalProperties":false,"required":["timeout_ms"],"properties":{
            "text":{"type":"string"},"regex":{"type":"string"},"quiet_ms":{"type":"integer","minimum":10,"maximum":45000},
            "exit":{"type":"boolean"},"timeout_ms":{"type":"integer","minimum":0,"maximum":45000}}}}}"#,
    read_only: true,
    destructive: false,
    wider: &[],
};

pub(super) const RESIZE: Tool = Tool {
    name: "shoal_pty_resize",
    description: "Resize a terminal.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["pty_id","cols","rows"],"properties":{
        "pty_id":{"type":"string"},"cols":{"type":"integer","minimum":1,"maximum":1000},"rows":{"type":"integer","minimum":1,"maximum":1000}}}"#,
    read_only: false,
    destructive: false,
    wider: &[],
};

pub(super) const CLOSE: Tool = Tool {
    name: "shoal_pty_close",
    description: "End the program of a terminal and forget the terminal.",
    schema: r#"{"type":"object","additionalProperties":false,"required":["pty_id"],"properties":{"pty_id":{"type":"string"}}}"#,
    read_only: false,
    destructive: true,
    wider: &[],
};

pub(super) const LIST: Tool = Tool {
    name: "shoal_pty_list",
    description: "List the terminals of the session.",
    schema: r#"{"type":"object","additionalProperties":false,"properties":{}}"#,
    read_only: true,
    destructive: false,
    wider: &[],
};

/// Passes the arguments on as they are.
pub(super) async fn pass(call: &Call, method: Method, args: Map<String, Value>) -> Result<Reply, Failure> {
    let result = call.server.kernel.call(method, &Value::Object(args)).await?;
    Ok(Reply::Done(Report::success(result, call.server.kernel.take_notes())))
}

pub(super) async fn open(call: &Call, mut args: Map<String, Value>) -> Result<Reply, Failure> {
    args.entry("args").or_insert_with(|| json!([]));
    args.entry("env").or_insert_with(|| json!({}));
    pass(call, Method::PtyOpen, args).await
}

pub(super) async fn send(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    // Wider than its schema: also a string, an object, or an array that mixes both.
    let input = args.get("input").map(Value::to_string).unwrap_or_default();
    Inputs::read("input", &input).map_err(|error| argument_failure(call, error))?;
    pass(call, Method::PtySend, args).await
}

pub(super) async fn read(call: &Call, args: Map<String, Value>) -> Result<Reply, Failure> {
    let mut result = wait_for(call, Method::PtyRead, &Value::Object(args), None).await?;
    let mut cut = None;
    if let Some(screen) = result.get_mut("screen").and_then(Value::as_array_mut) {
        let total = fit_list(screen, bound::BODY_BYTES - 2048);
        cut = (screen.len() < total).then_some(Cut {
            what: "text",
            shown: screen.len(),
            total,
            unit: "lines",
            uri: None,
        });
    }
    if let (Some(cut), Some(id)) = (cut.as_mut(), result["pty_id"].as_str()) {
        cut.uri = shoal_wire::Ref::parse(id).and_then(|pty| pty.uri());
    }
    Ok(Reply::Done(Report::success(result, call.server.kernel.take_notes()).and_cut(cut)))
}
