//! `shoal pty`: terminals of a session, as lists and screens, and one of them live.

mod attach;
mod own_terminal;

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Pty;
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{escape, out, table};

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Pty) -> Result<ExitCode, Fail> {
    let (method, owner, params) = match &action {
        Pty::Attach { id, owner, take, record } => {
            let (id, owner) = (id.clone(), owner.clone());
            return watch(context, &attach::Wanted { id, owner, take: *take, record: *record });
        }
        Pty::List { owner } => ("pty.list", owner, json!({})),
        Pty::Show { id, owner, scrollback: None } => ("pty.read", owner, json!({"pty_id": id})),
        Pty::Show { id, owner, scrollback: Some(lines) } => {
            ("pty.read", owner, json!({"pty_id": id, "scrollback": [0, lines]}))
        }
    };
    let result = context.block_on(async {
        let (connection, _) = context.enter(owner.clone()).await?;
        call(&connection, method, params).await
    })?;
    match action {
        _ if context.json => out::json(&result)?,
        Pty::List { .. } => out::line(&listing(&result))?,
        Pty::Show { .. } | Pty::Attach { .. } => {
            let above = items(&result["scrollback"], "lines").iter();
            let rows: Vec<String> = above
                .chain(items(&result, "screen"))
                .map(|row| escape::line(row.as_str().unwrap_or_default()))
                .collect();
            out::line(&rows.join("\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(context: &Context, wanted: &attach::Wanted) -> Result<ExitCode, Fail> {
    if context.json {
        return Err(Fail::Usage("attach shows a terminal; it has no --json".to_owned()));
    }
    let said = context.block_on(async {
        let (connection, _) = context.enter(wanted.owner.clone()).await?;
        attach::attach(&connection, wanted).await
    })?;
    out::line(&said)?;
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
