//! A new process made from a small single-threaded one. macOS has no namespaces: asking for one is refused.

use std::io;

use crate::forked::end_with;
pub use crate::forked::{Namespaces, PANICKED};
use crate::pidfd::Pidfd;
use crate::spawn::Child;

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
        0 => end_with(child),
        pid if pid > 0 => Ok(Child { pid, pidfd: Pidfd::open(pid)? }),
        _error => Err(io::Error::last_os_error()),
    }
}
