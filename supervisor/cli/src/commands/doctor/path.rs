//! The real path: a kernel, a jailed session, a command, a terminal, the journal, an event, an MCP handshake.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use shoal_client::Connection;

use super::Check;
use crate::context::{self, Context, call, items, text};
use crate::fail::Fail;
use crate::siblings;

/// The claim about the memory of a session as a whole: no machine can be set up so that it holds.
const NOWHERE_YET: &str = "C11";
/// How long each step that waits for something may take.
const STEP: Duration = Duration::from_secs(5);

/// What only a kernel can show: it is started if none runs.
pub(super) fn checks(context: &Context) -> Vec<Check> {
    let mut checks = Vec::new();
    let walked = context.block_on(walk(context, &mut checks));
    if let Err(fail) = walked {
        checks.push(Check::fail("kernel socket", fail.to_string(), remedy(&fail)));
    }
    checks.push(mcp(context));
    checks
}

/// Each step notes what it found; a step that nothing can follow ends the walk.
async fn walk(context: &Context, checks: &mut Vec<Check>) -> Result<(), Fail> {
    let connection = Connection::find(&context.config).await?;
    // Before anything that another version may answer otherwise.
    let version = call(&connection, "kernel.version", json!({})).await?;
    checks.push(skew(&version));
    let outside = connection.attach(&context.outside()).await?;
    let at = context.config.socket.display();
    checks.push(Check::ok("kernel socket", format!("{at}, as {}", outside.principal)));
    let mut attach = context.attachment();
    // Who may end a session tries everything in one of its own, which is gone afterwards.
    let is_human = items(&outside.all, "channels").iter().any(|channel| channel == "kernel");
    if is_human {
        attach.session = format!("doctor-{}", std::process::id());
    }
    let attached = connection.attach(&attach).await?;
    checks.push(claims(&attached.all));
    inside(&connection, checks).await;
    if is_human {
        call(&connection, "session.kill", json!({"session": attach.session, "reason": "the doctor is done"})).await?;
    }
    Ok(())
}

/// The steps inside a session.
async fn inside(connection: &Connection, checks: &mut Vec<Check>) {
    let exec = call(connection, "exec", json!({"src": "(^true).ok", "position": "value"})).await;
    checks.push(tried("command", exec, |r| r["render"] == json!("true"), "shoal exec ^true"));
    let verified = call(connection, "journal.verify", json!({})).await;
    let broken = "shoal history verify; docs/journal.md says what a broken link means";
    checks.push(tried("journal", verified, |r| r["ok"] == json!(true), broken));
    checks.push(event(connection).await);
    checks.push(pty(connection).await);
}

fn remedy(fail: &Fail) -> &'static str {
    match fail {
        Fail::Connect(shoal_client::ConnectError::Start(_)) => "see why in the foreground: shoal-kernel --verbose",
        Fail::Connect(shoal_client::ConnectError::NoKernel { .. }) => "shoal kernel start",
        _ => "docs/troubleshooting.md has it by symptom",
    }
}

fn tried(name: &str, result: Result<Value, Fail>, good: impl Fn(&Value) -> bool, remedy: &str) -> Check {
    match result {
        Ok(value) if good(&value) => Check::ok(name, "works"),
        Ok(value) => Check::fail(name, format!("unexpected answer {value}"), remedy),
        Err(fail) => Check::fail(name, fail.to_string(), remedy),
    }
}

/// Which version runs: package managers replace files under a running kernel.
fn skew(version: &Value) -> Check {
    match context::skew(version) {
        None => Check::ok("version", format!("{}, kernel and command", shoal_wire::BUILD)),
        Some(said) => Check::warn("version", said, "shoal kernel stop; the next call starts the new one"),
    }
}

fn claims(attached: &Value) -> Check {
    const NAME: &str = "jail";
    let level = text(attached, "level");
    let missing: Vec<String> = attached["claims"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, holds)| **holds != json!(true))
        .map(|(name, _)| name.clone())
        .collect();
    if missing.is_empty() {
        return Check::ok(NAME, format!("level {level}, every claim holds, as tried by a canary"));
    }
    if missing == [NOWHERE_YET] {
        return Check::ok(
            NAME,
            format!("level {level}, every claim but {NOWHERE_YET}, which this version holds nowhere"),
        );
    }
    let detail = format!("level {level}; not held: {}", missing.join(" "));
    Check::warn(NAME, detail, "docs/security.md says what each claim needs")
}

