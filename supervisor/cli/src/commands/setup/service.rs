//! `shoal setup service`: user units of systemd, or the launchd agent, with the absolute path of this installation.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};

use crate::context::Context;
use crate::fail::Fail;
use crate::{out, siblings};

const SOCKET_UNIT: &str = include_str!("../../../../../packaging/systemd/shoal.socket");
const SERVICE_UNIT: &str = include_str!("../../../../../packaging/systemd/shoal.service");
const AGENT: &str = include_str!("../../../../../packaging/launchd/dev.shoal.kernel.plist");

/// What the units name before they are rendered.
const PACKAGED: &str = "/usr/bin/shoal-kernel";
const SOCKET: &str = "/tmp/shoal.sock";

/// Writes and enables the service, or prints what would be written.
pub(crate) fn run(context: &Context, linger: bool, print: bool) -> Result<ExitCode, Fail> {
    let program = siblings::find("shoal-kernel")?;
    let program = std::fs::canonicalize(&program).unwrap_or(program);
    let files = files(context, &program)?;
    let list: Vec<Value> =
        files.iter().map(|(path, text)| json!({"path": path.display().to_string(), "text": text})).collect();
    if print {
        let shown: Vec<String> = files.iter().map(|(path, text)| format!("# {}\n{text}", path.display())).collect();
        out::either(context, &json!({"files": list}), &shown.join("\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if Path::new("/usr/lib/systemd/user/shoal.socket").exists() {
        return Err(Fail::Said(
            "a packaged unit is installed; enable it with: systemctl --user enable --now shoal.socket".to_owned(),
        ));
    }
    for (path, text) in &files {
        let failed = |e: std::io::Error| {
            let next = "`shoal setup service --print` shows what would be written";
            Fail::Said(format!("{}: {e}; {next}", path.display()))
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(path, text).map_err(failed)?;
        told(context, &format!("wrote {}", path.display()))?;
    }
    let first = files.first().map(|(path, _)| path.display().to_string()).unwrap_or_default();
    for words in enabling(linger, &first) {
        run_step(context, &words)?;
    }
    if context.json {
        out::json(&json!({"files": list}))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops the service and removes what [`run`] wrote.
pub(crate) fn remove(context: &Context) -> Result<ExitCode, Fail> {
    let written: Vec<PathBuf> =
        files(context, Path::new(PACKAGED))?.into_iter().map(|(path, _)| path).filter(|path| path.exists()).collect();
    let Some(first) = written.first() else {
        out::either(context, &json!({"removed": []}), "no service was set up here")?;
        return Ok(ExitCode::SUCCESS);
    };
    for words in disabling(&first.display().to_string()) {
        run_step(context, &words)?;
    }
    for path in &written {
        std::fs::remove_file(path).map_err(|e| Fail::Said(format!("{}: {e}", path.display())))?;
        told(context, &format!("removed {}", path.display()))?;
    }
    if cfg!(target_os = "linux") {
        run_step(context, &words(&["systemctl", "--user", "daemon-reload"]))?;
    }
    if context.json {
        out::json(&json!({"removed": written.iter().map(|path| path.display().to_string()).collect::<Vec<_>>()}))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn files(context: &Context, program: &Path) -> Result<Vec<(PathBuf, String)>, Fail> {
    let vars = context.vars();
    let home = vars.path("HOME").ok_or_else(|| Fail::Said("HOME is not set; units are a user's own".to_owned()))?;
    let program = program.display().to_string();
    if cfg!(target_os = "macos") {
        let text =
            AGENT.replace(PACKAGED, &xml(&program)).replace(SOCKET, &xml(&context.config.socket.display().to_string()));
        return Ok(vec![(home.join("Library/LaunchAgents/dev.shoal.kernel.plist"), text)]);
    }
    if program.contains(['%', '"', '\\', '\n']) || program.contains(char::is_whitespace) {
        return Err(Fail::Said(format!("{program:?} cannot be named in a unit; install Shoal in another folder")));
    }
    let folder = vars.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("systemd/user");
    Ok(vec![
        (folder.join("shoal.socket"), SOCKET_UNIT.to_owned()),
        (folder.join("shoal.service"), SERVICE_UNIT.replace(PACKAGED, &program)),
    ])
}

/// Says a step; a document comes at the end instead when one is wanted.
fn told(context: &Context, said: &str) -> Result<(), Fail> {
    if context.json { Ok(()) } else { out::line(&crate::escape::line(said)) }
}

/// A text inside a property list.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What makes the service known, in order.
fn enabling(linger: bool, plist: &str) -> Vec<Vec<String>> {
    if cfg!(target_os = "macos") {
        return vec![words(&["launchctl", "bootstrap", &format!("gui/{}", shoal_sys::process::uid()), plist])];
    }
    let mut steps = vec![
        words(&["systemctl", "--user", "daemon-reload"]),
        words(&["systemctl", "--user", "enable", "--now", "shoal.socket"]),
    ];
    if linger {
        steps.push(words(&["loginctl", "enable-linger"]));
    }
    steps
}

/// What ends it, in order.
fn disabling(plist: &str) -> Vec<Vec<String>> {
    if cfg!(target_os = "macos") {
        return vec![words(&["launchctl", "bootout", &format!("gui/{}", shoal_sys::process::uid()), plist])];
    }
    vec![words(&["systemctl", "--user", "disable", "--now", "shoal.socket", "shoal.service"])]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn run_step(context: &Context, words: &[String]) -> Result<(), Fail> {
    let shown = words.join(" ");
    let mut parts = words.iter();
    let program = parts.next().map(String::as_str).unwrap_or_default();
    match Command::new(program).args(parts).status() {
        Ok(status) if status.success() => told(context, &format!("ran {shown}")),
        Ok(status) => Err(Fail::Said(format!("`{shown}` failed ({status}); nothing else was done, run it by hand"))),
        Err(e) => Err(Fail::Said(format!("`{shown}`: {e}; run it where a service manager runs"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rendered_is_named_in_every_unit() {
        assert!(SERVICE_UNIT.contains(&format!("ExecStart={PACKAGED}\n")));
        assert!(
            AGENT.contains(&format!("<string>{PACKAGED}</string>"))
                && AGENT.contains(&format!("<string>{SOCKET}</string>"))
        );
        // The name the kernel asks launchd and systemd for.
        assert!(AGENT.contains("<key>shoal</key>") && SOCKET_UNIT.contains("FileDescriptorName=shoal\n"));
        assert_eq!(xml("/a&b<c>"), "/a&amp;b&lt;c&gt;");
    }
}
