//! One line of the prompt: a run of the session, its output as it comes, its end or its task.

use serde_json::{Value, json};
use shoal_client::{CallError, Connection, Subscription};
use shoal_wire::{Code, RpcError};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::link::Link;
use crate::commands::exec;
use crate::context::{self, items, text};
use crate::fail::Fail;
use crate::{escape, out};

/// How long a run is waited for before its output is followed: most are over by then, and nobody sees the difference.
const HAND_OVER_MS: u64 = 250;
/// Bytes of output asked for at a time.
const CHUNK: u64 = 32 * 1024;

/// How a run left the front.
enum Ended {
    /// The result of a finished run.
    Result(Value),
    /// The record of a finished task whose output was shown.
    Task(Value),
    /// The person left it running.
    Left(String),
}

/// Runs a line and shows what comes of it. What goes wrong with the line is said here; the error is that nothing can be
/// run any more.
pub(crate) fn line(link: &Link, src: &str) -> Result<(), Fail> {
    link.hold_notices();
    let ended = link.block_on(in_front(link, src));
    let task = match &ended {
        Ok(Ended::Task(record)) => Some(text(record, "task")),
        Ok(Ended::Left(task)) => Some(task.clone()),
        _ => None,
    };
    let goes_on = matches!(ended, Ok(Ended::Left(_)));
    let shown = show(link, ended);
    link.release_notices(task.as_deref(), goes_on);
    shown
}

fn show(link: &Link, ended: Result<Ended, Fail>) -> Result<(), Fail> {
    match ended {
        Ok(Ended::Result(result)) => {
            let failed = result.pointer("/value/ok") == Some(&json!(false));
            link.refresh_place(Some(display(&result)), failed);
            let render = text(&result, "render");
            if render.is_empty() { Ok(()) } else { out::line(&escape::block(&render)) }
        }
        Ok(Ended::Task(record)) => {
            let failed = record["state"] != json!("completed");
            link.refresh_place(None, failed);
            finished_task(link, &record, failed)
        }
        Ok(Ended::Left(task)) => {
            out::line(&format!("{task} goes on; its end is announced here (cancel it with: shoal top)"))
        }
        Err(Fail::Call(CallError::Kernel(error))) if error.is(Code::SessionEnded) => {
            Err(Fail::Said(format!("{}; open it afresh with: shoal attach {}", error.message, link.attached().session)))
        }
        Err(Fail::Call(CallError::Kernel(error))) => {
            let cwd = error.data.as_ref().and_then(|data| data.get("cwd")).map(|cwd| text(cwd, "display"));
            link.refresh_place(cwd, true);
            exec::complain(&error, true);
            Ok(())
        }
        Err(Fail::Call(CallError::Lost)) => {
            out::note("shoal: the kernel went away before the answer; look with: shoal history");
            Ok(())
        }
        Err(fail @ (Fail::Call(_) | Fail::Connect(_))) => {
            out::note(&format!("shoal: {}", escape::line(&fail.to_string())));
            Ok(())
        }
        Err(other) => Err(other),
    }
}

fn display(result: &Value) -> String {
    result.get("cwd").map(|cwd| text(cwd, "display")).unwrap_or_default()
}

/// The end of a run whose output was shown while it ran: a value that is no command's outcome, or what went wrong.
fn finished_task(link: &Link, record: &Value, failed: bool) -> Result<(), Fail> {
    if failed {
        let error: Option<RpcError> = serde_json::from_value(record["error"].clone()).ok();
        match error {
            // What it said on stderr was shown already.
            Some(error) => exec::complain(&error, false),
            None => out::note(&format!("shoal: {} {}", text(record, "task"), text(record, "state"))),
        }
        return Ok(());
    }
    let reference = text(record, "result_ref");
    if reference.is_empty() {
        return Ok(());
    }
    let value = link.call("value.get", json!({"ref": reference}))?;
    if value.pointer("/value/$") == Some(&json!("outcome")) {
        return Ok(());
    }
    let render = text(&link.call("value.get", json!({"ref": reference, "format": "render"}))?, "render");
    if render.is_empty() { Ok(()) } else { out::line(&escape::block(&render)) }
}