async fn event(connection: &Connection) -> Check {
    const NAME: &str = "event";
    let channel = "user.doctor";
    let pushed = async {
        let (_, mut subscription) = connection.subscribe(channel, None, None).await?;
        call(connection, "events.publish", json!({"channel": channel, "payload": {"probe": 1}})).await?;
        let event = tokio::time::timeout(STEP, subscription.next()).await;
        connection.unsubscribe(channel, None).await?;
        Ok::<bool, Fail>(matches!(event, Ok(Some(_))))
    };
    match pushed.await {
        Ok(true) => Check::ok(NAME, "works"),
        Ok(false) => Check::fail(NAME, "a published event did not arrive within 5 s", "shoal kernel stop, then again"),
        Err(fail) => Check::fail(NAME, fail.to_string(), "shoal events tail kernel"),
    }
}

async fn pty(connection: &Connection) -> Check {
    const NAME: &str = "pty";
    let screen = async {
        let opened = call(connection, "pty.open", json!({"cmd": "echo", "args": ["shoal-doctor"]})).await?;
        let id = text(&opened, "pty_id");
        let wait = json!({"text": "shoal-doctor", "timeout_ms": STEP.as_millis() as u64});
        let read = call(connection, "pty.read", json!({"pty_id": id, "wait": wait})).await?;
        call(connection, "pty.close", json!({"pty_id": id})).await?;
        Ok::<bool, Fail>(read["matched"] == json!("text"))
    };
    match screen.await {
        Ok(true) => Check::ok(NAME, "works"),
        Ok(false) => Check::fail(NAME, "a program's output did not reach its screen within 5 s", "shoal pty list"),
        Err(fail) => Check::fail(NAME, fail.to_string(), "shoal pty list"),
    }
}

/// An agent's first words to the facade, over its pipes.
fn mcp(context: &Context) -> Check {
    const NAME: &str = "mcp";
    match handshake(context) {
        Ok(answer) if answer.pointer("/result/serverInfo/name").is_some() => {
            let protocol = answer.pointer("/result/protocolVersion").and_then(Value::as_str).unwrap_or("?");
            Check::ok(NAME, format!("shoal-mcp answers, protocol {protocol}"))
        }
        Ok(answer) => Check::fail(NAME, format!("unexpected answer {answer}"), "run shoal-mcp and type a request"),
        Err(fail) => Check::fail(NAME, fail.to_string(), "is shoal-mcp of this version beside shoal?"),
    }
}

fn handshake(context: &Context) -> Result<Value, Fail> {
    let program = siblings::find("shoal-mcp")?;
    let failed = |e: std::io::Error| Fail::Said(format!("{}: {e}", program.display()));
    let mut facade = Command::new(&program)
        .arg("--socket")
        .arg(&context.config.socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "shoal-doctor", "version": "1"}}});
    let answer = facade
        .stdin
        .take()
        .ok_or_else(|| Fail::Said("no pipe to shoal-mcp".to_owned()))
        .and_then(|mut stdin| writeln!(stdin, "{request}").map(|()| stdin).map_err(failed))
        .and_then(|stdin| first_line(&mut facade).map(|line| (stdin, line)));
    // The end of its stdin is what ends it; a facade that hangs is ended.
    let answer = answer.map(|(stdin, line)| {
        drop(stdin);
        line
    });
    if answer.is_err() {
        facade.kill().map_err(failed)?;
    }
    facade.wait().map_err(failed)?;
    serde_json::from_str(&answer?).map_err(|e| Fail::Said(format!("its answer is no JSON: {e}")))
}

/// The first line a program says, within the time of a step.
fn first_line(program: &mut Child) -> Result<String, Fail> {
    let stdout = program.stdout.take().ok_or_else(|| Fail::Said("no pipe from shoal-mcp".to_owned()))?;
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // A doctor that stopped waiting does not need the line.
        drop(tell.send(BufReader::new(stdout).read_line(&mut line).map(|_| line)));
    });
    match told.recv_timeout(STEP) {
        Ok(Ok(line)) => Ok(line),
        Ok(Err(e)) => Err(Fail::Said(format!("shoal-mcp: {e}"))),
        Err(_) => Err(Fail::Said("shoal-mcp did not answer within 5 s".to_owned())),
    }
}
