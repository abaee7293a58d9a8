//! `shoal history`: rows, the chain, pins and collection, through the running kernel.

use std::process::ExitCode;

use serde_json::{Map, Value, json};

use crate::args::{History, HistoryAction, HistoryQuery, RowStatus};
use crate::context::{Context, call, text};
use crate::fail::Fail;
use crate::{escape, out};

/// Carries out the action.
pub(crate) fn run(context: Context, history: History) -> Result<ExitCode, Fail> {
    let action = history.action.unwrap_or(HistoryAction::Query(history.query));
    let (method, params) = match &action {
        HistoryAction::Query(query) => ("journal.query", query_params(query)),
        HistoryAction::Show { id } => {
            let all = ["exec", "statement", "plan", "approval", "denial", "pty", "session", "admin", "kernel"];
            ("journal.query", json!({"before": id.saturating_add(1), "limit": 1, "kinds": all}))
        }
        HistoryAction::Verify { head: Some(head) } => ("journal.verify", json!({"head": head})),
        HistoryAction::Verify { head: None } => ("journal.verify", json!({})),
        HistoryAction::Pin { hash } => ("journal.pin", json!({"hash": hash})),
        HistoryAction::Unpin { hash } => ("journal.unpin", json!({"hash": hash})),
        HistoryAction::Gc { ttl, budget, apply } => {
            let mut params = json!({"apply": apply});
            for (name, value) in [("ttl_s", ttl), ("budget_bytes", budget)] {
                if let Some(value) = value {
                    params[name] = json!(value);
                }
            }
            ("journal.gc", params)
        }
    };
    let result = context.block_on(async {
        let (connection, _) = context.attach().await?;
        call(&connection, method, params).await
    })?;
    match action {
        HistoryAction::Query(_) if !context.json => listing(&result),
        HistoryAction::Show { id } => {
            match result.as_array().and_then(|rows| rows.first()).filter(|row| row["id"] == json!(id)) {
                Some(row) => out::json(row),
                None => Err(Fail::Said(format!("no row {id} that you may see"))),
            }
        }
        HistoryAction::Verify { .. } => {
            out::json(&result)?;
            return Ok(if result["ok"] == json!(true) { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        HistoryAction::Query(_)
        | HistoryAction::Pin { .. }
        | HistoryAction::Unpin { .. }
        | HistoryAction::Gc { .. } => out::json(&result),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn query_params(query: &HistoryQuery) -> Value {
    let mut params = Map::new();
    params.insert("limit".into(), query.limit.into());
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            params.insert(name.into(), value);
        }
    };
    set("since", query.since.map(Into::into));
    set("principal", query.principal.clone().map(Into::into));
    set("head", query.head.clone().map(Into::into));
    set("ok", query.status.map(|s| json!(s == RowStatus::Ok)));
    set("effects", (!query.effects.is_empty()).then(|| json!(query.effects)));
    params.into()
}

fn listing(rows: &Value) -> Result<(), Fail> {
    for row in rows.as_array().into_iter().flatten() {
        let ended = match row["ok"].as_bool() {
            Some(true) => "ok",
            Some(false) => "failed",
            None => "open",
        };
        let first = text(row, "src").lines().next().unwrap_or_default().to_owned();
        let shown = if first.is_empty() { format!("[{}]", text(row, "kind")) } else { first };
        out::line(&escape::line(&format!("{}  {}  {ended}  {shown}", text(row, "id"), text(row, "principal"))))?;
    }
    Ok(())
}
