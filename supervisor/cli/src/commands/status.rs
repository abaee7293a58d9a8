//! `shoal status`: the processes of the kernel.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{out, table};

/// Shows the tree; fails when no kernel answers.
pub(crate) fn run(context: &Context) -> Result<ExitCode, Fail> {
    let status = context.block_on(async {
        let (connection, _) = context.administer().await?;
        call(&connection, "kernel.status", json!({})).await
    })?;
    if context.json {
        out::json(&status)?;
    } else {
        out::line(&render(&status))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn render(status: &Value) -> String {
    let rows: Vec<Vec<String>> = items(status, "processes").iter().map(row).collect();
    let journal = status.get("journal").cloned().unwrap_or(Value::Null);
    let mut out = table::render(&["ROLE", "PID", "SESSION", "RSS", "STATE", "RESTARTS", "JAIL"], &rows);
    out.push('\n');
    let facts = [
        ("build", text(status, "build")),
        ("level", text(status, "level")),
        ("claims", claims(status)),
        ("policy", policy(status)),
        ("sessions", text(status, "sessions")),
        ("tasks running", text(status, "tasks_running")),
        ("terminals", text(status, "ptys")),
        ("connections", text(status, "connections")),
        ("journal rows", text(&journal, "rows")),
    ];
    for (name, value) in facts {
        out.push_str(&format!("{name:<14} {}\n", crate::escape::line(&value)));
    }
    out
}

fn row(process: &Value) -> Vec<String> {
    let owner = text(process, "owner");
    let session = text(process, "session");
    let jail = process.get("jail").cloned().unwrap_or(Value::Null);
    vec![
        text(process, "role"),
        text(process, "pid"),
        if owner.is_empty() { session } else { format!("{owner}/{session}") },
        size(process["rss_bytes"].as_u64().unwrap_or(0)),
        text(process, "state"),
        text(process, "restarts"),
        jail.get("tier").and_then(Value::as_str).unwrap_or("-").to_owned(),
    ]
}

/// Bytes in MiB with one decimal.
pub(super) fn size(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) / (1024 * 1024);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Which policy is in force, and whether a newer one was refused.
fn policy(status: &Value) -> String {
    let policy = &status["policy"];
    let path = policy["path"].as_str().unwrap_or("built-in: you may do everything, agents with a token nothing");
    match policy["rejected"].as_str() {
        Some(why) => format!("{path}; the file was changed and refused: {why}"),
        None => path.to_owned(),
    }
}

/// The claims that hold, by name.
fn claims(status: &Value) -> String {
    let held = status.get("claims").and_then(Value::as_object).into_iter().flatten();
    let names: Vec<&str> = held.filter(|(_, holds)| **holds == json!(true)).map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}
