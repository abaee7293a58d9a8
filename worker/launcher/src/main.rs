//! Pid 1 of a session: starts the worker, the ptyd and every command, signals them and reaps them.
//!
//! Single-threaded: one loop ([`launcher::Launcher::serve`]) over the edges and the signals of its children. It reads no
//! source text and no configuration; what may be started is in the compiled section it is born with.
#![forbid(unsafe_code)]

mod birth;
mod children;
mod climb;
mod commands;
mod edge;
mod gate;
mod ladder;
mod launcher;
mod limits;
mod lineage;
mod local;
mod memory;
mod on_broker;
mod on_ptyd;
mod on_supervisor;
mod on_worker;
mod orphans;
mod roles;
mod start;
mod terminals;

use std::io;
use std::process::ExitCode;

use shoal_sys::signal::SignalFd;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            note(&error);
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<ExitCode> {
    shoal_sys::prctl::set_name("shoal-launcher")?;
    shoal_sys::signal::ignore_pipe();
    let signals = SignalFd::new(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP])?;
    #[cfg(target_os = "linux")]
    shoal_sys::prctl::set_subreaper()?;
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        None => birth::run(signals),
        Some(flag) if flag == "--local" => local::run(arguments, signals),
        Some(other) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("unknown argument {other:?}; a session's launcher takes none, a local one `--local ARGS`"),
        )),
    }
}

#[expect(clippy::print_stderr, reason = "the launcher's only log")]
fn note(error: &io::Error) {
    eprintln!("shoal-launcher: {error}");
}
