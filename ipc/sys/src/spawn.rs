//! Starting a program from a process of any size, at vfork cost.
//!
//! [`Command::spawn`] is the launcher's and the supervisor's way to start a program: `clone` with
//! `CLONE_VM | CLONE_VFORK | CLONE_PIDFD`, so that neither the memory of the parent is copied nor a pid can be mistaken.
//! The child runs on a stack of its own and does nothing but system calls on what was prepared before; a failure comes
//! back as stage and error number through shared memory. (`clone3` is not used here: the jail's filter answers it with
//! ENOSYS.) [`Command::exec`] is the same for a process that was made for it.
//!
//! Descriptors are a list: the program gets them at 0, 1, 2, ..., and every other one is closed.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_char, c_int, c_void};

use crate::rlimit::Limit;

/// Descriptors one program may be given.
pub const MAX_FDS: usize = 16;
/// The child's stack: it calls no deep function. Untouched pages of it cost nothing.
const STACK: usize = 256 * 1024;
/// Descriptors are first moved at or above this number, out of the way of the final ones.
const PARKED: c_int = 100;

/// What to execute.
#[derive(Clone, Debug)]
pub enum Program<'a> {
    /// A file by absolute path.
    Path(CString),
    /// An open file (`O_PATH` is enough), executed with `execveat`.
    Fd(BorrowedFd<'a>),
}

/// A program to start.
#[derive(Clone, Debug)]
pub struct Command<'a> {
    program: Program<'a>,
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: Option<CString>,
    fds: Vec<BorrowedFd<'a>>,
    limits: Vec<(Limit, u64)>,
    setsid: bool,
    controlling_tty: bool,
    keep_program: bool,
    parent_death: bool,
    umask: Option<u32>,
}

/// A started program.
#[derive(Debug)]
pub struct Child {
    /// Its pid in this pid namespace.
    pub pid: i32,
    /// Its handle: a signal through it never reaches another process.
    pub pidfd: OwnedFd,
}

/// Where a start failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The process could not be made.
    Clone,
    /// A new session could not be started.
    Session,
    /// Descriptors could not be put in place.
    Descriptors,
    /// The terminal could not be made the controlling one.
    Terminal,
    /// The working directory could not be entered.
    Cwd,
    /// A limit could not be set.
    Limits,
    /// The program could not be executed.
    Exec,
}

const STAGES: [Stage; 7] =
    [Stage::Clone, Stage::Session, Stage::Descriptors, Stage::Terminal, Stage::Cwd, Stage::Limits, Stage::Exec];

impl Stage {
    /// The stage in words, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clone => "make a process",
            Self::Session => "start a session",
            Self::Descriptors => "put descriptors in place",
            Self::Terminal => "take the terminal",
            Self::Cwd => "enter the directory",
            Self::Limits => "set limits",
            Self::Exec => "execute the program",
        }
    }
}

/// A program that did not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpawnError {
    /// Where.
    pub stage: Stage,
    /// Error number.
    pub errno: i32,
}

impl std::fmt::Display for SpawnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {}: {}", self.stage.name(), io::Error::from_raw_os_error(self.errno))
    }
}

impl std::error::Error for SpawnError {}

impl<'a> Command<'a> {
    /// A program with its arguments, the name first. It gets no environment, the parent's directory and no descriptor.
    pub fn new(program: Program<'a>, argv: Vec<CString>) -> Self {
        Self {
            program,
            argv,
            env: Vec::new(),
            cwd: None,
            fds: Vec::new(),
            limits: Vec::new(),
            setsid: false,
            controlling_tty: false,
            keep_program: false,
            parent_death: false,
            umask: None,
        }
    }

    /// The whole environment, `NAME=value` each.
    pub fn env(mut self, env: Vec<CString>) -> Self {
        self.env = env;
        self
    }

    /// The working directory.
    pub fn cwd(mut self, cwd: CString) -> Self {
        self.cwd = Some(cwd);
        self
    }

