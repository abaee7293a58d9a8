//! The worker of a Shoal session: parses and evaluates requests, holds bindings and values.
//!
//! It starts no program and opens no socket: programs are asked for at the launcher, everything that lasts at the broker.
#![forbid(unsafe_code)]

mod answers;
mod blobs;
mod bound;
mod broker_edge;
mod capture;
mod claim;
mod clock;
mod commands;
mod files;
mod finish;
mod host;
mod launcher_edge;
mod local;
mod machine;
mod output;
mod ports;
mod request;
mod runs;
mod session;
mod transcript;
mod watches;

use std::io::{self, Write as _};
use std::process::ExitCode;

use shoal_chan::ChanError;

/// Fixed descriptors of a session's worker.
const LAUNCHER_FD: i32 = 3;
const BROKER_FD: i32 = 4;

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
    shoal_sys::prctl::set_name("shoal-worker")?;
    shoal_sys::signal::ignore_pipe();
    shoal_sys::heap::keep_few_arenas();
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(flag) if flag == "--local" => local::run(arguments),
        None => serve_session(),
        Some(other) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("unknown argument {other:?}; a session's worker takes none, a local one `--local ARGS`"),
        )),
    }
}

fn serve_session() -> io::Result<ExitCode> {
    let launcher = shoal_sys::fd::inherited(LAUNCHER_FD)?;
    let broker = shoal_sys::fd::inherited(BROKER_FD)?;
    #[cfg(target_os = "linux")]
    {
        shoal_sys::prctl::set_dumpable(false)?;
        shoal_jail::confine::worker().map_err(|failed| io::Error::other(failed.to_string()))?;
    }
    match session::serve(launcher, broker) {
        Ok(()) | Err(ChanError::Closed) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(io::Error::other(error.to_string())),
    }
}

/// Says on stderr why an edge was given up.
fn note_edge(error: &ChanError) {
    writeln!(io::stderr(), "shoal-worker: {error}").ok();
}

fn note(error: &io::Error) {
    writeln!(io::stderr(), "shoal-worker: {error}").ok();
}
