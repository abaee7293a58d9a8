//! The broker of a Shoal kernel: judges, remembers and hands out.
//!
//! It meets clients and workers, believes neither, and is the only process that writes the journal. One current-thread
//! loop ([`wake`]) owns all state ([`broker`]); threads exist for the journal and for captures alone.
//!
//! Absent by design: it starts no process, opens no path outside the state directory (but reads `/proc` to know its
//! peers), parses neither source nor TOML, and interprets no value and no screen.
#![forbid(unsafe_code)]

mod answer;
mod boot;
mod broker;
mod bus;
mod capture;
mod clients;
mod clock;
mod edge;
mod execute;
mod finish;
mod idle;
mod json;
mod keys;
#[deny(clippy::wildcard_enum_match_arm)] // a new message breaks every place that would ignore it
mod launcher_edge;
mod life;
mod log;
mod numbers;
mod pending;
mod permits;
mod plans;
mod policy;
#[deny(clippy::wildcard_enum_match_arm)] // a new message breaks every place that would ignore it
mod ptyd_edge;
mod ptys;
mod publish;
mod quotas;
mod record;
mod runs;
mod sessions;
mod statements;
#[deny(clippy::wildcard_enum_match_arm)] // a new message breaks every place that would ignore it
mod supervisor_edge;
mod tasks;
#[cfg(test)]
mod testing;
mod timers;
mod tokens;
mod upcalls;
#[deny(clippy::wildcard_enum_match_arm)] // a new message breaks every place that would ignore it
mod wake;
mod watches;
#[deny(clippy::wildcard_enum_match_arm)] // a new message breaks every place that would ignore it
mod worker_edge;

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// Where the supervisor leaves the edge.
const SUPERVISOR_FD: i32 = 3;

fn main() -> ExitCode {
    // A supervisor whose edge is closed ends this process at once: it stays open until the reason is said.
    let mut held = None;
    match run(&mut held) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::line(format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(held: &mut Option<OwnedFd>) -> io::Result<()> {
    let edge = shoal_sys::fd::inherited(SUPERVISOR_FD)?;
    *held = Some(edge.try_clone()?);
    shoal_sys::prctl::set_name("shoal-broker")?;
    #[cfg(target_os = "linux")]
    shoal_sys::prctl::set_dumpable(false)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, boot::serve(edge))
}
