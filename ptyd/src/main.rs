//! Terminal host of a session: emulates the screens of its terminals, writes what is typed and answers what programs ask
//! a terminal.
//!
//! Single-threaded: one loop ([`host::Host::serve`]) over the edges and the leaders. It opens no file and starts no
//! program; leaders come from the launcher, which keeps a copy of each, so that this process may die without its
//! programs noticing more than a repaint.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used))]

mod answers;
mod emulator;
mod host;
mod input;
mod keys;
mod kitty;
mod pane;
mod reads;
mod writes;

use std::io;
use std::process::ExitCode;

use shoal_chan::{Chan, ChanError};

/// Fixed descriptors of the ptyd.
const LAUNCHER_FD: i32 = 3;
const BROKER_FD: i32 = 4;

fn main() -> ExitCode {
    match run() {
        Ok(()) | Err(ChanError::Closed) => ExitCode::SUCCESS,
        Err(error) => {
            note(&error);
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), ChanError> {
    shoal_sys::prctl::set_name("shoal-ptyd")?;
    shoal_sys::signal::ignore_pipe();
    let launcher = Chan::from_fd(inherited(LAUNCHER_FD)?)?;
    let broker = Chan::from_fd(inherited(BROKER_FD)?)?;
    #[cfg(target_os = "linux")]
    shoal_sys::prctl::set_dumpable(false)?;
    host::Host::greet(launcher, broker)?.serve()
}

fn inherited(number: i32) -> io::Result<std::os::fd::OwnedFd> {
    shoal_sys::fd::inherited(number)
}

#[expect(clippy::print_stderr, reason = "the ptyd's only log")]
fn note(error: &ChanError) {
    eprintln!("shoal-ptyd: {error}");
}
