//! The thirteen tools: each a file with its description, its schema and its kernel call.

mod apply;
mod cancel;
mod cap_request;
mod exec;
mod get;
mod journal;
mod plan;
mod pty;
mod schema;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use shoal_wire::error::Reason;
use shoal_wire::{Method, RpcError, limits, nearest::nearest, text};

use crate::call::{Call, Failure};
use crate::kernel::Kernel;
use crate::progress;
use crate::report::Report;

/// A tool as it is listed.
struct Tool {
    name: &'static str,
    description: &'static str,
    /// Input schema, in the strict subset every client reads.
    schema: &'static str,
    /// Only looks.
    read_only: bool,
    /// May change or end something.
    destructive: bool,
    /// Arguments that take more than their schema says; they are checked where they are used.
    wider: &'static [&'static str],
}

/// The order is part of the protocol.
const TOOLS: [&Tool; 13] = [
    &exec::TOOL,
    &plan::TOOL,
    &apply::TOOL,
    &get::TOOL,
    &journal::TOOL,
    &cancel::TOOL,
    &cap_request::TOOL,
    &pty::OPEN,
    &pty::SEND,
    &pty::READ,
    &pty::RESIZE,
    &pty::CLOSE,
    &pty::LIST,
];

static SCHEMAS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    // A schema that is no JSON would show as `null` in `tools/list`; the tests look at every one.
    TOOLS.iter().map(|tool| serde_json::from_str(tool.schema).unwrap_or_default()).collect()
});

/// Result of `tools/list`.
pub(crate) fn list() -> Map<String, Value> {
    let tools = TOOLS.iter().zip(SCHEMAS.iter()).map(|(tool, schema)| {
        let annotations = json!({
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.read_only,
            "openWorldHint": matches!(tool.name, "shoal_exec" | "shoal_apply" | "shoal_pty_open" | "shoal_pty_send"),
        });
        json!({ "name": tool.name, "description": tool.description, "inputSchema": schema, "annotations": annotations })
    });
    Map::from_iter([("tools".to_owned(), tools.collect())])
}

/// What a tool came to.
enum Reply {
    /// A kernel result.
    Done(Report),
    /// A question to the person at the client, as a complete result.
    Ask(Map<String, Value>),
}

/// Answers `tools/call`.
pub(crate) async fn call(call: &Call) -> Result<Map<String, Value>, Failure> {
    let name = call.text("name")?;
    let Some((tool, schema)) = TOOLS.iter().zip(SCHEMAS.iter()).find(|(tool, _)| tool.name == name) else {
        return Err(Failure::Ours(unknown_tool(name)));
    };
    let outcome = match arguments(call, tool, schema) {
        Ok(args) => run(call, name, args).await,
        Err(error) => Err(argument_failure(call, error)),
    };
    match outcome {
        Ok(Reply::Done(report)) => Ok(report.finish()),
        Ok(Reply::Ask(question)) => Ok(question),
        Err(Failure::Kernel(error)) => {
            let source = call.params.get("arguments").and_then(|args| args.get("src")).and_then(Value::as_str);
            Ok(Report::failure(&error, call.server.kernel.take_notes()).about(source).finish())
        }
        Err(ours) => Err(ours),
    }
}

/// A bad argument: a result the model can correct itself by, or in the oldest era an error.
fn argument_failure(call: &Call, error: RpcError) -> Failure {
    if call.era.argument_errors_are_results() { Failure::Kernel(error) } else { Failure::Ours(error) }
}

fn unknown_tool(name: &str) -> RpcError {
    let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
    let shown = Value::from(text::cut(name, schema::NAME_BYTES));
    let error = RpcError::invalid("name", Reason::Range, format!("unknown tool {shown}"));
    let error = error.and("expected", format!("one of {}", names.join(", ")));
    match nearest(name, &names) {
        Some(nearest) => error.and("nearest", nearest),
        None => error,
    }
}

fn arguments(call: &Call, tool: &Tool, schema: &Value) -> Result<Map<String, Value>, RpcError> {
    let args = match call.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(_) => return Err(RpcError::mistyped("arguments", "an object")),
    };
    let text = Value::Object(args.clone()).to_string();
    if let Err(fault) = shoal_wire::json::check(text.as_bytes(), &limits::INPUT_JSON) {
        return Err(RpcError::invalid("arguments", Reason::TooLarge, format!("the arguments are too large: {fault}")));
    }
    schema::validate(&args, schema, tool.wider)?;
    Ok(args)
}