    /// The descriptors it gets at 0, 1, 2, ...; at most [`MAX_FDS`] (more fail in stage `Descriptors` with `EINVAL`).
    pub fn fds(mut self, fds: Vec<BorrowedFd<'a>>) -> Self {
        self.fds = fds;
        self
    }

    /// A limit for it, soft and hard; may be given for several resources.
    pub fn limit(mut self, limit: Limit, value: u64) -> Self {
        self.limits.push((limit, value));
        self
    }

    /// Starts it in a session, and so a process group, of its own.
    pub fn setsid(mut self) -> Self {
        self.setsid = true;
        self
    }

    /// Makes its descriptor 0 the controlling terminal of its session (needs [`Command::setsid`]).
    pub fn controlling_tty(mut self) -> Self {
        self.controlling_tty = true;
        self
    }

    /// Leaves a program given by descriptor open at the number after the last of its descriptors: the interpreter of a
    /// script opens it as `/dev/fd/N`.
    pub fn keep_program(mut self) -> Self {
        self.keep_program = true;
        self
    }

    /// Kills it when the thread that started it ends.
    pub fn die_with_parent(mut self) -> Self {
        self.parent_death = true;
        self
    }

    /// Its file mode mask.
    pub fn umask(mut self, mask: u32) -> Self {
        self.umask = Some(mask);
        self
    }

    /// Starts the program and returns as soon as it is executed or failed.
    pub fn spawn(&self) -> Result<Child, SpawnError> {
        let prepared = Prepared::new(self)?;
        let mut stack = vec![0_u8; STACK];
        let mut pidfd: c_int = -1;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
        let blocked = crate::signal::block_all();
        let top = stack.as_mut_ptr_range().end;
        // SAFETY: `top` is one past the end of a live allocation, so rounding it down stays inside.
        let top = unsafe { top.sub(top.addr() % 16) };
        // SAFETY: CLONE_VFORK suspends this thread until the child has executed or exited, so the stack, `prepared` and
        // `pidfd` outlive its use of them; `run_child` only makes system calls on what `prepared` points to.
        let pid = unsafe {
            libc::clone(run_child, top.cast(), flags, (&raw const prepared).cast_mut().cast(), &raw mut pidfd)
        };
        let clone_errno = errno();
        crate::signal::restore(&blocked);
        if pid < 0 {
            return Err(SpawnError { stage: Stage::Clone, errno: clone_errno });
        }
        // SAFETY: CLONE_PIDFD made a new descriptor for this process and wrote its number; nobody else owns it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        match prepared.failure() {
            None => Ok(Child { pid, pidfd }),
            Some(error) => {
                // The child is a zombie by now; without this it would stay one.
                crate::process::reap_pid(pid)
                    .map_err(|e| SpawnError { errno: e.raw_os_error().unwrap_or(0), ..error })?;
                Err(error)
            }
        }
    }

    /// Turns this process into the program; returns only on failure.
    pub fn exec(&self) -> SpawnError {
        match Prepared::new(self) {
            Ok(prepared) => {
                let (stage, errno) = become_program(&prepared);
                SpawnError { stage, errno }
            }
            Err(error) => error,
        }
    }
}

/// Everything the child needs, with nothing left to allocate.
struct Prepared {
    path: Option<CString>,
    program_fd: RawFd,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    cwd: Option<CString>,
    fds: Vec<RawFd>,
    limits: Vec<(Limit, u64)>,
    setsid: bool,
    controlling_tty: bool,
    keep_program: bool,
    parent_death: bool,
    umask: Option<u32>,
    /// Index into [`STAGES`] plus one; 0 while nothing failed.
    failed_stage: AtomicI32,
    failed_errno: AtomicI32,
    /// What `argv` and `env` point into.
    _strings: (Vec<CString>, Vec<CString>),
}

