//! The worker without a broker: one program, evaluated with the process's own directory and environment.
//!
//! `--verdict` reads the source from standard input and prints one line of JSON about it; `--script FILE ARGS`,
//! `-c SRC ARGS` and `-` (standard input) run a script for people.

mod script;
mod verdict;

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::ExitCode;
use std::sync::Arc;

use shoal_eval::host::{Dir, Host};
use shoal_eval::place::{Env, Place};
use shoal_eval::request::State;

use crate::commands::{Commands, KEPT_WITHOUT_STORE};
use crate::files::{self, LocalFiles, OpenDir};
use crate::host::WorkerHost;
use crate::launcher_edge::LauncherEdge;
use crate::runs::Runs;

/// The launcher edge of every worker.
const LAUNCHER_FD: i32 = 3;

/// Runs what the arguments after `--local` say.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, "expected --verdict, --script FILE, -c SOURCE or -");
    let mode = arguments.next().ok_or_else(usage)?;
    match mode.to_str() {
        Some("--verdict") => verdict::run(read_source()?),
        Some("--script") => {
            let path = arguments.next().ok_or_else(usage)?;
            script::run_file(path, arguments.collect())
        }
        Some("-c") => {
            let source = arguments.next().ok_or_else(usage)?;
            script::run_text("-c", source.into_vec(), arguments.collect())
        }
        Some("-") => script::run_text("stdin", read_source()?, arguments.collect()),
        Some(_) | None => Err(usage()),
    }
}

/// Standard input, at most one byte more than a source may have, so that a longer one is seen as too long.
fn read_source() -> io::Result<Vec<u8>> {
    let limit = shoal_syntax::MAX_SOURCE as u64 + 1;
    let mut source = Vec::new();
    io::stdin().lock().take(limit).read_to_end(&mut source)?;
    Ok(source)
}

/// Set to `1` by who trusts the directories in which scripts run: a manifest and its lock decide which file `git` is.
const TRUSTS_MANIFESTS: &str = "SHOAL_REEF";

fn trusts_manifests() -> bool {
    std::env::var_os(TRUSTS_MANIFESTS).is_some_and(|set| set == "1")
}

/// Host and first state of a program without a session.
fn set_up(manifests: bool) -> io::Result<(Arc<dyn Host>, State)> {
    let edge = shoal_sys::fd::inherited(LAUNCHER_FD)?;
    let (edge, receiver) = LauncherEdge::greet(edge).map_err(|e| io::Error::other(e.to_string()))?;
    let listener = Arc::clone(&edge);
    // It ends with the launcher, and then this process has nobody to run programs for it and is ended.
    std::thread::Builder::new().name("launcher".into()).spawn(move || listener.listen(receiver, |_, _| {}))?;
    let files = LocalFiles::new(files::trash_of(|name| std::env::var_os(name).map(Into::into)));
    let commands = Commands::new(edge, Arc::new(Runs::default()), KEPT_WITHOUT_STORE)?;
    let user = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok()).map(Into::into);
    let cwd = std::env::current_dir()?;
    let dir: Arc<dyn Dir> = Arc::new(OpenDir::open(cwd.as_os_str().as_bytes())?);
    let state = State::new(Place::new(dir, environment(std::env::vars_os())));
    Ok((Arc::new(WorkerHost::local(files, commands, user, manifests)), state))
}

/// Variables whose names are text; others cannot be named by a program.
fn environment(vars: impl Iterator<Item = (OsString, OsString)>) -> Env {
    let named = vars.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    named.map(|(name, value)| (name.into(), value.as_bytes().into())).collect()
}