async fn in_front(link: &Link, src: &str) -> Result<Ended, Fail> {
    let mut keys = Keys::new()?;
    let connection = link.connection().await?;
    let params = json!({"src": src, "position": "stmt", "timeout_ms": HAND_OVER_MS});
    let answer = context::call(&connection, "exec", params).await?;
    match answer.get("task").and_then(Value::as_str) {
        None => Ok(Ended::Result(answer)),
        Some(task) => follow(&connection, task, &mut keys).await,
    }
}

/// Keys that the terminal turns into signals while a run is in front.
struct Keys {
    interrupt: Signal,
    stop: Signal,
}

impl Keys {
    fn new() -> Result<Self, Fail> {
        let heard = |kind| signal(kind).map_err(|e| Fail::Said(format!("cannot take signals: {e}")));
        let stop = SignalKind::from_raw(shoal_sys::signal::TERMINAL_STOP);
        Ok(Self { interrupt: heard(SignalKind::interrupt())?, stop: heard(stop)? })
    }
}

/// Shows a task's output until it ends or is left. Ctrl-C climbs the ladder: cancel first, kill when asked again.
async fn follow(connection: &Connection, task: &str, keys: &mut Keys) -> Result<Ended, Fail> {
    let (_, mut events) = connection.subscribe(&task.replace(':', "."), Some(0), None).await?;
    let mut output = Output { task, next: 0, at_line_start: true };
    let mut cancels = 0_u32;
    loop {
        output.show_new(connection).await?;
        let record = context::call(connection, "task.get", json!({"task": task})).await?;
        if matches!(record["state"].as_str(), Some("completed" | "failed" | "cancelled")) {
            output.show_new(connection).await?;
            output.end_line()?;
            return Ok(Ended::Task(record));
        }
        tokio::select! {
            more = next(&mut events) => if !more { return Err(Fail::Call(CallError::Lost)) },
            _ = keys.interrupt.recv() => {
                cancels += 1;
                output.end_line()?;
                let signal = if cancels == 1 { "int" } else { "kill" };
                out::note(&format!("cancelling {task} ({signal}) ..."));
                // The answer comes when its processes are verified gone; the loop reads its record then.
                context::call(connection, "task.cancel", json!({"task": task, "signal": signal})).await?;
            }
            _ = keys.stop.recv() => {
                output.end_line()?;
                return Ok(Ended::Left(task.to_owned()));
            }
        }
    }
}

/// Waits for an event and takes those that are queued behind it; false when there will be none.
async fn next(events: &mut Subscription) -> bool {
    events.next().await.is_some()
}

/// What was shown of a task's output.
struct Output<'t> {
    task: &'t str,
    next: u64,
    at_line_start: bool,
}

impl Output<'_> {
    /// Prints what came since the last look.
    async fn show_new(&mut self, connection: &Connection) -> Result<(), Fail> {
        loop {
            let asked = json!({"task": self.task, "offset": self.next, "max": CHUNK});
            let read = context::call(connection, "task.output", asked).await?;
            if read["lossy"] == json!(true) {
                out::text("\n... the middle of the output was dropped ...\n")?;
            }
            for chunk in items(&read, "chunks") {
                let shown = match chunk.get("data").and_then(Value::as_str) {
                    Some(data) => escape::block(data),
                    None => format!("[{} bytes that are no text]", text(chunk, "data_base64").len() / 4 * 3),
                };
                self.at_line_start = shown.ends_with('\n');
                out::text(&shown)?;
            }
            let next = read["next_offset"].as_u64().unwrap_or(self.next);
            let is_all = next <= self.next || read["total_seen"].as_u64().is_none_or(|total| next >= total);
            self.next = self.next.max(next);
            if is_all {
                return Ok(());
            }
        }
    }

    /// Ends a line that was begun.
    fn end_line(&mut self) -> Result<(), Fail> {
        if !std::mem::replace(&mut self.at_line_start, true) {
            out::text("\n")?;
        }
        Ok(())
    }
}
