//! A new process with namespaces of its own, made from a small single-threaded one.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::forked::end_with;
pub use crate::forked::{Namespaces, PANICKED};
use crate::spawn::Child;

impl Namespaces {
    fn flags(self) -> u64 {
        [
            (self.user, libc::CLONE_NEWUSER),
            (self.pid, libc::CLONE_NEWPID),
            (self.mount, libc::CLONE_NEWNS),
            (self.ipc, libc::CLONE_NEWIPC),
            (self.network, libc::CLONE_NEWNET),
        ]
        .into_iter()
        .filter(|(wanted, _flag)| *wanted)
        .fold(0, |flags, (_wanted, flag)| flags | u64::from(flag.unsigned_abs()))
    }
}

/// Makes a child in new namespaces that runs `child` and exits with what it returns.
///
/// The child has a copy of this process's memory, so this process must have one thread: with more, a lock that another
/// thread holds would stay locked in the child for ever. `EBUSY` when it has more. Buffers of this process are not
/// flushed by the child.
pub fn fork(namespaces: Namespaces, child: impl FnOnce() -> u8) -> io::Result<Child> {
    if crate::procfs::own_threads()? != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    let mut pidfd: libc::c_int = -1;
    // SAFETY: zeroed memory is a valid clone_args (all integers): nothing asked for.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = namespaces.flags() | u64::from(libc::CLONE_PIDFD.unsigned_abs());
    args.pidfd = (&raw mut pidfd).addr() as u64;
    args.exit_signal = u64::from(libc::SIGCHLD.unsigned_abs());
    // SAFETY: the arguments are live and of the size given. No CLONE_VM: the child continues on a copy of this stack,
    // and it is the only thread of its copy, as checked above.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<libc::clone_args>()) };
    match pid {
        0 => end_with(child),
        pid if pid > 0 => {
            // SAFETY: CLONE_PIDFD made a new descriptor for this process and wrote its number; nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Child { pid: i32::try_from(pid).unwrap_or(-1), pidfd: pidfd.into() })
        }
        _error => Err(io::Error::last_os_error()),
    }
}
