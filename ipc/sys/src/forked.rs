//! What a fork is the same in on every system: what is asked for, and how the child ends.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The namespaces a new process gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// Users and capabilities.
    pub user: bool,
    /// Process numbers; the new process is number 1.
    pub pid: bool,
    /// Mounts.
    pub mount: bool,
    /// System V IPC and POSIX message queues.
    pub ipc: bool,
    /// Network devices, addresses and abstract sockets.
    pub network: bool,
}

/// Exit code of a child whose closure panicked.
pub const PANICKED: u8 = 70;

/// Runs the closure of a new child and ends the process with its code.
pub(crate) fn end_with(child: impl FnOnce() -> u8) -> ! {
    let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
    // SAFETY: ends the child without running exit handlers that belong to the parent.
    unsafe { libc::_exit(code.into()) }
}
