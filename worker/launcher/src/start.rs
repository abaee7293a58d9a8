//! Starting one process: the only place of this crate that makes one.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;

use shoal_proto::launcher_worker::SpawnStage;
use shoal_sys::rlimit::{self, Limit};
use shoal_sys::spawn::{Command, Program, SpawnError, Stage};

use crate::children::send_signal;
use crate::commands::Who;
use crate::gate;
use crate::launcher::{Launcher, Phase};
use crate::lineage::{self, Serial};
use crate::memory::MemoryEvents;

/// Programs of one session that may run at a time; the process limit of the jail is usually lower.
const MAX_PROGRAMS: usize = 4096;

/// A program that did not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// Where.
    pub(crate) stage: SpawnStage,
    /// Error number; 0 when it was refused.
    pub(crate) errno: i32,
    /// Why it was refused.
    pub(crate) reason: String,
}

impl Stopped {
    /// A failed call.
    pub(crate) fn at(stage: SpawnStage, errno: i32) -> Self {
        Self { stage, errno, reason: String::new() }
    }

    /// A failed call of the standard library.
    pub(crate) fn io(stage: SpawnStage, error: &io::Error) -> Self {
        Self { stage, errno: error.raw_os_error().unwrap_or(libc::EIO), reason: String::new() }
    }

    /// A refusal.
    pub(crate) fn denied(reason: impl Into<String>) -> Self {
        Self { stage: SpawnStage::Gate, errno: 0, reason: reason.into() }
    }
}

impl Launcher {
    /// Passes a program through the gate and starts it in a session of its own, with `fds` as its standard descriptors.
    /// A terminal's program also gets the terminal on descriptor 0 as its controlling one.
    pub(crate) fn launch(
        &mut self,
        who: Who,
        path: &[u8],
        argv: Vec<Vec<u8>>,
        env: Vec<Vec<u8>>,
        cwd: Vec<u8>,
        fds: &[BorrowedFd<'_>],
    ) -> Result<i32, Stopped> {
        if !matches!(self.phase, Phase::Birth | Phase::Up) {
            return Err(Stopped::denied("the session is ending"));
        }
        if self.commands.leaders().len() >= MAX_PROGRAMS {
            return Err(Stopped::at(SpawnStage::Setup, libc::EAGAIN));
        }
        let passed =
            gate::open(&self.section, path, argv.first().map_or(path, Vec::as_slice)).map_err(|e| match e {
                gate::Stopped::Open(error) => Stopped::io(SpawnStage::Open, &error),
                gate::Stopped::Denied(reason) => Stopped::denied(reason),
            })?;
        let named = c_string(path.to_vec())?;
        let program = match passed.program() {
            gate::Program::Opened(file) => Program::Fd(file.as_fd()),
            gate::Program::Named => Program::Path(named),
        };
        let serial = self.commands.next_serial();
        let terminal = matches!(who, Who::Terminal(_));
        let mut command = Command::new(program, c_strings(argv)?).env(c_strings(env)?).cwd(c_string(cwd)?);
        command = command.fds(fds.to_vec()).setsid();
        if terminal {
            command = command.controlling_tty();
        }
        for (limit, value) in self.limits_of(serial) {
            command = command.limit(limit, value);
        }
        let memory_kills = self.memory.as_ref().map_or(0, MemoryEvents::kills);
        let pid = command.spawn()?.pid;
        let pipes = if terminal { Vec::new() } else { fds.iter().skip(1).filter_map(|fd| inode(*fd)).collect() };
        self.commands.enter(serial, who, pid, pipes, memory_kills);
        if self.is_held(who) {
            // Its start was on its way when the others were stopped; who continues them continues it.
            send_signal(pid, libc::SIGSTOP);
        }
        Ok(pid)
    }

    /// Whether a program stands still for now: with its session, or with the execution it belongs to.
    pub(crate) fn is_held(&self, who: Who) -> bool {
        let suspended = match who {
            Who::Command { run, background, .. } => !background && self.suspended.contains(&run),
            Who::Terminal(_) => false,
        };
        self.frozen || suspended
    }
}

impl Launcher {
    /// Seconds of CPU a program may use.
    pub(crate) fn cpu_limit(&self) -> Option<u64> {
        least(self.limits.cpu_seconds, self.section.limits.cpu_seconds)
    }

    /// The mark, and the limits that this session lowers; a limit is never asked above what is in force.
    fn limits_of(&self, serial: Serial) -> Vec<(Limit, u64)> {
        let (own, section) = (&self.limits, &self.section.limits);
        let wanted = [
            (Limit::Cpu, self.cpu_limit()),
            (Limit::OpenFiles, least(own.open_files, section.open_files).map(u64::from)),
            (Limit::AddressSpace, least(own.memory, section.memory)),
        ];
        let lowered = wanted.into_iter().filter_map(|(limit, value)| {
            let (_soft, hard) = rlimit::limits(limit).ok()?;
            Some((limit, value?.min(hard)))
        });
        [(Limit::RealTime, lineage::mark(serial))].into_iter().chain(lowered).collect()
    }
}

/// A session's own limit lowers its section's and never raises it.
fn least<T: Ord>(own: Option<T>, section: Option<T>) -> Option<T> {
    own.into_iter().chain(section).min()
}

impl From<SpawnError> for Stopped {
    fn from(error: SpawnError) -> Self {
        let stage = match error.stage {
            Stage::Clone => SpawnStage::Clone,
            Stage::Cwd => SpawnStage::Cwd,
            Stage::Exec => SpawnStage::Exec,
            Stage::Session | Stage::Descriptors | Stage::Terminal | Stage::Limits => SpawnStage::Setup,
        };
        Self::at(stage, error.errno)
    }
}

fn c_string(bytes: Vec<u8>) -> Result<CString, Stopped> {
    CString::new(bytes).map_err(|_| Stopped::at(SpawnStage::Setup, libc::EINVAL))
}

fn c_strings(list: Vec<Vec<u8>>) -> Result<Vec<CString>, Stopped> {
    list.into_iter().map(c_string).collect()
}

/// The inode of a pipe, by which its holders are found.
fn inode(fd: BorrowedFd<'_>) -> Option<u64> {
    let file = std::fs::File::from(fd.try_clone_to_owned().ok()?);
    let meta = file.metadata().ok()?;
    std::os::unix::fs::FileTypeExt::is_fifo(&meta.file_type()).then(|| meta.ino())
}
