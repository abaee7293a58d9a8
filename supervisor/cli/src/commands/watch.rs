//! `shoal watch`: list, start and stop watches; run a command for their notices.

mod message;
mod run;

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Watch;
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{escape, out, table};

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Watch) -> Result<ExitCode, Fail> {
    let (method, params) = match &action {
        Watch::Run(follow) => return run::run(context, follow),
        Watch::List => ("watch.list", json!({})),
        Watch::Start { name, uri, on_event, lang, once } => {
            let mut params = json!({"name": name, "uri": uri, "lang": lang, "persist": !once});
            if let Some(source) = on_event {
                params["on_event"] = json!(source);
            }
            ("watch.start", params)
        }
        Watch::Stop { name } => ("watch.stop", json!({"name": name})),
    };
    let result = context.block_on(async {
        let (connection, _) = match action {
            Watch::Start { .. } => context.attach().await?,
            _ => context.enter(None).await?,
        };
        call(&connection, method, params).await
    })?;
    let stopped = result["stopped"] != false;
    match action {
        _ if context.json => out::json(&result)?,
        Watch::Start { .. } => {
            let [uri, name, shape] = ["uri", "name", "shape"].map(|member| escape::line(&text(&result, member)));
            out::line(&format!("watching {uri} as {name} ({shape})"))?;
        }
        Watch::Stop { name } if stopped => out::line(&format!("stopped {name}"))?,
        Watch::Stop { name } => return Err(Fail::Said(format!("there is no watch `{name}`"))),
        Watch::List | Watch::Run(_) => out::line(&listing(&result))?,
    }
    Ok(if stopped { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn listing(result: &Value) -> String {
    let columns = ["name", "uri", "shape", "state", "events", "notices", "last_error"];
    let row = |watch: &Value| columns.iter().map(|column| text(watch, column)).collect();
    let rows: Vec<Vec<String>> = items(result, "watches").iter().map(row).collect();
    table::render(&["NAME", "URI", "SHAPE", "STATE", "EVENTS", "NOTICES", "LAST ERROR"], &rows)
}
