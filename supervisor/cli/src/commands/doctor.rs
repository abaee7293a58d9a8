//! `shoal doctor`: the machine, then the real path step by step. Each finding has its remedy; the exit code is the worst.

mod host;
mod path;
mod sandbox;
mod service;

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::context::Context;
use crate::fail::Fail;
use crate::{escape, out};

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
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check {
    name: String,
    level: Level,
    detail: String,
    /// What to do about it; nothing needs one when all is well.
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &str, detail: impl Into<String>) -> Self {
        Self { name: name.to_owned(), level: Level::Ok, detail: detail.into(), remedy: None }
    }

    fn warn(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Warn, remedy: Some(remedy.into()), ..Self::ok(name, detail) }
    }

    fn fail(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { level: Level::Fail, remedy: Some(remedy.into()), ..Self::ok(name, detail) }
    }
}

/// Runs every check and exits with the worst.
pub(crate) fn run(context: Context) -> Result<ExitCode, Fail> {
    let mut checks = host::checks(&context);
    checks.extend(sandbox::checks());
    checks.extend(service::checks(&context));
    checks.extend(path::checks(&context));
    let worst = checks.iter().map(|c| c.level).max().unwrap_or(Level::Ok);
    let exit = worst as u8;
    if context.json {
        let list: Vec<Value> = checks
            .iter()
            .map(|c| json!({"name": c.name, "level": c.level.shown(), "detail": c.detail, "remedy": c.remedy}))
            .collect();
        out::json(&json!({"checks": list, "exit": exit}))?;
    } else {
        let color = crate::style::on_stdout();
        for check in &checks {
            out::line(&shown(check, color))?;
        }
        out::line(&format!("exit: {exit}"))?;
    }
    Ok(ExitCode::from(exit))
}

/// A finding, its remedy below.
fn shown(check: &Check, color: bool) -> String {
    let level = format!("{:<5}", check.level.shown());
    let level = match check.level {
        _ if !color => level,
        Level::Ok => format!("\x1b[32m{level}\x1b[0m"),
        Level::Warn => format!("\x1b[33m{level}\x1b[0m"),
        Level::Fail => format!("\x1b[31m{level}\x1b[0m"),
    };
    let first = format!("{level}{:<20} {}", check.name, escape::line(&check.detail));
    match &check.remedy {
        Some(remedy) => format!("{first}\n{:<26}-> {}", "", escape::line(remedy)),
        None => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_two_escaped_lines() {
        let check = Check::warn("policy", "a\nb\x1b", "do c");
        assert_eq!(shown(&check, false), "warn policy               a\\nb\\u{1b}\n                          -> do c");
        assert!(shown(&Check::ok("x", "y"), true).starts_with("\x1b[32mok   \x1b[0mx "));
    }
}
