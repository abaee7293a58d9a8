//! Starting a program from a process of any size, at vfork cost.
//!
//! [`Command::spawn`] is the launcher's and the supervisor's way to start a program: `clone` with
//! `CLONE_VM | CLONE_VFORK | CLONE_PIDFD`, so that neither the memory of the parent is copied nor a pid can be mistaken.
//! The child runs on a stack of its own and does nothing but system calls on what was prepared before; a failure comes
//! back as stage and error number through shared memory. (`clone3` is not used here: the jail's filter answers it with
//! ENOSYS.) On macOS it is a fork, whose child says through a pipe where it failed. [`Command::exec`] is the same for a
//! process that was made for it.
//!
//! Descriptors are a list: the program gets them at 0, 1, 2, ..., and every other one is closed.

mod prepared;
mod steps;

#[cfg(target_os = "linux")]
#[path = "spawn/clone.rs"]
mod carrier;
#[cfg(target_os = "macos")]
#[path = "spawn/fork.rs"]
mod carrier;

use std::ffi::CString;
use std::io;
use std::os::fd::BorrowedFd;

use crate::pidfd::Pidfd;
use crate::rlimit::Limit;
use prepared::Prepared;

/// Descriptors one program may be given.
pub const MAX_FDS: usize = 16;

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
    pub pidfd: Pidfd,
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

    /// Kills it when the thread that started it ends. Nothing does that on macOS: what is started there has to end by
    /// itself at the end of its edge.
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
        carrier::spawn(&Prepared::new(self)?)
    }

    /// Turns this process into the program; returns only on failure.
    pub fn exec(&self) -> SpawnError {
        match Prepared::new(self) {
            Ok(prepared) => {
                let (stage, errno) = steps::become_program(&prepared);
                SpawnError { stage, errno }
            }
            Err(error) => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Exit;
    use std::os::fd::AsFd;

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
