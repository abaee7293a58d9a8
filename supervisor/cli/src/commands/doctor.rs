//! `shoal doctor`: the real path, step by step. Each finding has its remedy; the exit code is the worst.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

use crate::context::{Context, call, text};
use crate::fail::Fail;
use crate::{escape, out, siblings};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ok,
    Warn,
    Fail,
}

impl Level {
    fn shown(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// One finding.
struct Check {
    name: &'static str,
    level: Level,
    detail: String,
}

fn check(name: &'static str, level: Level, detail: impl Into<String>) -> Check {
    Check { name, level, detail: detail.into() }
}

/// Runs every check and exits with the worst.
pub(crate) fn run(context: Context) -> Result<ExitCode, Fail> {
    let mut checks = vec![runtime_dir(&context), state_dir(&context), policy()];
    for tool in ["tool sh", "tool git", "tool rg", "tool cargo"] {
        checks.push(program(tool));
    }
    checks.extend(kernel(&context));
    let worst = checks.iter().map(|c| c.level).max().unwrap_or(Level::Ok);
    let exit = worst as u8;
    if context.json {
        let list: Vec<Value> =
            checks.iter().map(|c| json!({"name": c.name, "level": c.level.shown(), "detail": c.detail})).collect();
        out::json(&json!({"checks": list, "exit": exit}))?;
    } else {
        for c in &checks {
            out::line(&format!("{:<5}{:<20} {}", c.level.shown(), c.name, escape::line(&c.detail)))?;
        }
        out::line(&format!("exit: {exit}"))?;
    }
    Ok(ExitCode::from(exit))
}

/// Whether a directory is ours alone.
fn private(name: &'static str, path: &Path, create_hint: &str) -> Check {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            check(name, Level::Ok, format!("{} will be made ({create_hint})", path.display()))
        }
        Err(e) => check(name, Level::Fail, format!("{}: {e}", path.display())),
        Ok(meta) if meta.mode() & 0o077 != 0 => {
            check(name, Level::Fail, format!("{} lets others in; chmod 700 it", path.display()))
        }
        Ok(_) => check(name, Level::Ok, path.display().to_string()),
    }
}

fn runtime_dir(context: &Context) -> Check {
    match context.config.socket.parent() {
        Some(folder) => private("runtime dir", folder, "at the first start"),
        None => check("runtime dir", Level::Fail, "the socket path has no folder; set SHOAL_SOCKET"),
    }
}

fn state_dir(context: &Context) -> Check {
    match &context.config.state_dir {
        Some(folder) => private("state dir", folder, "at the first start"),
        None => check("state dir", Level::Fail, "no home directory; set SHOAL_STATE_DIR"),
    }
}

fn policy() -> Check {
    let vars = shoal_client::Vars::of_process();
    let home = vars.path("HOME").unwrap_or_default();
    let folder = vars.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("shoal");
    let leash = vars.path("SHOAL_POLICY").unwrap_or_else(|| folder.join("leash.toml"));
    if !leash.exists() {
        return check("policy", Level::Ok, "no leash.toml: the built-in policy allows you everything");
    }
    let checked = siblings::find("shoal-policy").map_err(|e| e.to_string()).and_then(|program| {
        let output =
            Command::new(program).args(["--uid", "0", "--home"]).arg(&home).arg("--check").arg(&leash).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(e) => Err(e.to_string()),
        }
    });
    match checked {
        Ok(()) => check("policy", Level::Ok, leash.display().to_string()),
        Err(why) => check("policy", Level::Fail, why),
    }
}

fn program(name: &'static str) -> Check {
    let tool = name.trim_start_matches("tool ");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|p| p.is_file());
    match found {
        Some(path) => check(name, Level::Ok, path.display().to_string()),
        None if tool == "sh" => check(name, Level::Fail, "not in PATH: `sh { }` blocks cannot run"),
        None => check(name, Level::Warn, "not in PATH"),
    }
}

