//! `shoal policy`: check files, explain verdicts.

use std::process::{Command, ExitCode};

use serde_json::{Value, json};
use shoal_client::Vars;

use crate::args::Policy;
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{escape, out, siblings};

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Policy) -> Result<ExitCode, Fail> {
    match action {
        Policy::Check { files } => check(files),
        Policy::Explain { src } => explain(context, &src),
    }
}

/// Compiles the files with the program that the kernel uses; without files, those of the configuration directory.
fn check(mut files: Vec<std::path::PathBuf>) -> Result<ExitCode, Fail> {
    let vars = Vars::of_process();
    let home = vars.path("HOME").unwrap_or_default();
    if files.is_empty() {
        let folder = vars.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("shoal");
        let found = ["leash.toml", "shoal.toml"].map(|name| Some(folder.join(name)).filter(|path| path.exists()));
        // Their places tell them apart: a missing one is as good as an empty one.
        if found.iter().any(Option::is_some) {
            files = found.into_iter().map(|path| path.unwrap_or_else(|| "/dev/null".into())).collect();
        } else {
            out::line(&format!("no policy file in {}; the built-in policy allows you everything", folder.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let program = siblings::find("shoal-policy")?;
    let status = Command::new(&program)
        .args(["--uid", "0", "--home"])
        .arg(&home)
        .arg("--check")
        .args(&files)
        .status()
        .map_err(|e| Fail::Said(format!("cannot run {}: {e}", program.display())))?;
    if status.success() {
        out::line("the policy is well formed")?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
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
    out::line(&format!("verdict        {}", text(&result, "verdict")))?;
    out::line(&format!("reversibility  {}", text(&result, "reversibility")))?;
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
