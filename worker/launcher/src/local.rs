//! `shoal-launcher --local ARGS`: a worker and its commands over the same edges, without jail and broker.
//!
//! The worker gets the standard descriptors, directory and environment of this process and `--local ARGS` as its
//! arguments; its exit status becomes ours. What its commands leave behind ends with it.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use shoal_proto::hello::ExitStatus;
use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::Limits;
use shoal_sys::signal::SignalFd;

use crate::launcher::Launcher;
use crate::roles::Roles;

/// Runs a local worker to its end.
pub(crate) fn run(arguments: impl Iterator<Item = OsString>, signals: SignalFd) -> io::Result<ExitCode> {
    let arguments =
        [OsString::from("--local")].into_iter().chain(arguments).map(c_string).collect::<io::Result<_>>()?;
    let environment = std::env::vars_os().map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        c_string(name)
    });
    let roles = Roles::new(worker_image()?, None, arguments, environment.collect::<io::Result<_>>()?);
    let mut launcher = Launcher::new(Section::default(), Limits::default(), roles, signals);
    launcher.start_worker(None)?;
    launcher.serve()?;
    Ok(exit_code(launcher.worker_end))
}

/// The worker's code; like a shell for one that died by a signal.
fn exit_code(end: Option<ExitStatus>) -> ExitCode {
    match end {
        Some(ExitStatus { code: Some(code), .. }) => ExitCode::from(code),
        Some(ExitStatus { signal: Some(signal), .. }) => ExitCode::from(128_u8.saturating_add(signal)),
        Some(ExitStatus { code: None, signal: None }) | None => ExitCode::FAILURE,
    }
}

/// `shoal-worker` beside this executable, else in `../libexec/shoal`.
fn worker_image() -> io::Result<OwnedFd> {
    let own = std::env::current_exe()?;
    let beside = own.parent().map(PathBuf::from).unwrap_or_default();
    let places = [beside.join("shoal-worker"), beside.join("../libexec/shoal/shoal-worker")];
    let found = places.iter().find(|path| path.is_file()).ok_or_else(|| {
        let text = format!("no shoal-worker at {} or {}", places[0].display(), places[1].display());
        io::Error::new(io::ErrorKind::NotFound, text)
    })?;
    shoal_sys::fd::open_program(found)
}

fn c_string(text: OsString) -> io::Result<CString> {
    Ok(CString::new(text.into_vec())?)
}
