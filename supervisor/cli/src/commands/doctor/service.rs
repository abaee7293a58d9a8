//! The service manager: whether a unit is installed, whether it failed, and whether it outlives the last login.

use std::path::Path;
use std::process::{Command, Stdio};

use super::Check;
use crate::context::Context;

pub(super) fn checks(context: &Context) -> Vec<Check> {
    let unit = if cfg!(target_os = "macos") { "dev.shoal.kernel.plist" } else { "shoal.socket" };
    let installed = context.config.unit_dirs.iter().map(|dir| dir.join(unit)).find(|path| path.exists());
    let Some(path) = installed else {
        return vec![Check::ok(
            "service",
            "not set up; the first call starts a kernel (shoal setup service changes that)",
        )];
    };
    let mut checks = vec![program(&path)];
    if cfg!(target_os = "linux") {
        match states() {
            Some(states) => checks.extend([units(&states), linger()]),
            None => {
                checks.push(Check::ok("service state", "no systemctl here: clients start the kernel by themselves"))
            }
        }
    }
    checks
}

/// Whether the program that the service unit starts is there.
fn program(socket_unit: &Path) -> Check {
    const NAME: &str = "service";
    let unit = socket_unit.with_extension(if cfg!(target_os = "macos") { "plist" } else { "service" });
    let text = match std::fs::read_to_string(&unit) {
        Ok(text) => text,
        Err(e) => {
            return Check::fail(NAME, format!("{}: {e}", unit.display()), "install it again: shoal setup service");
        }
    };
    match started(&text) {
        Some(path) if Path::new(path).exists() => Check::ok(NAME, format!("{} starts {path}", unit.display())),
        Some(path) => Check::fail(
            NAME,
            format!("{} starts {path}, which is not there", unit.display()),
            "install it again: shoal setup service",
        ),
        None => Check::warn(NAME, format!("{} starts no shoal-kernel", unit.display()), "shoal setup service"),
    }
}

/// The path of the kernel in a unit or property list.
fn started(text: &str) -> Option<&str> {
    let end = text.find("/shoal-kernel")? + "/shoal-kernel".len();
    let head = text.get(..end)?;
    let start = head.rfind(['=', '>', '\n', ' '])? + 1;
    head.get(start..)
}

/// What the service manager says of socket and service; nothing when it does not answer, `None` when there is none.
fn states() -> Option<Vec<String>> {
    let asked = Command::new("systemctl")
        .args(["--user", "is-failed", "shoal.socket", "shoal.service"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    Some(String::from_utf8_lossy(&asked.ok()?.stdout).lines().map(str::to_owned).collect())
}

/// A failed unit takes the socket with it, and clients are told nothing but "connection refused".
fn units(states: &[String]) -> Check {
    const NAME: &str = "service state";
    if states.is_empty() {
        return Check::warn(
            NAME,
            "the service manager of this user does not answer",
            "log in properly (ssh, or `machinectl shell USER@`), or loginctl enable-linger",
        );
    }
    if states.iter().any(|state| state == "failed") {
        return Check::fail(
            NAME,
            format!("socket {}, service {}", state_at(states, 0), state_at(states, 1)),
            "journalctl --user -u shoal; then: systemctl --user reset-failed shoal.socket shoal.service; systemctl --user \
             start shoal.socket",
        );
    }
    Check::ok(NAME, format!("socket {}, service {}", state_at(states, 0), state_at(states, 1)))
}

fn state_at(states: &[String], at: usize) -> &str {
    states.get(at).map_or("unknown", String::as_str)
}

/// Without it the user's services end with the last login, and every session with them.
fn linger() -> Check {
    const NAME: &str = "linger";
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_default();
    if !user.is_empty() && Path::new("/var/lib/systemd/linger").join(&user).exists() {
        return Check::ok(NAME, "the service outlives your logins");
    }
    Check::warn(NAME, "the service, and every session, ends with your last login", "loginctl enable-linger")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_in_every_unit() {
        let unit = "[Service]\nType=notify\nExecStart=/opt/x/bin/shoal-kernel --verbose\n";
        assert_eq!(started(unit), Some("/opt/x/bin/shoal-kernel"));
        assert_eq!(started("<string>/usr/bin/shoal-kernel</string>"), Some("/usr/bin/shoal-kernel"));
        assert_eq!(started("ExecStart=/bin/true\n"), None);
    }
}
