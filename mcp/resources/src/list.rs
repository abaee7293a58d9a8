//! What is listed: six roots, then what lives now.

use serde_json::{Value, json};
use shoal_wire::{EVENTS_MIME, Ref};

use crate::templates::example;

/// URI, name, description, and a name to watch it by; the order is part of the protocol.
const ROOTS: [(&str, &str, &str, &str); 6] = [
    ("shoal://journal", "journal", "What ran, newest first.", "history"),
    ("shoal://jobs", "jobs", "Running executions and kept task records.", "jobs"),
    ("shoal://session/cwd", "cwd", "The session's directory now.", "dir"),
    ("shoal://session/env", "env", "Names of the session's variables, and the values policy shows.", "env"),
    ("shoal://session/reef", "reef", "Project tools pinned for the session.", "reef"),
    ("shoal://pty", "pty", "Open terminals.", "ptys"),
];

/// What lives now, as far as it could be asked: results of `task.list`, `plan.list`, `pty.list` and `watch.list`.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Tasks.
    pub tasks: Option<Value>,
    /// Plans.
    pub plans: Option<Value>,
    /// Terminals.
    pub ptys: Option<Value>,
    /// Watches.
    pub watches: Option<Value>,
}

/// The entries of `resources/list`: the roots, then what lives now.
pub fn entries(live: &Live) -> Vec<Value> {
    let roots = ROOTS.iter();
    let mut entries: Vec<Value> = roots
        .map(|(uri, name, description, watch)| entry(uri, name, &example(description, watch, uri), "application/json"))
        .collect();
    let task = |task| by_ref(task, "task", &label(task, "state", "src"));
    let plan = |plan| by_ref(plan, "plan_ref", &label(plan, "state", "verdict"));
    let pty = |pty| by_ref(pty, "pty_id", &label(pty, "cmd", ""));
    entries.extend(items(live.tasks.as_ref(), None).iter().filter_map(task));
    entries.extend(items(live.plans.as_ref(), None).iter().filter_map(plan));
    entries.extend(items(live.ptys.as_ref(), Some("ptys")).iter().filter_map(pty));
    entries.extend(items(live.watches.as_ref(), Some("watches")).iter().filter_map(watch));
    entries
}

fn items<'r>(result: Option<&'r Value>, member: Option<&str>) -> &'r [Value] {
    let list = result.and_then(|result| member.map_or(Some(result), |member| result.get(member)));
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
