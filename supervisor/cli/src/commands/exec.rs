//! `shoal exec`: one run, its render, and its status as exit code.

use std::io::Read as _;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use shoal_client::CallError;
use shoal_wire::RpcError;

use crate::args::Exec;
use crate::context::{Context, call, text};
use crate::fail::Fail;
use crate::{escape, out};

/// Runs the source and tells what came of it.
pub(crate) fn run(context: &Context, exec: Exec) -> Result<ExitCode, Fail> {
    let params = params(exec)?;
    let answer = context.block_on(async {
        let (connection, _) = context.attach().await?;
        call(&connection, "exec", params).await
    });
    match answer {
        Ok(result) if context.json => {
            out::json(&result)?;
            Ok(status_of(&result))
        }
        Ok(result) => {
            shown(&result)?;
            Ok(status_of(&result))
        }
        Err(Fail::Call(CallError::Kernel(error))) => failed(context, &error),
        Err(other) => Err(other),
    }
}

fn params(exec: Exec) -> Result<Value, Fail> {
    let src = if exec.src == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| Fail::Said(format!("stdin: {e}")))?;
        text
    } else {
        exec.src
    };
    let mut params = Map::new();
    params.insert("src".into(), src.into());
    params.insert("position".into(), if exec.value { "value" } else { "stmt" }.into());
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            params.insert(name.into(), value);
        }
    };
    set("timeout_ms", exec.timeout.map(Into::into));
    set("deadline_ms", exec.deadline.map(Into::into));
    set("key", exec.key.map(Into::into));
    set("async", exec.background.then(|| json!(true)));
    Ok(params.into())
}

/// Prints a finished run's render, or the task it became.
fn shown(result: &Value) -> Result<(), Fail> {
    if result.get("task").is_some() {
        let why = if result["timed_out"] == json!(true) { "still running" } else { "started" };
        return out::line(&format!(
            "{} {why}; see it in: shoal top (or: shoal events tail {})",
            text(result, "task"),
            text(result, "events")
        ));
    }
    let render = text(result, "render");
    if render.is_empty() { Ok(()) } else { out::line(&escape::block(&render)) }
}

/// 0, or the status of a failed command.
fn status_of(result: &Value) -> ExitCode {
    let outcome = result.get("value").filter(|v| v["$"] == json!("outcome"));
    match outcome {
        Some(outcome) if outcome["ok"] == json!(false) => {
            command_status(outcome.get("status"), outcome.get("signal").and_then(Value::as_str))
        }
        _ => ExitCode::SUCCESS,
    }
}

/// The status as it is, 128 and the number of the signal, or 1.
fn command_status(status: Option<&Value>, signal: Option<&str>) -> ExitCode {
    let number = status.and_then(Value::as_u64).and_then(|s| u8::try_from(s).ok()).filter(|s| *s != 0);
    let by_signal = signal.and_then(shoal_sys::signal::number).and_then(|n| u8::try_from(n.saturating_add(128)).ok());
    ExitCode::from(number.or(by_signal).unwrap_or(1))
}

/// Says what went wrong with a run, and what to do about it.
pub(super) fn complain(error: &RpcError, with_stderr: bool) {
    let data = error.data.as_ref().unwrap_or(&Value::Null);
    let stderr = text(data, "stderr");
    if with_stderr && !stderr.is_empty() {
        out::note(escape::block(&stderr).trim_end_matches('\n'));
    }
    out::note(&format!("shoal: {}", escape::line(&error.message)));
    let hint = text(data, "hint");
    if !hint.is_empty() {
        out::note(&format!("hint: {}", escape::line(&hint)));
    }
}

/// Says what went wrong; the exit code is the command's own, 2 for a parse error, else 1.
fn failed(context: &Context, error: &RpcError) -> Result<ExitCode, Fail> {
    let data = error.data.clone().unwrap_or(Value::Null);
    if context.json {
        out::json(&json!({"error": {"code": error.code, "message": error.message, "data": data}}))?;
    } else {
        complain(error, true);
    }
    Ok(match error.code {
        -32001 => ExitCode::from(2),
        // A raised error names the signal in its message alone.
        -32002 => command_status(data.get("status"), error.message.rsplit(' ').next()),
        _ => ExitCode::FAILURE,
    })
}
