//! `shoal kernel`: start, stop, reload.

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_client::{ConnectError, Connection};

use crate::args::Kernel;
use crate::context::{Context, call};
use crate::fail::Fail;
use crate::out;

/// The kernel's own grace, and a little for its last acts.
const STOP_WITHIN: Duration = Duration::from_secs(15);
/// SIGHUP.
const HANG_UP: i32 = 1;

/// Carries out the action.
pub(crate) fn run(context: Context, action: Kernel) -> Result<ExitCode, Fail> {
    match action {
        Kernel::Start => start(&context),
        Kernel::Stop => stop(&context.running_only()),
        Kernel::Reload => reload(&context.running_only()),
    }
}

fn start(context: &Context) -> Result<ExitCode, Fail> {
    context.block_on(async {
        let connection = Connection::find(&context.config).await?;
        let version = call(&connection, "kernel.version", json!({})).await?;
        out::line(&format!("running, build {}", crate::context::text(&version, "build")))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn stop(context: &Context) -> Result<ExitCode, Fail> {
    let stopped = context.block_on(async {
        let (connection, _) = match context.attach().await {
            Ok(attached) => attached,
            Err(Fail::Connect(ConnectError::NoKernel { .. })) => return Ok(false),
            Err(other) => return Err(other),
        };
        call(&connection, "kernel.shutdown", json!({})).await?;
        let lost = tokio::time::timeout(STOP_WITHIN, connection.lost()).await;
        lost.map_err(|_| Fail::Said(format!("the kernel is still there after {} s", STOP_WITHIN.as_secs())))?;
        gone(context).await?;
        Ok(true)
    })?;
    out::line(if stopped { "stopped" } else { "no kernel runs" })?;
    Ok(ExitCode::SUCCESS)
}

/// Waits until nobody listens: the socket file goes last.
async fn gone(context: &Context) -> Result<(), Fail> {
    let until = tokio::time::Instant::now() + STOP_WITHIN;
    while tokio::time::Instant::now() < until {
        if !context.config.socket.exists() || Connection::open(&context.config.socket).await.is_err() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(Fail::Said(format!("{} still answers", context.config.socket.display())))
}

fn reload(context: &Context) -> Result<ExitCode, Fail> {
    let status = context.block_on(async {
        let (connection, _) = context.attach().await?;
        call(&connection, "kernel.status", json!({})).await
    })?;
    let supervisor = crate::context::items(&status, "processes")
        .iter()
        .find(|p| p["role"] == json!("supervisor"))
        .and_then(|p| p["pid"].as_i64())
        .and_then(|pid| i32::try_from(pid).ok())
        .ok_or_else(|| Fail::Said("the kernel does not name its supervisor".to_owned()))?;
    match shoal_sys::process::kill(supervisor, HANG_UP) {
        Ok(true) => {}
        Ok(false) => return Err(Fail::Said(format!("no process {supervisor}; is the kernel in another container?"))),
        Err(e) => return Err(Fail::Said(format!("cannot signal {supervisor}: {e}"))),
    }
    out::line("reloading; `shoal status --json` shows `policy.rejected` if the files are malformed")?;
    let rejected = status.pointer("/policy/rejected").unwrap_or(&Value::Null);
    if !rejected.is_null() {
        out::line(&format!("before: rejected, {}", crate::escape::line(&rejected.to_string())))?;
    }
    Ok(ExitCode::SUCCESS)
}
