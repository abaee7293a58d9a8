//! Everything a child needs between its birth and its program, with nothing left to allocate.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use libc::c_char;

use super::{Command, MAX_FDS, Program, SpawnError, Stage};
use crate::rlimit::Limit;

/// Everything the child needs, with nothing left to allocate.
pub(super) struct Prepared {
    pub(super) path: Option<CString>,
    pub(super) program_fd: RawFd,
    pub(super) argv: Vec<*const c_char>,
    pub(super) env: Vec<*const c_char>,
    pub(super) cwd: Option<CString>,
    pub(super) fds: Vec<RawFd>,
    pub(super) limits: Vec<(Limit, u64)>,
    pub(super) setsid: bool,
    pub(super) controlling_tty: bool,
    pub(super) keep_program: bool,
    pub(super) parent_death: bool,
    pub(super) umask: Option<u32>,
    /// What `argv` and `env` point into.
    _strings: (Vec<CString>, Vec<CString>),
}

impl Prepared {
    pub(super) fn new(command: &Command<'_>) -> Result<Self, SpawnError> {
        if command.fds.len() > MAX_FDS {
            return Err(SpawnError { stage: Stage::Descriptors, errno: libc::EINVAL });
        }
        let strings = (command.argv.clone(), command.env.clone());
        let (path, program_fd) = match &command.program {
            Program::Path(path) => (Some(path.clone()), -1),
            Program::Fd(fd) => by_descriptor(*fd)?,
        };
        Ok(Self {
            path,
            program_fd,
            argv: pointers(&strings.0),
            env: pointers(&strings.1),
            cwd: command.cwd.clone(),
            fds: command.fds.iter().map(|fd| fd.as_fd().as_raw_fd()).collect(),
            limits: command.limits.clone(),
            setsid: command.setsid,
            controlling_tty: command.controlling_tty,
            keep_program: command.keep_program,
            parent_death: command.parent_death,
            umask: command.umask,
            _strings: strings,
        })
    }
}

/// How an open file is executed: by its descriptor on Linux. macOS executes paths alone, so there it is by the path the
/// file has now.
fn by_descriptor(fd: BorrowedFd<'_>) -> Result<(Option<CString>, RawFd), SpawnError> {
    #[cfg(target_os = "linux")]
    let program = Ok((None, fd.as_raw_fd()));
    #[cfg(target_os = "macos")]
    let program = match rustix::fs::getpath(fd) {
        Ok(path) => Ok((Some(path), fd.as_raw_fd())),
        Err(error) => Err(SpawnError { stage: Stage::Exec, errno: error.raw_os_error() }),
    };
    program
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}
