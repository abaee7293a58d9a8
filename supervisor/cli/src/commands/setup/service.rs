//! `shoal setup service`: user units of systemd, or the launchd agent, with the absolute path of this installation.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use shoal_client::Vars;

use crate::fail::Fail;
use crate::{out, siblings};

const SOCKET_UNIT: &str = include_str!("../../../../../packaging/systemd/shoal.socket");
const SERVICE_UNIT: &str = include_str!("../../../../../packaging/systemd/shoal.service");
const AGENT: &str = include_str!("../../../../../packaging/launchd/dev.shoal.kernel.plist");

/// What the units name before they are rendered.
const PACKAGED: &str = "/usr/bin/shoal-kernel";

/// Writes and enables the service, or prints what would be written.
pub(crate) fn run(linger: bool, print: bool) -> Result<ExitCode, Fail> {
    let program = siblings::find("shoal-kernel")?;
    let program = std::fs::canonicalize(&program).unwrap_or(program);
    let files = files(&program)?;
    if print {
        for (path, text) in &files {
            out::line(&format!("# {}\n{text}", path.display()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if Path::new("/usr/lib/systemd/user/shoal.socket").exists() {
        return Err(Fail::Said(
            "a packaged unit is installed; enable it with: systemctl --user enable --now shoal.socket".to_owned(),
        ));
    }
    for (path, text) in &files {
        let failed = |e: std::io::Error| Fail::Said(format!("{}: {e}", path.display()));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(path, text).map_err(failed)?;
        out::line(&format!("wrote {}", path.display()))?;
    }
    for words in enabling(linger) {
        run_step(&words)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn files(program: &Path) -> Result<Vec<(PathBuf, String)>, Fail> {
    let vars = Vars::of_process();
    let home = vars.path("HOME").ok_or_else(|| Fail::Said("HOME is not set; units are a user's own".to_owned()))?;
    let rendered = |text: &str| text.replace(PACKAGED, &program.display().to_string());
    if cfg!(target_os = "macos") {
        return Ok(vec![(home.join("Library/LaunchAgents/dev.shoal.kernel.plist"), rendered(AGENT))]);
    }
    let folder = vars.path("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("systemd/user");
    Ok(vec![
        (folder.join("shoal.socket"), rendered(SOCKET_UNIT)),
        (folder.join("shoal.service"), rendered(SERVICE_UNIT)),
    ])
}

fn enabling(linger: bool) -> Vec<Vec<&'static str>> {
    if cfg!(target_os = "macos") {
        return vec![vec!["launchctl", "load", "-w", "Library/LaunchAgents/dev.shoal.kernel.plist"]];
    }
    let mut steps = vec![
        vec!["systemctl", "--user", "daemon-reload"],
        vec!["systemctl", "--user", "enable", "--now", "shoal.socket"],
    ];
    if linger {
        steps.push(vec!["loginctl", "enable-linger"]);
    }
    steps
}

fn run_step(words: &[&str]) -> Result<(), Fail> {
    let shown = words.join(" ");
    let mut parts = words.iter();
    let program = parts.next().copied().unwrap_or_default();
    match Command::new(program).args(parts).status() {
        Ok(status) if status.success() => out::line(&format!("ran {shown}")),
        Ok(status) => Err(Fail::Said(format!("`{shown}` failed ({status}); the files are written, run it by hand"))),
        Err(e) => {
            Err(Fail::Said(format!("`{shown}`: {e}; the files are written, run it where a service manager runs")))
        }
    }
}
