//! `clone` with `CLONE_VM | CLONE_VFORK | CLONE_PIDFD`: the parent waits until the child is another program.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, c_void};

use super::prepared::Prepared;
use super::{Child, STAGES, SpawnError, Stage, steps};

/// The child's stack: it calls no deep function. Untouched pages of it cost nothing.
const STACK: usize = 256 * 1024;

/// What parent and child share while the parent waits.
struct Shared<'p> {
    prepared: &'p Prepared,
    /// Index into [`STAGES`] plus one; 0 while nothing failed.
    failed_stage: AtomicI32,
    failed_errno: AtomicI32,
}

pub(super) fn spawn(prepared: &Prepared) -> Result<Child, SpawnError> {
    let shared = Shared { prepared, failed_stage: AtomicI32::new(0), failed_errno: AtomicI32::new(0) };
    let mut stack = vec![0_u8; STACK];
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let blocked = crate::signal::block_all();
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: `top` is one past the end of a live allocation, so rounding it down stays inside.
    let top = unsafe { top.sub(top.addr() % 16) };
    // SAFETY: CLONE_VFORK suspends this thread until the child has executed or exited, so the stack, `shared` and
    // `pidfd` outlive its use of them; `run_child` only makes system calls on what `shared` points to.
    let pid =
        unsafe { libc::clone(run_child, top.cast(), flags, (&raw const shared).cast_mut().cast(), &raw mut pidfd) };
    let clone_errno = steps::errno();
    crate::signal::restore(&blocked);
    if pid < 0 {
        return Err(SpawnError { stage: Stage::Clone, errno: clone_errno });
    }
    // SAFETY: CLONE_PIDFD made a new descriptor for this process and wrote its number; nobody else owns it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    match shared.failure() {
        None => Ok(Child { pid, pidfd: pidfd.into() }),
        Some(error) => {
            // The child is a zombie by now; without this it would stay one.
            crate::process::reap_pid(pid).map_err(|e| SpawnError { errno: e.raw_os_error().unwrap_or(0), ..error })?;
            Err(error)
        }
    }
}

impl Shared<'_> {
    fn failure(&self) -> Option<SpawnError> {
        let index = usize::try_from(self.failed_stage.load(Ordering::SeqCst)).ok()?.checked_sub(1)?;
        let stage = STAGES.get(index).copied()?;
        Some(SpawnError { stage, errno: self.failed_errno.load(Ordering::SeqCst) })
    }
}

extern "C" fn run_child(arg: *mut c_void) -> c_int {
    // SAFETY: `arg` is the `Shared` of the suspended parent, alive and only read until this process is another one.
    let shared = unsafe { &*arg.cast::<Shared<'_>>().cast_const() };
    let (stage, errno) = steps::become_program(shared.prepared);
    let index = STAGES.iter().position(|&s| s == stage).unwrap_or(0);
    shared.failed_errno.store(errno, Ordering::SeqCst);
    shared.failed_stage.store(i32::try_from(index).unwrap_or(0) + 1, Ordering::SeqCst);
    // SAFETY: ends this process without running anything of the parent's (exit handlers, buffers).
    unsafe { libc::_exit(127) }
}
