//! `shoal session`: list, kill, freeze, thaw.

use std::process::ExitCode;

use serde_json::{Value, json};
use shoal_client::Connection;

use crate::args::{Owned, Session};
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{out, table};

/// Carries out the action on a running kernel.
pub(crate) fn run(context: &Context, action: Session) -> Result<ExitCode, Fail> {
    let (method, params) = match &action {
        Session::List => ("session.list", json!({})),
        Session::Kill { name, owner, reason } => {
            ("session.kill", with(json!({"session": name}), [("owner", owner), ("reason", reason)]))
        }
        Session::Freeze(Owned { name, owner }) => {
            ("session.freeze", with(json!({"session": name}), [("owner", owner)]))
        }
        Session::Thaw(Owned { name, owner }) => ("session.thaw", with(json!({"session": name}), [("owner", owner)])),
    };
    let (result, namesakes) = context.block_on(async {
        let (connection, _) = context.administer().await?;
        let result = call(&connection, method, params).await?;
        let namesakes = if result["existed"] == json!(false) { namesakes(&connection, &result).await? } else { vec![] };
        Ok((result, namesakes))
    })?;
    let survived = items(&result, "survived").len();
    if context.json {
        out::json(&result)?;
    } else {
        match action {
            Session::List => out::line(&listing(&result))?,
            Session::Kill { .. } => {
                out::line(&receipt(&result))?;
                for owner in namesakes {
                    let name = text(&result, "session");
                    let said = format!("{owner} has one of that name: shoal session kill {name} --owner {owner}");
                    out::line(&crate::escape::line(&said))?;
                }
            }
            Session::Freeze(_) | Session::Thaw(_) => {
                out::line(&format!("{} is {}", text(&result, "session"), text(&result, "state")))?;
            }
        }
    }
    Ok(if survived == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whose sessions have the name of one that was looked for in vain.
async fn namesakes(connection: &Connection, result: &Value) -> Result<Vec<String>, Fail> {
    let listed = call(connection, "session.list", json!({})).await?;
    let same = items(&listed, "sessions").iter().filter(|session| session["session"] == result["session"]);
    Ok(same.map(|session| text(session, "owner")).collect())
}

fn with<const N: usize>(mut params: Value, optional: [(&str, &Option<String>); N]) -> Value {
    for (name, value) in optional {
        if let Some(value) = value {
            params[name] = json!(value);
        }
    }
    params
}

fn listing(result: &Value) -> String {
    let rows: Vec<Vec<String>> = items(result, "sessions")
        .iter()
        .map(|s| {
            let cwd = s.get("cwd").map(|c| text(c, "display")).unwrap_or_default();
            let mut row: Vec<String> =
                ["owner", "session", "state", "pid", "execs_running", "tasks", "ptys", "processes"]
                    .map(|m| text(s, m))
                    .into();
            row.push(cwd);
            row
        })
        .collect();
    table::render(&["OWNER", "SESSION", "STATE", "PID", "RUNS", "TASKS", "PTYS", "PROCS", "DIRECTORY"], &rows)
}

fn receipt(result: &Value) -> String {
    if result["existed"] == json!(false) {
        return format!("no session {} of {}; nothing to end", text(result, "session"), text(result, "owner"));
    }
    let named = |member: &str| -> String {
        let list: Vec<String> =
            items(result, member).iter().map(|p| format!("{} ({})", text(p, "comm"), text(p, "pid"))).collect();
        if list.is_empty() { "nothing".to_owned() } else { crate::escape::line(&list.join(", ")) }
    };
    format!("ended: {}\nsurvived: {}\nafter {} ms", named("ended"), named("survived"), text(result, "duration_ms"))
}