/// What only a kernel can show: it is started if none runs.
fn kernel(context: &Context) -> Vec<Check> {
    let tried = context.block_on(async {
        let (connection, attached) = context.attach().await?;
        let status = call(&connection, "kernel.status", json!({})).await?;
        let mut checks = vec![check(
            "kernel socket",
            Level::Ok,
            format!("{}, build {}", context.config.socket.display(), text(&status, "build")),
        )];
        checks.push(skew(&status));
        checks.push(claims(&attached.all));
        checks.push(tried(
            "command",
            call(&connection, "exec", json!({"src": "(^true).ok", "position": "value"})).await,
            |r| r["render"] == json!("true"),
        ));
        checks.push(tried("journal", call(&connection, "journal.verify", json!({})).await, |r| r["ok"] == json!(true)));
        checks.push(event(&connection).await);
        checks.push(pty(&connection).await);
        Ok(checks)
    });
    tried.unwrap_or_else(|fail: Fail| vec![check("kernel socket", Level::Fail, fail.to_string())])
}

fn tried(name: &'static str, result: Result<Value, Fail>, good: impl Fn(&Value) -> bool) -> Check {
    match result {
        Ok(value) if good(&value) => check(name, Level::Ok, "works"),
        Ok(value) => check(name, Level::Fail, format!("unexpected answer {value}")),
        Err(fail) => check(name, Level::Fail, fail.to_string()),
    }
}

fn skew(status: &Value) -> Check {
    let (theirs, ours) = (text(status, "build"), shoal_wire::BUILD);
    if theirs == ours {
        return check("version", Level::Ok, ours);
    }
    check(
        "version",
        Level::Warn,
        format!("this program is {ours}, the kernel is {theirs}; restart it with: shoal kernel stop"),
    )
}

fn claims(attached: &Value) -> Check {
    let level = text(attached, "level");
    let missing: Vec<String> = attached["claims"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, holds)| **holds != json!(true))
        .map(|(name, _)| name.clone())
        .collect();
    if missing.is_empty() {
        return check("jail", Level::Ok, format!("level {level}, every claim holds"));
    }
    let detail = format!("level {level}; not held: {}; docs/security.md says what each needs", missing.join(" "));
    check("jail", Level::Warn, detail)
}

async fn event(connection: &shoal_client::Connection) -> Check {
    let channel = "user.doctor";
    let pushed = async {
        let (_, mut subscription) = connection.subscribe(channel, None, None).await?;
        call(connection, "events.publish", json!({"channel": channel, "payload": {"probe": 1}})).await?;
        let event = tokio::time::timeout(std::time::Duration::from_secs(5), subscription.next()).await;
        connection.unsubscribe(channel, None).await?;
        Ok::<bool, Fail>(matches!(event, Ok(Some(_))))
    };
    match pushed.await {
        Ok(true) => check("event", Level::Ok, "works"),
        Ok(false) => check("event", Level::Fail, "a published event did not arrive within 5 s"),
        Err(fail) => check("event", Level::Fail, fail.to_string()),
    }
}

async fn pty(connection: &shoal_client::Connection) -> Check {
    let screen = async {
        let opened = call(connection, "pty.open", json!({"cmd": "echo", "args": ["shoal-doctor"]})).await?;
        let id = text(&opened, "pty_id");
        let wait = json!({"text": "shoal-doctor", "timeout_ms": 5000});
        let read = call(connection, "pty.read", json!({"pty_id": id, "wait": wait})).await?;
        call(connection, "pty.close", json!({"pty_id": id})).await?;
        Ok::<bool, Fail>(read["matched"] == json!("text"))
    };
    match screen.await {
        Ok(true) => check("pty", Level::Ok, "works"),
        Ok(false) => check("pty", Level::Fail, "a program's output did not reach its screen within 5 s"),
        Err(fail) => check("pty", Level::Fail, fail.to_string()),
    }
}
