//! `fork`, and a pipe that the child's exec closes: what comes through it is where the child failed.

use std::os::fd::{AsRawFd, OwnedFd};

use super::prepared::Prepared;
use super::{Child, STAGES, SpawnError, Stage, steps};
use crate::pidfd::Pidfd;

pub(super) fn spawn(prepared: &Prepared) -> Result<Child, SpawnError> {
    let failed = |error: std::io::Error| SpawnError { stage: Stage::Clone, errno: error.raw_os_error().unwrap_or(0) };
    let (report, theirs) = crate::fd::pipe().map_err(failed)?;
    let blocked = crate::signal::block_all();
    // SAFETY: the child makes system calls on what was prepared and nothing else, so no lock of another thread matters.
    let pid = unsafe { libc::fork() };
    let fork_errno = steps::errno();
    if pid == 0 {
        run_child(prepared, theirs.as_raw_fd());
    }
    crate::signal::restore(&blocked);
    drop(theirs);
    if pid < 0 {
        return Err(SpawnError { stage: Stage::Clone, errno: fork_errno });
    }
    match read_failure(&report) {
        None => Ok(Child { pid, pidfd: Pidfd::open(pid).map_err(failed)? }),
        Some(error) => {
            // The child ends right after its report; without this it would stay a zombie.
            crate::process::reap_pid(pid).map_err(|e| SpawnError { errno: e.raw_os_error().unwrap_or(0), ..error })?;
            Err(error)
        }
    }
}

fn run_child(prepared: &Prepared, report: i32) -> ! {
    // The descriptors of the program are put in place over whatever is there, so the pipe moves above them first.
    // SAFETY: makes a new number, closed at exec, for an open one.
    let report = unsafe { libc::fcntl(report, libc::F_DUPFD_CLOEXEC, steps::PARKED + 100) };
    let (stage, errno) = steps::become_program(prepared);
    let index = STAGES.iter().position(|&s| s == stage).unwrap_or(0);
    let [a, b, c, d] = errno.to_ne_bytes();
    let text = [u8::try_from(index).unwrap_or(0), a, b, c, d];
    // SAFETY: writes five live bytes; a pipe holds them, so the call does not wait.
    unsafe { libc::write(report, text.as_ptr().cast(), text.len()) };
    // SAFETY: ends this process without running anything of the parent's (exit handlers, buffers).
    unsafe { libc::_exit(127) }
}

fn read_failure(report: &OwnedFd) -> Option<SpawnError> {
    let mut text = [0; 5];
    loop {
        match rustix::io::read(report, &mut text) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(5) => break,
            // The end: the exec closed the pipe.
            Ok(_) | Err(_) => return None,
        }
    }
    let [index, a, b, c, d] = text;
    let stage = STAGES.get(usize::from(index)).copied()?;
    Some(SpawnError { stage, errno: i32::from_ne_bytes([a, b, c, d]) })
}
