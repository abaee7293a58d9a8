//! `shoal history`: rows, the chain, pins, collection and undo. Reading goes through the kernel when one runs, else to the
//! state directory itself.

use std::process::ExitCode;

use serde_json::{Map, Value, json};
use shoal_client::{Attach, Connection};

use crate::args::{History, HistoryAction, HistoryFilter, HistoryQuery, RowStatus};
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::records::Records;
use crate::{escape, out};

/// Every kind of row.
const ALL_KINDS: [&str; 9] = ["exec", "statement", "plan", "approval", "denial", "pty", "session", "admin", "kernel"];
/// What somebody asked for, each request once: a statement is a part of a run.
const ASKED_KINDS: [&str; 5] = ["exec", "plan", "approval", "denial", "pty"];
/// Rows of one page of an export.
const PAGE: u64 = 1000;

/// Carries out the action.
pub(crate) fn run(context: Context, history: History) -> Result<ExitCode, Fail> {
    let action = history.action.unwrap_or(HistoryAction::Query(history.query));
    context.block_on(async {
        match action {
            HistoryAction::Query(query) => query_rows(&context, &query).await,
            HistoryAction::Show { id } => show(&context, id).await,
            HistoryAction::Follow { owner } => follow(&context, owner.as_deref()).await,
            HistoryAction::Export(filter) => export(&context, &filter).await,
            HistoryAction::Verify { head } => verify(&context, head).await,
            HistoryAction::Pin { hash } => administer(&context, "journal.pin", json!({"hash": hash})).await,
            HistoryAction::Unpin { hash } => administer(&context, "journal.unpin", json!({"hash": hash})).await,
            HistoryAction::Gc { ttl, budget, apply } => {
                let mut params = json!({"apply": apply});
                for (name, value) in [("ttl_s", ttl), ("budget_bytes", budget)] {
                    if let Some(value) = value {
                        params[name] = json!(value);
                    }
                }
                administer(&context, "journal.gc", params).await
            }
            HistoryAction::Undo { id, root } => undo(&context, id, &root).await,
        }
    })
}

