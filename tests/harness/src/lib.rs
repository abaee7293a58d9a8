//! Boots a real Shoal kernel in a temporary directory, as an ordinary user of its own, and talks to it over its socket
//! with nothing but the standard library: what a test sees is what any client sees.
//!
//! A [`Place`] holds the directories and the user, a [`Kernel`] runs in it, a [`Client`] speaks to it, an [`Mcp`] is a
//! facade process with its pipes. Dropping them ends every process and removes every file; a kernel that does not end in
//! time fails the test.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start processes, make directories and measure deadlines")]

pub mod client;
pub mod control_group;
pub mod kernel;
pub mod mcp;
pub mod mounts;
pub mod place;
pub mod processes;
pub mod programs;
pub mod terminal;

pub use client::{Client, RpcError};
pub use control_group::ControlGroup;
pub use kernel::Kernel;
pub use mcp::Mcp;
pub use place::Place;
pub use terminal::Terminal;

use std::time::Duration;

/// Time a step of a test may take on a busy machine; `SHOAL_TEST_SCALE` multiplies it.
pub fn patience() -> Duration {
    let scale = std::env::var("SHOAL_TEST_SCALE").ok().and_then(|s| s.parse().ok()).unwrap_or(1u32);
    Duration::from_secs(20) * scale
}

/// Waits until `condition` holds, asking every few milliseconds, for at most [`patience`]. For what has no event to
/// wait for: a process that is gone, a file that appears.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + patience();
    while !condition() {
        assert!(std::time::Instant::now() < end, "waited {:?} in vain: {what}", patience());
        std::thread::sleep(Duration::from_millis(3)); // poll interval
    }
}
