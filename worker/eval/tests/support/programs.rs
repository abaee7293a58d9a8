//! Programs of the test host: started with `std::process`, captured whole.

use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::process::RunError;
use shoal_eval::host::{
    Chain, Exit, FileErrorKind, Finished, Input, Output, Processes, Program, StageEnd, StartError, StartErrorKind,
};
use shoal_value::outcome::{Capture, Usage};
use shoal_value::{Bytes, PathValue};

/// Longest wait for the end of a pipe after the program ended.
const DRAIN: Duration = Duration::from_millis(250);

pub(crate) struct RealPrograms;

impl Processes for RealPrograms {
    fn run(&self, chain: Chain<'_>, cancel: &CancelToken) -> Result<Finished, RunError> {
        let count = chain.stages.len();
        let mut stages = Vec::new();
        let mut previous = None;
        for (at, program) in chain.stages.iter().enumerate() {
            let mut command = prepare(program, chain.cwd.path());
            match (previous.take(), &chain.stdin) {
                (Some(pipe), _) => command.stdin(pipe),
                (None, Input::Null) => command.stdin(Stdio::null()),
                (None, Input::Bytes(_) | Input::Pull(_)) => command.stdin(Stdio::piped()),
                (None, Input::File(path)) => command.stdin(open(chain.cwd.path(), path, at, |o| o.read(true))?),
            };
            match &chain.stdout {
                Output::File { path, append } if at + 1 == count => {
                    let file = open(chain.cwd.path(), path, at, |o| {
                        o.create(true).write(true).append(*append).truncate(!*append)
                    })?;
                    command.stdout(file);
                }
                _ => drop(command.stdout(Stdio::piped())),
            }
            command.stderr(Stdio::piped());
            let started = Instant::now();
            let mut child = command.spawn().map_err(|error| start_error(at, &error))?;
            if at + 1 < count {
                previous = child.stdout.take().map(Stdio::from);
            }
            stages.push(Running::new(child, started));
        }
        finish(stages, chain.stdin, cancel)
    }

    fn suspend(&self, _task: u64) {}

    fn resume(&self, _task: u64) {}
}

struct Running {
    child: Child,
    started: Instant,
    stdout: Option<mpsc::Receiver<Vec<u8>>>,
    stderr: Option<mpsc::Receiver<Vec<u8>>>,
}

impl Running {
    fn new(mut child: Child, started: Instant) -> Self {
        let stdout = child.stdout.take().map(reader);
        let stderr = child.stderr.take().map(reader);
        Self { child, started, stdout, stderr }
    }
}

