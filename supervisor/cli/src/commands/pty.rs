//! `shoal pty`: terminals of the session, as lists and screens.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Pty;
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{escape, out, table};

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Pty) -> Result<ExitCode, Fail> {
    let (method, params) = match &action {
        Pty::List => ("pty.list", json!({})),
        Pty::Show { id } => ("pty.read", json!({"pty_id": id})),
    };
    let result = context.block_on(async {
        let (connection, _) = context.attach().await?;
        call(&connection, method, params).await
    })?;
    match action {
        _ if context.json => out::json(&result)?,
        Pty::List => out::line(&listing(&result))?,
        Pty::Show { .. } => {
            let rows: Vec<String> =
                items(&result, "screen").iter().map(|row| escape::line(row.as_str().unwrap_or_default())).collect();
            out::line(&rows.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(result: &Value) -> String {
    let rows: Vec<Vec<String>> = items(result, "ptys")
        .iter()
        .map(|p| {
            let size = format!("{}x{}", text(p, "cols"), text(p, "rows"));
            let state = if p["alive"] == json!(true) { "running" } else { "ended" };
            let taken = if p["taken"] == json!(true) { "taken" } else { "" };
            vec![text(p, "pty_id"), text(p, "pid"), size, state.to_owned(), taken.to_owned(), text(p, "cmd")]
        })
        .collect();
    if rows.is_empty() {
        "no terminals".to_owned()
    } else {
        table::render(&["ID", "PID", "SIZE", "STATE", "TAKEN", "COMMAND"], &rows)
    }
}