async fn query_rows(context: &Context, query: &HistoryQuery) -> Result<ExitCode, Fail> {
    let mut params = filter_params(&query.filter);
    params["limit"] = query.limit.into();
    if query.all {
        params["kinds"] = json!(ALL_KINDS);
    } else if query.filter.kinds.is_empty() {
        params["kinds"] = json!(ASKED_KINDS);
    }
    let rows = Records::find(context).await?.ask("journal.query", params).await?;
    if context.json {
        out::json(&rows.as_array().into_iter().flatten().map(entry).collect())?;
    } else {
        for row in rows.as_array().into_iter().flatten() {
            out::line(&line(row))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn show(context: &Context, id: i64) -> Result<ExitCode, Fail> {
    let row = row_of(&Records::find(context).await?, id).await?;
    out::json(&entry(&row))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints rows as they close, until the connection or the reader ends.
async fn follow(context: &Context, owner: Option<&str>) -> Result<ExitCode, Fail> {
    let (connection, _) = context.administer().await?;
    let (_, mut subscription) = connection.subscribe("journal", None, owner).await?;
    let records = Records::Kernel(connection);
    while let Some(event) = subscription.next().await {
        let dropped = subscription.dropped();
        if dropped > 0 {
            out::note(&format!("shoal: {dropped} rows went by unseen; `shoal history` has them"));
        }
        let Some(id) = event.payload["v"]["entry_id"]["v"].as_i64() else { continue };
        let row = row_of(&records, id).await?;
        if !ASKED_KINDS.iter().any(|kind| row["kind"] == **kind) {
            continue;
        }
        out::line(&if context.json { entry(&row).to_string() } else { line(&row) })?;
    }
    Err(Fail::Said("the connection to the kernel was lost".to_owned()))
}

/// Every row that matches, one JSON document a line, newest first.
async fn export(context: &Context, filter: &HistoryFilter) -> Result<ExitCode, Fail> {
    let records = Records::find(context).await?;
    let mut params = filter_params(filter);
    params["limit"] = PAGE.into();
    if filter.kinds.is_empty() {
        params["kinds"] = json!(ALL_KINDS);
    }
    loop {
        let page = records.ask("journal.query", params.clone()).await?;
        let rows = page.as_array().map(Vec::as_slice).unwrap_or_default();
        for row in rows {
            out::line(&entry(row).to_string())?;
        }
        // A page may end early, so only an empty one is the end.
        let Some(last) = rows.last() else { return Ok(ExitCode::SUCCESS) };
        params["before"] = last["id"].clone();
    }
}

async fn verify(context: &Context, head: Option<String>) -> Result<ExitCode, Fail> {
    let params = head.map_or(json!({}), |head| json!({"head": head}));
    let verified = Records::find(context).await?.ask("journal.verify", params).await?;
    out::json(&verified)?;
    Ok(if verified["ok"] == json!(true) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn administer(context: &Context, method: &str, params: Value) -> Result<ExitCode, Fail> {
    out::json(&Records::find(context).await?.ask(method, params).await?)?;
    Ok(ExitCode::SUCCESS)
}

/// Takes a row's file changes back, in the row's own session: what an inverse says was written by that session, and it is
/// carried out with no more rights than the session has.
async fn undo(context: &Context, id: i64, root: &std::path::Path) -> Result<ExitCode, Fail> {
    let root = std::path::absolute(root).map_err(|e| Fail::Said(format!("--root: {e}")))?;
    let root = root.to_str().ok_or_else(|| Fail::Usage("--root is not UTF-8".to_owned()))?;
    let connection = Connection::find(&context.config).await?;
    let attached = connection.attach(&context.outside()).await?;
    let records = Records::Kernel(connection);
    let row = row_of(&records, id).await?;
    let Records::Kernel(connection) = &records else { return Ok(ExitCode::FAILURE) };
    let (session, owner) = (text(&row, "session"), text(&row, "owner"));
    attach_to(context, connection, &session, (owner != attached.owner).then_some(owner)).await?;
    let src = format!("undo {id} --root={}", quoted(root));
    let answer = call(connection, "exec", json!({"src": src, "position": "value"})).await?;
    if context.json {
        out::json(&answer["value"])?;
    } else {
        let actions = &answer["value"]["v"]["actions"];
        let done: Vec<String> = items(actions, "v").iter().map(|action| text(action, "v")).collect();
        match done.is_empty() {
            true => out::line("already as it was: nothing to undo")?,
            false => done.iter().try_for_each(|action| out::line(&escape::line(action)))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn attach_to(
    context: &Context,
    connection: &Connection,
    session: &str,
    owner: Option<String>,
) -> Result<(), Fail> {
    let mut attach = Attach::new(session, "cli");
    attach.token.clone_from(&context.config.token);
    attach.owner = owner;
    connection.attach(&attach).await?;
    Ok(())
}

/// A string literal of the language.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

async fn row_of(records: &Records, id: i64) -> Result<Value, Fail> {
    let params = json!({"before": id.saturating_add(1), "limit": 1, "kinds": ALL_KINDS, "stored": true});
    let rows = records.ask("journal.query", params).await?;
    let row = rows.as_array().and_then(|rows| rows.first()).filter(|row| row["id"] == json!(id));
    row.cloned().ok_or_else(|| Fail::Said(format!("no row {id} that you may see")))
}

fn filter_params(filter: &HistoryFilter) -> Value {
    let mut params = Map::new();
    params.insert("stored".to_owned(), true.into());
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            params.insert(name.into(), value);
        }
    };
    set("since", filter.since.map(Into::into));
    set("until", filter.until.map(Into::into));
    set("principal", filter.principal.clone().map(Into::into));
    set("head", filter.head.clone().map(Into::into));
    set("ok", filter.status.map(|s| json!(s == RowStatus::Ok)));
    set("effects", (!filter.effects.is_empty()).then(|| json!(filter.effects)));
    set("kinds", (!filter.kinds.is_empty()).then(|| json!(filter.kinds)));
    params.into()
}

/// A row as `--json` shows it: the wire row with the time as `ts_ns`, the directory as text, and per output what is known
/// of its bytes.
fn entry(row: &Value) -> Value {
    let mut entry = row.clone();
    if let Some(members) = entry.as_object_mut() {
        let ts = members.remove("ts").unwrap_or_default();
        members.insert("ts_ns".to_owned(), ts);
        members.insert("cwd".to_owned(), row["cwd"]["display"].clone());
    }
    for output in entry["outputs"].as_array_mut().into_iter().flatten() {
        let available = !output["stored_len"].is_null();
        *output = json!({"kind": output["kind"], "hash": output["hash"], "stored_len": output["stored_len"],
            "available": available, "aged_out": !available, "meta": output["meta"]});
    }
    entry
}

fn line(row: &Value) -> String {
    let action = row["detail"]["action"].as_str();
    let ended = match (row["kind"].as_str(), row["ok"].as_bool()) {
        // What was recorded is not that the source ran.
        (Some("denial"), _) => "denied",
        (Some("plan"), _) => "planned",
        (Some("approval"), Some(true)) => action.unwrap_or("ok"),
        (_, Some(true)) => "ok",
        (_, Some(false)) => "failed",
        (_, None) => "open",
    };
    let first = text(row, "src").lines().next().unwrap_or_default().to_owned();
    let shown = if first.is_empty() { event(row) } else { first };
    escape::line(&format!("{}  {}  {ended}  {shown}", text(row, "id"), text(row, "principal")))
}

/// What a row without a source is about.
fn event(row: &Value) -> String {
    let session = if row["kind"] == "session" { text(row, "session") } else { String::new() };
    let detail = |member: &str| text(&row["detail"], member);
    let words = [text(row, "kind"), detail("action"), detail("method"), detail("cmd"), session];
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    format!("[{}]", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_plain_directories_and_times() {
        let row = json!({"id": 1, "ts": 5, "cwd": {"display": "/srv"}, "outputs": [
            {"kind": "value", "hash": "ab", "len": 3, "stored_len": 2, "meta": {"truncated": true}},
            {"kind": "stdout", "hash": "cd", "len": 3, "stored_len": null, "meta": null}]});
        let entry = entry(&row);
        assert_eq!((&entry["ts_ns"], &entry["cwd"], entry.get("ts")), (&json!(5), &json!("/srv"), None));
        let kept = json!({"kind": "value", "hash": "ab", "stored_len": 2, "available": true, "aged_out": false,
            "meta": {"truncated": true}});
        let gone = json!({"kind": "stdout", "hash": "cd", "stored_len": null, "available": false, "aged_out": true,
            "meta": null});
        assert_eq!(entry["outputs"], json!([kept, gone]));
    }

    #[test]
    fn lines_show_no_control_characters() {
        let row = json!({"id": 7, "principal": "agent:x", "ok": false, "src": "echo \u{1b}[2J\nrest"});
        let line = line(&row);
        let denied =
            super::line(&json!({"id": 8, "principal": "agent:x", "kind": "denial", "ok": true, "src": "cat b"}));
        assert_eq!(denied, "8  agent:x  denied  cat b");
        assert!(line.starts_with("7  agent:x  failed  echo ") && !line.contains('\u{1b}'), "{line}");
        assert_eq!(self::line(&json!({"id": 8, "principal": "p", "kind": "session"})), "8  p  open  [session]");
        let made = json!({"id": 9, "principal": "p", "kind": "session", "ok": true, "session": "work", "detail": {"action": "created"}});
        let plan = json!({"id": 10, "principal": "p", "kind": "plan", "ok": true, "src": "rm a"});
        assert_eq!(self::line(&plan), "10  p  planned  rm a");
        assert_eq!(self::line(&made), "9  p  ok  [session created work]");
        assert_eq!(quoted("it's"), "'it\\'s'");
    }
}
