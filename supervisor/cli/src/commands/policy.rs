//! `shoal policy`: check files, explain verdicts.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

use crate::args::Policy;
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{escape, out, siblings};

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Policy) -> Result<ExitCode, Fail> {
    match action {
        Policy::Check { files } => check(context, files),
        Policy::Explain { src } => explain(context, &src),
    }
}

/// Compiles the files with the program that the kernel uses; without files, those of the configuration directory.
fn check(context: &Context, mut files: Vec<PathBuf>) -> Result<ExitCode, Fail> {
    if files.is_empty() {
        let Some(folder) = context.config_dir() else {
            let said =
                "there is no home directory to look for policy files in; the built-in policy allows you everything";
            out::either(context, &json!({"ok": true, "files": []}), said)?;
            return Ok(ExitCode::SUCCESS);
        };
        let found = ["leash.toml", "shoal.toml"].map(|name| Some(folder.join(name)).filter(|path| path.exists()));
        // Their places tell them apart: a missing one is as good as an empty one.
        if found.iter().any(Option::is_some) {
            files = found.into_iter().map(|path| path.unwrap_or_else(|| "/dev/null".into())).collect();
        } else {
            let said = format!("no policy file in {}; the built-in policy allows you everything", folder.display());
            out::either(context, &json!({"ok": true, "files": []}), &escape::line(&said))?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let program = siblings::find("shoal-policy")?;
    let checked = Command::new(&program)
        .args(["--uid", "0", "--home"])
        .arg(context.vars().path("HOME").unwrap_or_default())
        .arg("--check")
        .args(&files)
        .output()
        .map_err(|e| Fail::Said(format!("cannot run {}: {e}", program.display())))?;
    let errors = String::from_utf8_lossy(&checked.stderr).trim().to_owned();
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let is_good = checked.status.success();
    if context.json {
        out::json(&json!({"ok": is_good, "files": names, "errors": errors.lines().collect::<Vec<_>>()}))?;
    } else if is_good {
        out::line("the policy is well formed")?;
    } else {
        out::note(&escape::block(&errors));
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the policy in force makes of a source, for the session it would run in.
fn explain(context: &Context, src: &str) -> Result<ExitCode, Fail> {
    let result = context.block_on(async {
        let (connection, _) = context.attach().await?;
        call(&connection, "explain", json!({"src": src})).await
    })?;
    if context.json {
        out::json(&result)?;
        return Ok(ExitCode::SUCCESS);
    }
    out::line(&format!("verdict        {}", escape::line(&text(&result, "verdict"))))?;
    out::line(&format!("reversibility  {}", escape::line(&text(&result, "reversibility"))))?;
    for effect in items(&result, "effects") {
        out::line(&format!("effect         {}", escape::line(&effect_text(effect))))?;
    }
    for (name, member) in [("why", "why"), ("to change it", "grants")] {
        for line in items(&result, member) {
            out::line(&format!("{name:<14} {}", escape::line(line.as_str().unwrap_or_default())))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn effect_text(effect: &Value) -> String {
    let mut members: Vec<String> = effect
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "kind")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    members.insert(0, text(effect, "kind"));
    members.join(" ")
}