impl Prepared {
    fn new(command: &Command<'_>) -> Result<Self, SpawnError> {
        if command.fds.len() > MAX_FDS {
            return Err(SpawnError { stage: Stage::Descriptors, errno: libc::EINVAL });
        }
        let strings = (command.argv.clone(), command.env.clone());
        let (path, program_fd) = match &command.program {
            Program::Path(path) => (Some(path.clone()), -1),
            Program::Fd(fd) => (None, fd.as_raw_fd()),
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
            failed_stage: AtomicI32::new(0),
            failed_errno: AtomicI32::new(0),
            _strings: strings,
        })
    }

    fn failure(&self) -> Option<SpawnError> {
        let index = usize::try_from(self.failed_stage.load(Ordering::SeqCst)).ok()?.checked_sub(1)?;
        let stage = STAGES.get(index).copied()?;
        Some(SpawnError { stage, errno: self.failed_errno.load(Ordering::SeqCst) })
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

extern "C" fn run_child(arg: *mut c_void) -> c_int {
    // SAFETY: `arg` is the `Prepared` of the suspended parent, alive and only read until this process is another one.
    let prepared = unsafe { &*arg.cast::<Prepared>().cast_const() };
    let (stage, errno) = become_program(prepared);
    let index = STAGES.iter().position(|&s| s == stage).unwrap_or(0);
    prepared.failed_errno.store(errno, Ordering::SeqCst);
    prepared.failed_stage.store(i32::try_from(index).unwrap_or(0) + 1, Ordering::SeqCst);
    // SAFETY: ends this process without running anything of the parent's (exit handlers, buffers).
    unsafe { libc::_exit(127) }
}

/// The steps from a fresh process to the program. Only system calls: it may run in the parent's memory.
fn become_program(p: &Prepared) -> (Stage, c_int) {
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
        let result = unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) };
        check(result).ok_or(Stage::Terminal)?;
    }
    if let Some(cwd) = &p.cwd {
        // SAFETY: `cwd` is a live NUL-terminated string.
        let result = unsafe { libc::chdir(cwd.as_ptr()) };
        check(result).ok_or(Stage::Cwd)?;
    }
    if let Some(mask) = p.umask {
        // SAFETY: takes no memory and cannot fail.
        unsafe { libc::umask(mask) };
    }
    for &(limit, value) in &p.limits {
        let pair = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: `pair` is a live rlimit that the call reads.
        let result = unsafe { libc::setrlimit(limit.raw(), &raw const pair) };
        check(result).ok_or(Stage::Limits)?;
    }
    if p.parent_death {
        // SAFETY: PR_SET_PDEATHSIG takes a number, no memory.
        let result = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        check(result).ok_or(Stage::Session)?;
    }
    crate::signal::reset_for_exec();
    Ok(program)
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

/// Without `close_range`: everything is close-on-exec from birth.
#[cfg(not(target_os = "linux"))]
fn close_from(first: c_int) -> Option<c_int> {
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
    const EMPTY: &CStr = c"";
    // SAFETY: argv and env are live, NUL-terminated and end with a null pointer; the path is empty by AT_EMPTY_PATH.
    unsafe { libc::syscall(libc::SYS_execveat, program, EMPTY.as_ptr(), argv, env, libc::AT_EMPTY_PATH) };
}

#[cfg(not(target_os = "linux"))]
fn execute_fd(program: c_int, argv: *const *const c_char, env: *const *const c_char) {
    // SAFETY: as for execve, with an open file instead of a path.
    unsafe { libc::fexecve(program, argv, env) };
}

fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Exit;

    fn c(text: &str) -> CString {
        CString::new(text).unwrap()
    }

    fn sh(script: &str) -> Command<'static> {
        Command::new(Program::Path(c("/bin/sh")), vec![c("sh"), c("-c"), c(script)])
    }

    /// Runs a command with its output in a pipe.
    fn output(command: Command<'_>) -> (String, Exit) {
        let (read, write) = crate::fd::pipe().unwrap();
        let null = crate::fd::null().unwrap();
        let child = command.fds(vec![null.as_fd(), write.as_fd(), write.as_fd()]).spawn().unwrap();
        drop(write);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::fs::File::from(read), &mut text).unwrap();
        (text, crate::process::reap_pid(child.pid).unwrap())
    }

    #[test]
    fn the_environment_is_what_was_given() {
        assert_eq!(output(sh("echo [$HOME]")).0, "[]\n");
        assert_eq!(output(sh("echo [$A]; exit 3").env(vec![c("A=b")])), ("[b]\n".to_owned(), Exit::Code(3)));
    }

    #[test]
    fn only_the_given_descriptors_are_open() {
        let _other = crate::fd::null().unwrap();
        let (text, _exit) = output(sh("ls -l /proc/self/fd | grep -c -- '->'"));
        // 0, 1, 2 and the one `ls` opens.
        assert_eq!(text, "4\n");
    }

    #[test]
    fn a_session_of_its_own() {
        let (text, _exit) = output(sh("ps -o sid= -p $$ 2>/dev/null || cut -d' ' -f6 /proc/$$/stat; echo $$").setsid());
        let lines: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(lines[0], lines[1]);
    }

    #[test]
    fn directory_mask_and_limits_apply() {
        let command = sh("pwd; umask; ulimit -n").cwd(c("/usr")).umask(0o27).limit(Limit::OpenFiles, 77);
        assert_eq!(output(command).0, "/usr\n0027\n77\n");
    }

    #[test]
    fn signals_are_at_their_defaults() {
        // Rust ignores SIGPIPE; a program must not inherit that, nor a blocked signal.
        let (text, _exit) = output(sh("grep -E '^Sig(Blk|Ign)' /proc/self/status"));
        let sets: Vec<u64> = text
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1))
            .map(|set| u64::from_str_radix(set, 16).unwrap())
            .collect();
        // 32 and 33 are the C library's own; it does not let anyone change them.
        let own = 0b11 << 31;
        assert_eq!(sets.iter().map(|set| set & !own).collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn failures_say_where() {
        let missing = Command::new(Program::Path(c("/nowhere")), vec![c("x")]).spawn().unwrap_err();
        assert_eq!(missing, SpawnError { stage: Stage::Exec, errno: libc::ENOENT });
        let dir = sh("true").cwd(c("/nowhere")).spawn().unwrap_err();
        assert_eq!(dir, SpawnError { stage: Stage::Cwd, errno: libc::ENOENT });
        let tty = sh("true").setsid().fds(vec![crate::fd::null().unwrap().as_fd()]).controlling_tty().spawn();
        assert_eq!(tty.unwrap_err(), SpawnError { stage: Stage::Terminal, errno: libc::ENOTTY });
        let null = crate::fd::null().unwrap();
        let many = sh("true").fds(vec![null.as_fd(); MAX_FDS + 1]).spawn();
        assert_eq!(many.unwrap_err(), SpawnError { stage: Stage::Descriptors, errno: libc::EINVAL });
    }

    #[test]
    fn a_program_by_descriptor() {
        let sh = crate::fd::open_program(std::path::Path::new("/bin/sh")).unwrap();
        let command = Command::new(Program::Fd(sh.as_fd()), vec![c("sh"), c("-c"), c("echo $0")]);
        assert_eq!(output(command).0, "sh\n");
    }

    #[test]
    fn a_script_by_descriptor_needs_its_descriptor() {
        let path = std::env::temp_dir().join(format!("shoal-sys-script-{}", std::process::id()));
        std::fs::write(&path, "#!/bin/sh\necho script\n").unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let fd = crate::fd::open_program(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let command = Command::new(Program::Fd(fd.as_fd()), vec![c("script")]);
        assert_eq!(output(command.clone().keep_program()).0, "script\n");
        assert_eq!(command.spawn().unwrap_err(), SpawnError { stage: Stage::Exec, errno: libc::ENOENT });
    }

    #[test]
    fn a_terminal_becomes_the_controlling_one() {
        let pty = crate::pty::open(80, 24).unwrap();
        let side = pty.follower.as_fd();
        let child = sh("stty size < /dev/tty").fds(vec![side, side, side]).setsid().controlling_tty().spawn().unwrap();
        assert_eq!(crate::process::reap_pid(child.pid).unwrap(), Exit::Code(0));
        let mut buffer = [0; 64];
        let len = rustix::io::read(&pty.leader, &mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"24 80\r\n");
    }
}
