//! The worker of a Shoal session: parses and evaluates requests, holds bindings and values.
//!
//! It starts no program and opens no socket: programs are asked for at the launcher, everything that lasts at the broker.
#![forbid(unsafe_code)]

mod capture;
mod clock;
mod commands;
mod files;
mod host;
mod launcher_edge;
mod local;
mod machine;
mod output;
mod runs;

use std::io;
use std::process::ExitCode;

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
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(flag) if flag == "--local" => local::run(arguments),
        Some(_) | None => Ok(ExitCode::FAILURE),
    }
}

#[expect(clippy::print_stderr, reason = "the worker's only log")]
fn note(error: &io::Error) {
    eprintln!("shoal-worker: {error}");
}
