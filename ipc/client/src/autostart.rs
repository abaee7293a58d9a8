//! Starting a kernel when none runs.
//!
//! Of all clients that find no kernel one starts it: they line up behind a lock file in the state directory, and each
//! looks again once it holds the lock. The one that finds nobody starts the service unit if there is one, else
//! `shoal-kernel` in a session of its own, and waits for its readiness line.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::client::{nobody_listens, open_named};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::{ConnectError, StartError};

/// A kernel that is not ready by then is not coming.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Exit status of a kernel that found another one on its state directory.
const LOST_RACE: i32 = 3;
/// Label of the launchd agent.
const AGENT: &str = "dev.shoal.kernel";

/// Starts a kernel, or finds the one that another client just started; returns the path it listens on.
pub(crate) async fn start(config: &Config) -> Result<PathBuf, ConnectError> {
    let turn = match &config.state_dir {
        Some(dir) => Some(take_turn(dir.clone()).await?),
        None => None,
    };
    let path = match Connection::open(&config.socket).await {
        Ok(_) => config.socket.clone(),
        Err(ConnectError::Socket { error, .. }) if nobody_listens(&error) => match open_named(config).await {
            Some(_) => named(config),
            None => launch(config).await?,
        },
        Err(error) => return Err(error),
    };
    drop(turn);
    Ok(path)
}

fn named(config: &Config) -> PathBuf {
    config.state_dir.as_deref().and_then(socket_in_lock).unwrap_or_else(|| config.socket.clone())
}

/// The socket path in the lock file of a state directory.
pub(crate) fn socket_in_lock(state_dir: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(state_dir.join("lock")).ok()?;
    let path = text.strip_suffix('\n').unwrap_or(&text);
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// Waits for the right to start a kernel; it lasts until the file is dropped.
async fn take_turn(state_dir: PathBuf) -> Result<File, StartError> {
    let path = state_dir.join("autostart.lock");
    let failed = |error| StartError::Lock { path: path.clone(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(&state_dir).map_err(failed)?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(failed)?;
    let (locked, turn) = oneshot::channel();
    // The wait for a file lock cannot be given up, so it has a thread that nobody has to join.
    std::thread::spawn(move || {
        let outcome = file.lock().map(|()| file);
        drop(locked.send(outcome));
    });
    match timeout(READY_WITHIN, turn).await {
        Ok(Ok(outcome)) => outcome.map_err(failed),
        _ => Err(StartError::Deadline),
    }
}

/// Starts the unit or a kernel of our own, on a thread that stays with the child.
async fn launch(config: &Config) -> Result<PathBuf, StartError> {
    let unit = (!config.socket_is_explicit && !config.state_dir_is_explicit).then(|| unit_command(config)).flatten();
    let own = find_program(config).map(|program| (own_command(&program, config), program));
    let socket = config.socket.clone();
    let (ready, readiness) = oneshot::channel();
    std::thread::spawn(move || {
        // A unit that does not start leaves us a kernel of our own as the next best.
        if unit.is_some_and(|mut unit| unit.status().is_ok_and(|status| status.success())) {
            drop(ready.send(Ok(socket)));
            return;
        }
        match own {
            Some((command, program)) => watch_over(command, program, ready),
            None => drop(ready.send(Err(StartError::NotFound))),
        }
    });
    match timeout(READY_WITHIN, readiness).await {
        Ok(Ok(outcome)) => outcome,
        _ => Err(StartError::Deadline),
    }
}

fn own_command(program: &Path, config: &Config) -> Command {
    let mut command = Command::new(program);
    command.arg("--socket").arg(&config.socket);
    if let Some(dir) = config.state_dir.as_ref().filter(|_| config.state_dir_is_explicit) {
        command.arg("--state-dir").arg(dir);
    }
    if let Some(policy) = &config.policy {
        command.arg("--policy").arg(policy);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    shoal_sys::detach::into_own_session(&mut command);
    command
}

/// Starts the kernel, reads its readiness line, and stays to reap it should it end before we do.
fn watch_over(mut command: Command, program: PathBuf, ready: oneshot::Sender<Result<PathBuf, StartError>>) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            drop(ready.send(Err(StartError::Spawn { program, error })));
            return;
        }
    };
    let mut line = String::new();
    let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    let printed = line.trim_end_matches('\n');
    // A kernel that can make no session is there too: its answer to the first attach says why.
    let path = ["ready ", "unready "].iter().find_map(|word| printed.strip_prefix(word));
    if let (Some(Ok(_)), Some(path)) = (&read, path) {
        drop(ready.send(Ok(PathBuf::from(path))));
        drop(child.wait());
        return;
    }
    let outcome = match child.wait() {
        Ok(status) if status.code() == Some(LOST_RACE) && !printed.is_empty() => Ok(PathBuf::from(printed)),
        Ok(status) => Err(StartError::Ended { program, status: status.to_string() }),
        Err(error) => Err(StartError::Spawn { program, error }),
    };
    drop(ready.send(outcome));
}

/// `shoal-kernel` beside this program, else in PATH.
fn find_program(config: &Config) -> Option<PathBuf> {
    let own = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let candidates = own.iter().chain(&config.program_dirs).map(|dir| dir.join("shoal-kernel"));
    candidates.into_iter().find(|path| path.is_file())
}

/// The command that asks the service manager for our unit, where it is installed.
fn unit_command(config: &Config) -> Option<Command> {
    let mac = cfg!(target_os = "macos");
    let unit = if mac { format!("{AGENT}.plist") } else { "shoal.socket".to_owned() };
    if !config.unit_dirs.iter().any(|dir| dir.join(&unit).exists()) {
        return None;
    }
    let mut command = Command::new(if mac { "launchctl" } else { "systemctl" });
    if mac {
        command.arg("kickstart").arg(format!("gui/{}/{AGENT}", rustix::process::geteuid().as_raw()));
    } else {
        command.args(["--user", "start", "shoal.socket"]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_names_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(socket_in_lock(dir.path()), None);
        std::fs::write(dir.path().join("lock"), "").unwrap();
        assert_eq!(socket_in_lock(dir.path()), None);
        std::fs::write(dir.path().join("lock"), "/run/a b.sock\n").unwrap();
        assert_eq!(socket_in_lock(dir.path()), Some("/run/a b.sock".into()));
    }
}