/// Reads a pipe in pieces, so that what came before a deadline can be kept.
fn reader(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0; 64 * 1024];
        while let Ok(n) = pipe.read(&mut piece) {
            if n == 0 || send.send(piece[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    receive
}

/// What a pipe gave; whether something still holds it.
fn drain(pipe: Option<mpsc::Receiver<Vec<u8>>>) -> (Vec<u8>, bool) {
    let (mut bytes, deadline) = (Vec::new(), Instant::now() + DRAIN);
    let Some(pipe) = pipe else { return (bytes, false) };
    loop {
        match pipe.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(piece) => bytes.extend(piece),
            Err(mpsc::RecvTimeoutError::Disconnected) => return (bytes, false),
            Err(mpsc::RecvTimeoutError::Timeout) => return (bytes, true),
        }
    }
}

fn finish(mut stages: Vec<Running>, stdin: Input<'_>, cancel: &CancelToken) -> Result<Finished, RunError> {
    let pids: Vec<u32> = stages.iter().map(|stage| stage.child.id()).collect();
    let _killer = cancel.on_cancel(move || {
        for pid in &pids {
            drop(Command::new("kill").args(["-INT", &format!("-{pid}")]).stderr(Stdio::null()).status());
        }
    });
    let mut writer: Option<JoinHandle<()>> = None;
    let input = stages[0].child.stdin.take();
    match (stdin, input) {
        (Input::Bytes(bytes), Some(mut pipe)) => {
            let held = bytes.held().cloned().unwrap_or_else(|| (*b"").into());
            writer = Some(std::thread::spawn(move || drop(pipe.write_all(&held))));
        }
        (Input::Pull(pull), Some(mut pipe)) => {
            while let Some(piece) = pull().map_err(RunError::Source)? {
                if pipe.write_all(&piece).is_err() {
                    break;
                }
            }
        }
        _ => {}
    }
    let (mut ends, mut stdout, mut held, mut seen) = (Vec::new(), Vec::new(), 0, 0);
    for mut stage in stages {
        let status = stage.child.wait().map_err(|error| start_error(ends.len(), &error))?;
        let (out, out_held) = drain(stage.stdout.take());
        let (stderr, err_held) = drain(stage.stderr.take());
        held += u32::from(out_held || err_held);
        seen += stderr.len() as u64;
        stdout = out;
        ends.push(StageEnd {
            pid: stage.child.id().into(),
            exit: exit_of(status),
            dur_ns: i64::try_from(stage.started.elapsed().as_nanos()).unwrap_or(i64::MAX),
            limit: None,
            usage: Usage::default(),
            stderr: Bytes::from(stderr),
        });
    }
    if let Some(writer) = writer {
        drop(writer.join());
    }
    let n = stdout.len() as u64;
    let capture = Capture { stdout_seen: n, stdout_kept: n, stderr_seen: seen, stderr_kept: seen, held_by: held };
    Ok(Finished { stages: ends, stdout: Bytes::from(stdout), capture, cancelled: cancel.is_set() })
}

fn prepare(program: &Program, cwd: &PathValue) -> Command {
    let os = |bytes: &[u8]| std::ffi::OsString::from_vec(bytes.to_vec());
    let mut command = Command::new(os(program.path.as_bytes()));
    command.arg0(os(&program.argv[0])).args(program.argv[1..].iter().map(|arg| os(arg))).env_clear();
    command.envs(program.env.iter().map(|(name, value)| (os(name), os(value))));
    command.current_dir(std::ffi::OsStr::from_bytes(cwd.as_bytes())).process_group(0);
    command
}

fn open(
    cwd: &PathValue,
    path: &PathValue,
    stage: usize,
    how: impl FnOnce(&mut std::fs::OpenOptions) -> &mut std::fs::OpenOptions,
) -> Result<std::fs::File, RunError> {
    let path = shoal_eval::ctx::join_path(cwd, path);
    let mut options = std::fs::OpenOptions::new();
    how(&mut options).open(std::ffi::OsStr::from_bytes(path.as_bytes())).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => FileErrorKind::NotFound,
            std::io::ErrorKind::IsADirectory => FileErrorKind::IsDir,
            std::io::ErrorKind::PermissionDenied => FileErrorKind::Permission,
            _ => FileErrorKind::Io,
        };
        RunError::Start(StartError { stage, kind: StartErrorKind::Redirect(kind), text: error.to_string() })
    })
}

fn start_error(stage: usize, error: &std::io::Error) -> RunError {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => StartErrorKind::NotFound,
        std::io::ErrorKind::PermissionDenied => StartErrorKind::Permission,
        _ => StartErrorKind::Io,
    };
    RunError::Start(StartError { stage, kind, text: error.to_string() })
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Status(code.into()),
        (None, Some(signal)) => Exit::Signal(signal_name(signal).into()),
        (None, None) => Exit::Status(-1),
    }
}

fn signal_name(signal: i32) -> String {
    match signal {
        2 => "SIGINT".to_owned(),
        6 => "SIGABRT".to_owned(),
        9 => "SIGKILL".to_owned(),
        11 => "SIGSEGV".to_owned(),
        13 => "SIGPIPE".to_owned(),
        15 => "SIGTERM".to_owned(),
        other => format!("SIG{other}"),
    }
}
