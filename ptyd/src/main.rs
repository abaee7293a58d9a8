//! The terminal host of a Shoal session: it emulates the screens of the session's terminals.
//!
//! It reads what arbitrary programs print, so it is trusted with nothing: it holds leaders of terminals and two edges,
//! opens no file and starts no program. Single-threaded: one loop ([`host::Host::serve`]) over the edges, the leaders
//! and what is due. A terminal's state is lost with the process and never its program: the launcher keeps the leaders.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used))]

mod answer;
mod canonical;
mod edge;
mod host;
mod input;
mod keys;
mod kitty;
mod on_broker;
mod on_launcher;
mod pane;
mod queries;
mod scan;
mod skip;
mod snapshot;
mod terminal;
mod ticks;
mod waits;
mod writes;

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::host::Host;

/// Fixed descriptors at exec.
const LAUNCHER_FD: i32 = 3;
const BROKER_FD: i32 = 4;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// The ritual of every role: name, edges, nothing inherited, confinement, and only then the first message.
fn run() -> io::Result<()> {
    shoal_sys::prctl::set_name("shoal-ptyd")?;
    shoal_sys::signal::ignore_pipe();
    let launcher = edge::open(shoal_sys::fd::inherited(LAUNCHER_FD)?)?;
    let broker = edge::open(shoal_sys::fd::inherited(BROKER_FD)?)?;
    refuse_surroundings()?;
    std::panic::set_hook(Box::new(|panic| note(&panic.to_string())));
    confine()?;
    Host::new(launcher, broker).greet()?.serve()
}

/// A role's environment and command line are empty; anything else comes from somebody who is not the launcher.
fn refuse_surroundings() -> io::Result<()> {
    let strange = std::env::args_os().nth(1).or_else(|| std::env::vars_os().next().map(|(name, _)| name));
    match strange {
        None => Ok(()),
        Some(name) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "unexpected {name:?}: the terminal host takes no argument and an empty environment; the launcher starts it"
            ),
        )),
    }
}

/// Gives up what the loop does not need: files, programs, sockets, new privileges. Whatever comes after this works on
/// hostile bytes.
fn confine() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        shoal_sys::prctl::set_dumpable(false)?;
        shoal_jail::confine::ptyd().map_err(|failed| io::Error::other(failed.to_string()))?;
    }
    Ok(())
}

/// The only log: standard error, which is `/dev/null` unless the kernel runs verbosely.
fn note(text: &str) {
    // Nobody is left to tell when standard error is gone.
    writeln!(std::io::stderr(), "shoal-ptyd: {text}").ok();
}