async fn run(call: &Call, name: &str, args: Map<String, Value>) -> Result<Reply, Failure> {
    match name {
        "shoal_exec" => exec::call(call, args).await,
        "shoal_plan" => plan::call(call, args).await,
        "shoal_apply" => apply::call(call, args).await,
        "shoal_get" => get::call(call, args).await,
        "shoal_journal" => journal::call(call, args).await,
        "shoal_cancel" => cancel::call(call, args).await,
        "shoal_cap_request" => cap_request::call(call, args).await,
        "shoal_pty_open" => pty::open(call, args).await,
        "shoal_pty_send" => pty::send(call, args).await,
        "shoal_pty_read" => pty::read(call, args).await,
        "shoal_pty_resize" => pty::pass(call, Method::PtyResize, args).await,
        "shoal_pty_close" => pty::pass(call, Method::PtyClose, args).await,
        _ => pty::pass(call, Method::PtyList, args).await,
    }
}

/// Calls a method that may take long, telling the client of progress meanwhile.
async fn wait_for(call: &Call, method: Method, params: &Value, src: Option<&str>) -> Result<Value, Failure> {
    tokio::select! {
        outcome = call.server.kernel.call(method, params) => outcome,
        never = progress::report(call, src) => match never {},
    }
}

/// How long a run is waited for: as asked, without limit where progress is reported, else the default.
fn wait_ms(call: &Call, args: &Map<String, Value>) -> Option<Value> {
    if let Some(asked) = args.get("timeout_ms").filter(|asked| !asked.is_null()) {
        return Some(asked.clone());
    }
    if call.progress_token().is_some() {
        return None;
    }
    call.server.kernel.default_wait().map(|wait| json!(wait.as_millis()))
}

/// Copies those of `names` that are present.
fn pick(args: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let present =
        |name: &&str| args.get(*name).filter(|value| !value.is_null()).map(|value| (name.to_string(), value.clone()));
    names.iter().filter_map(present).collect()
}

/// The source that a request runs, if it runs any.
pub(crate) fn source_that_runs(params: &Map<String, Value>) -> Option<String> {
    let argument = |name: &str| params.get("arguments")?.get(name)?.as_str().map(str::to_owned);
    match params.get("name").and_then(Value::as_str)? {
        "shoal_exec" if argument("mode").as_deref() != Some("plan") => argument("src"),
        "shoal_apply" => argument("plan_ref"),
        _ => None,
    }
}

/// The newest running task among `tasks` that runs `src`; a record shows the beginning of its source.
pub(crate) fn running_task<'t>(tasks: &'t Value, src: &str) -> Option<&'t Value> {
    let begins =
        |record: &Value| record["src"].as_str().is_some_and(|shown| src.starts_with(shown.trim_end_matches('…')));
    let running = |record: &Value| record["state"] == "running" || record["state"] == "suspended";
    tasks.as_array()?.iter().rev().find(|record| running(record) && begins(record))
}

/// After a cancelled call: tells with the next result under which task its run goes on.
pub(crate) async fn note_that_it_goes_on(kernel: &Kernel, src: &str) {
    let tasks = kernel.call(Method::TaskList, &json!({})).await.unwrap_or_default();
    let note = match running_task(&tasks, src).and_then(|record| record["task"].as_str()) {
        Some(task) => format!("the cancelled call goes on as {task}; shoal_cancel task={task} ends it"),
        None if src.starts_with("plan:") => "the cancelled shoal_apply may go on; see shoal://jobs".to_owned(),
        None => return,
    };
    kernel.note(note);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirteen_tools_in_order_with_strict_schemas() {
        let listed = list();
        let tools = listed["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(
            names,
            [
                "shoal_exec",
                "shoal_plan",
                "shoal_apply",
                "shoal_get",
                "shoal_journal",
                "shoal_cancel",
                "shoal_cap_request",
                "shoal_pty_open",
                "shoal_pty_send",
                "shoal_pty_read",
                "shoal_pty_resize",
                "shoal_pty_close",
                "shoal_pty_list"
            ]
        );
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        }
        assert!(Value::Object(listed.clone()).to_string().len() < 12_000, "the list costs every session its size");
    }

    #[test]
    fn running_tasks_are_known_by_the_beginning_of_their_source() {
        let tasks = json!([
            {"task":"task:1","state":"running","src":"sleep 60"},
            {"task":"task:2","state":"completed","src":"sleep 60; x"},
        ]);
        assert_eq!(running_task(&tasks, "sleep 60; x").unwrap()["task"], "task:1");
        assert!(running_task(&tasks, "other").is_none());
    }
}
