//! The supervisor of a Shoal kernel: it spawns, reaps and restarts the roles, makes jails and owns the listener.
//!
//! Invariant: this process has one thread and no code that reads what a client or an agent wrote. Everything it decodes
//! comes over its edges, in bounded messages; policy files are opened and checked here and read elsewhere.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm, clippy::unwrap_used, clippy::indexing_slicing))]
// The supervisor owns the state directory, the runtime directory and what is in them.
#![allow(clippy::disallowed_methods)]

mod backoff;
mod birth;
mod broker;
mod drain;
mod edges;
mod end;
mod fault;
mod groups;
mod kernel;
mod lifecycle;
mod listener;
mod log;
mod means;
mod notify;
mod on_broker;
mod on_launcher;
mod options;
mod policy;
mod refuse;
mod roles;
mod session;
mod start;
mod state;
mod store;
mod trial;
#[cfg_attr(target_os = "macos", path = "watch_darwin.rs")]
mod watch;

use std::process::ExitCode;

use fault::StartError;
pub use means::Means;
use options::Options;
use shoal_place::Vars;

/// Exit code when another kernel holds the state directory.
const HELD: u8 = 3;

/// Runs a kernel from the command line and the environment of this process until it is drained; its exit code.
pub fn run(means: Means) -> ExitCode {
    let vars = Vars::of_process();
    let options = match Options::parse(std::env::args_os().skip(1), &vars) {
        Ok(options) => options,
        Err(e) => {
            log::line(&e.to_string());
            return ExitCode::from(2);
        }
    };
    if options.verbose {
        log::set_verbose();
    }
    match start::start(options, vars, means) {
        Ok(mut kernel) => match kernel.serve() {
            Ok(()) => start::stop(kernel),
            Err(e) => {
                log::line(&format!("the loop failed: {e}"));
                start::stop(kernel);
                ExitCode::FAILURE
            }
        },
        Err(StartError::Failed(why)) => {
            log::line(&why);
            ExitCode::FAILURE
        }
        Err(held @ StartError::Held { .. }) => {
            log::line(&held.to_string());
            if let StartError::Held { socket, .. } = held {
                start::print_line(&socket);
            }
            ExitCode::from(HELD)
        }
    }
}
