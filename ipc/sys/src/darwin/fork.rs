//! A new process made from a small single-threaded one. macOS has no namespaces: asking for one is refused.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::pidfd::Pidfd;
use crate::spawn::Child;

/// The namespaces a new process gets: none on macOS.
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

/// Makes a child that runs `child` and exits with what it returns.
///
/// This process must have one thread, else `EBUSY`: see the Linux twin. `ENOTSUP` when a namespace is asked for.
pub fn fork(namespaces: Namespaces, child: impl FnOnce() -> u8) -> io::Result<Child> {
    if namespaces != Namespaces::default() {
        return Err(io::Error::from_raw_os_error(libc::ENOTSUP));
    }
    if crate::procfs::own_threads()? != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: the child is the only thread of its copy, as checked above, so it may go on as usual.
    match unsafe { libc::fork() } {
        0 => {
            let code = catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED);
            // SAFETY: ends the child without running exit handlers that belong to the parent.
            unsafe { libc::_exit(code.into()) }
        }
        pid if pid > 0 => Ok(Child { pid, pidfd: Pidfd::open(pid)? }),
        _error => Err(io::Error::last_os_error()),
    }
}
