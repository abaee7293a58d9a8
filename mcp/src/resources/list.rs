//! `resources/list`: six roots, then what lives now.

use serde_json::{Map, Value, json};
use shoal_wire::{EVENTS_MIME, Method, Ref};

use super::templates::example;
use crate::call::Failure;
use crate::kernel::Kernel;

/// URI, name, description, and a name to watch it by; the order is part of the protocol.
const ROOTS: [(&str, &str, &str, &str); 6] = [
    ("shoal://journal", "journal", "What ran, newest first.", "history"),
    ("shoal://jobs", "jobs", "Running executions and kept task records.", "jobs"),
    ("shoal://session/cwd", "cwd", "The session's directory now.", "dir"),
    ("shoal://session/env", "env", "Names of the session's variables, and the values policy shows.", "env"),
    ("shoal://session/reef", "reef", "Project tools pinned for the session.", "reef"),
    ("shoal://pty", "pty", "Open terminals.", "ptys"),
];

/// Answers `resources/list`. Without a kernel the roots alone are listed; a query that fails is left out.
pub(crate) async fn live(kernel: &Kernel) -> Result<Map<String, Value>, Failure> {
    let mut resources: Vec<Value> = ROOTS
        .iter()
        .map(|(uri, name, description, watch)| entry(uri, name, &example(description, watch, uri), "application/json"))
        .collect();
    if kernel.attached().await.is_ok() {
        let none = json!({});
        let (tasks, plans, ptys, watches) = tokio::join!(
            kernel.call(Method::TaskList, &none),
            kernel.call(Method::PlanList, &none),
            kernel.call(Method::PtyList, &none),
            kernel.call(Method::WatchList, &none),
        );
        resources
            .extend(items(&tasks, None).iter().filter_map(|task| by_ref(task, "task", &label(task, "state", "src"))));
        resources.extend(
            items(&plans, None).iter().filter_map(|plan| by_ref(plan, "plan_ref", &label(plan, "state", "verdict"))),
        );
        resources
            .extend(items(&ptys, Some("ptys")).iter().filter_map(|pty| by_ref(pty, "pty_id", &label(pty, "cmd", ""))));
        resources.extend(items(&watches, Some("watches")).iter().filter_map(watch));
    }
    Ok(Map::from_iter([("resources".to_owned(), Value::Array(resources))]))
}

fn items<'r>(result: &'r Result<Value, Failure>, member: Option<&str>) -> &'r [Value] {
    let Ok(result) = result else { return &[] };
    let list = member.map_or(Some(result), |member| result.get(member));
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn entry(uri: &str, name: &str, description: &str, mime: &str) -> Value {
    json!({ "uri": uri, "name": name, "description": description, "mimeType": mime })
}

/// A record's own words about itself, in one line.
fn label(record: &Value, first: &str, second: &str) -> String {
    let words = [first, second].map(|name| record[name].as_str().unwrap_or_default());
    let text = words.join(" ").replace(char::is_control, " ");
    shoal_wire::text::cut(text.trim(), 120).to_owned()
}

fn by_ref(record: &Value, member: &str, description: &str) -> Option<Value> {
    let name = record[member].as_str()?;
    Some(entry(&Ref::parse(name)?.uri()?, name, description, "application/json"))
}

fn watch(record: &Value) -> Option<Value> {
    let name = record["name"].as_str()?;
    let uri = format!("shoal://watch/{name}");
    Some(entry(&uri, &format!("watch:{name}"), &label(record, "state", "uri"), EVENTS_MIME))
}
