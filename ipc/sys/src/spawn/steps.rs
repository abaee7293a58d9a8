//! The steps from a fresh process to its program. Only system calls on what was prepared: they may run in the memory of a
//! suspended parent.

use std::io;

use libc::{c_char, c_int};

use super::prepared::Prepared;
use super::{MAX_FDS, Stage};

/// The request that makes a terminal the controlling one; its type differs between systems.
#[allow(clippy::unnecessary_cast)]
const CONTROL: libc::c_ulong = libc::TIOCSCTTY as libc::c_ulong;
/// Descriptors are first moved at or above this number, out of the way of the final ones.
pub(super) const PARKED: c_int = 100;

/// Becomes the program; what is returned is why not.
pub(super) fn become_program(p: &Prepared) -> (Stage, c_int) {
    let failed = match steps(p) {
        Err(stage) => stage,
        Ok(keep) => {
            execute(p, keep);
            Stage::Exec
        }
    };
    (failed, errno())
}

fn steps(p: &Prepared) -> Result<c_int, Stage> {
    // SAFETY: takes no memory.
    if p.setsid && unsafe { libc::setsid() } < 0 {
        return Err(Stage::Session);
    }
    let program = place_descriptors(p).ok_or(Stage::Descriptors)?;
    if p.controlling_tty {
        // SAFETY: TIOCSCTTY takes an int, no memory.
        let result = unsafe { libc::ioctl(0, CONTROL, 0) };
        check(result).ok_or(Stage::Terminal)?;
    }
    if let Some(cwd) = &p.cwd {
        // SAFETY: `cwd` is a live NUL-terminated string.
        let result = unsafe { libc::chdir(cwd.as_ptr()) };
        check(result).ok_or(Stage::Cwd)?;
    }
    if let Some(mask) = p.umask {
        // SAFETY: takes no memory and cannot fail.
        unsafe { libc::umask(mask as libc::mode_t) };
    }
    for &(limit, value) in &p.limits {
        let pair = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: `pair` is a live rlimit that the call reads.
        let result = unsafe { libc::setrlimit(limit.raw(), &raw const pair) };
        check(result).ok_or(Stage::Limits)?;
    }
    if p.parent_death {
        die_with_parent().ok_or(Stage::Session)?;
    }
    crate::signal::reset_for_exec();
    Ok(program)
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> Option<c_int> {
    // SAFETY: PR_SET_PDEATHSIG takes a number, no memory.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
}

/// See [`super::Command::die_with_parent`].
#[cfg(target_os = "macos")]
fn die_with_parent() -> Option<c_int> {
    Some(0)
}

fn check(result: c_int) -> Option<c_int> {
    (result >= 0).then_some(result)
}

/// Puts the descriptors at 0.., closes the rest at exec, and returns the number of the program's descriptor.
fn place_descriptors(p: &Prepared) -> Option<c_int> {
    let mut parked = [-1; MAX_FDS];
    for (slot, &fd) in parked.iter_mut().zip(&p.fds) {
        *slot = park(fd)?;
    }
    let mut program = if p.program_fd >= 0 { park(p.program_fd)? } else { -1 };
    let mut next: c_int = 0;
    for &fd in parked.iter().take(p.fds.len()) {
        dup_to(fd, next)?;
        next += 1;
    }
    if p.keep_program && program >= 0 {
        dup_to(program, next)?;
        program = next;
        next += 1;
    }
    close_from(next)?;
    Some(program)
}

fn park(fd: c_int) -> Option<c_int> {
    // SAFETY: F_DUPFD_CLOEXEC makes a new number for an open one; the copy is closed at exec.
    check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, PARKED) })
}

fn dup_to(from: c_int, to: c_int) -> Option<c_int> {
    // SAFETY: `from` is a number at or above PARKED; `to` is below, and what it was is meant to be replaced in this
    // process, whose table is its own.
    check(unsafe { libc::dup2(from, to) })
}

/// Marks everything from `first` on to be closed at exec.
#[cfg(target_os = "linux")]
fn close_from(first: c_int) -> Option<c_int> {
    let first = libc::c_uint::try_from(first).ok()?;
    let flags = c_int::try_from(libc::CLOSE_RANGE_CLOEXEC).ok()?;
    // SAFETY: sets a flag on this process's own descriptors; nothing is closed before exec.
    let result = unsafe { libc::close_range(first, libc::c_uint::MAX, flags) };
    check(result)
}

/// Without `close_range`: number by number. Nothing is opened meanwhile: this is the only thread.
#[cfg(target_os = "macos")]
fn close_from(first: c_int) -> Option<c_int> {
    // SAFETY: takes nothing.
    let end = unsafe { libc::getdtablesize() };
    for number in first..end {
        // SAFETY: sets a flag of a number; a number that is not open answers EBADF.
        unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Some(first)
}

fn execute(p: &Prepared, program: c_int) {
    let (argv, env) = (p.argv.as_ptr(), p.env.as_ptr());
    match &p.path {
        Some(path) => {
            // SAFETY: path, argv and env are live, NUL-terminated, and the arrays end with a null pointer.
            unsafe { libc::execve(path.as_ptr(), argv, env) };
        }
        None => execute_fd(program, argv, env),
    }
}

#[cfg(target_os = "linux")]
fn execute_fd(program: c_int, argv: *const *const c_char, env: *const *const c_char) {
    const EMPTY: &std::ffi::CStr = c"";
    // SAFETY: argv and env are live, NUL-terminated and end with a null pointer; the path is empty by AT_EMPTY_PATH.
    unsafe { libc::syscall(libc::SYS_execveat, program, EMPTY.as_ptr(), argv, env, libc::AT_EMPTY_PATH) };
}

/// A program always has a path on macOS, see `prepared`.
#[cfg(target_os = "macos")]
fn execute_fd(_program: c_int, _argv: *const *const c_char, _env: *const *const c_char) {}

pub(super) fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
