//! One chain from its launch request to its end.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shoal_eval::Unwind;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, Chain, Clock as _, Finished, Input, Output, Program, RunError, StartErrorKind, WriteMode};
use shoal_proto::launcher_worker::{CommandId, RunId, Rung, Spawn};
use shoal_proto::{Bytes, List};
use shoal_sys::poll::{self, Ready};
use shoal_value::outcome::Capture;
use shoal_value::{ErrorValue, code};

use super::pump::{Ends, Fed, Pump, Stage, Started};
use super::{Commands, failure, redirect};
use crate::clock;
use crate::launcher_edge::{Event, Inbox};

/// How soon the writer of a pulled input notices that its reader is gone.
const PATIENCE: Duration = Duration::from_millis(20);

/// How long the token may stay behind the launcher's refusal, in nanoseconds.
const TOKEN_TIME: u64 = 1_000_000_000;

/// A chain that was cancelled before it ran.
fn cancelled() -> Finished {
    Finished { stages: Vec::new(), stdout: shoal_value::Bytes::empty(), capture: Capture::default(), cancelled: true }
}

/// Runs a chain: starts every stage, feeds the first, captures, waits for the end of all.
pub(super) fn run(commands: &Commands, chain: Chain<'_>, cancel: &CancelToken) -> Result<Finished, RunError> {
    let Chain { run, task, cwd, stages, stdin, stdout } = chain;
    let inbox = Inbox::new().map_err(|e| failure::io(0, &e))?;
    let start = Start { commands, inbox: &inbox, run, task, cwd: cwd.path().as_bytes(), early: RefCell::default() };
    let (input, feed) = match &stdin {
        Input::Null => (shoal_sys::fd::null().map_err(|e| failure::io(0, &e))?, None),
        Input::File(path) => (redirect::open(0, At { dir: &cwd, path: path.as_bytes() }, None)?, None),
        Input::Bytes(_) | Input::Pull(_) => {
            let (child, feed) = pipe(0)?;
            shoal_sys::fd::set_nonblocking(&feed, true).map_err(|e| failure::io(0, &e))?;
            (child, Some(feed))
        }
    };
    let output = match &stdout {
        Output::Capture => None,
        Output::File { path, append } => {
            let mode = if *append { WriteMode::Append } else { WriteMode::Truncate };
            let last = stages.len().saturating_sub(1);
            Some(redirect::open(last, At { dir: &cwd, path: path.as_bytes() }, Some(mode))?)
        }
    };
    if cancel.is_set() {
        return Ok(cancelled());
    }
    let started = match start.all(stages, input, output) {
        Ok(started) => started,
        Err(_) if cancel.is_set() => return Ok(cancelled()),
        // The launcher knows of the cancel already: the token is set in a moment.
        Err(error) if failure::is_cancelled(&error) => {
            return match clock::SystemClock.sleep(TOKEN_TIME, cancel) {
                Err(_set) => Ok(cancelled()),
                Ok(()) => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    let pump = Pump::new(commands, Arc::clone(&inbox), run, task != 0, started);
    let ids = pump.ids();
    commands.tasks().entry(task).or_default().extend(&ids);
    let result = match stdin {
        Input::Pull(pull) => pulled(commands, pump, feed, pull, cancel),
        Input::Bytes(shoal_value::Bytes::Stored(stored)) => {
            let (mut at, depot) = (0, commands.depot());
            let mut pull = || {
                if at >= stored.len {
                    return Ok(None);
                }
                let depot = depot.ok_or_else(|| ErrorValue::new(code::NOT_FOUND, "there is no store here"))?;
                let part = depot.part(run, &stored.hash, at)?;
                at = if part.is_empty() { stored.len } else { at + part.len() as u64 };
                Ok(Some(part))
            };
            pulled(commands, pump, feed, &mut pull, cancel)
        }
        Input::Bytes(bytes) => Ok(pump.run(feed.map(|pipe| Fed::new(pipe, in_memory(&bytes))), cancel)),
        Input::Null | Input::File(_) => Ok(pump.run(None, cancel)),
    };
    forget(commands, task, &ids);
    result
}

/// The bytes in memory; those that were cut cannot be fed.
fn in_memory(bytes: &shoal_value::Bytes) -> Arc<[u8]> {
    bytes.held().map_or_else(|| Arc::from([]), Arc::clone)
}

fn forget(commands: &Commands, task: u64, ids: &[CommandId]) {
    let mut tasks = commands.tasks();
    if let Some(of_task) = tasks.get_mut(&task) {
        of_task.retain(|id| !ids.contains(id));
        if of_task.is_empty() {
            tasks.remove(&task);
        }
    }
    drop(tasks);
    ids.iter().for_each(|id| commands.edge.forget(*id));
}

/// The input is pulled on this thread, because the source belongs to it, while another reads the outputs.
fn pulled(
    commands: &Commands,
    pump: Pump<'_>,
    feed: Option<OwnedFd>,
    pull: &mut dyn FnMut() -> Result<Option<Vec<u8>>, Unwind>,
    cancel: &CancelToken,
) -> Result<Finished, RunError> {
    let ids = pump.ids();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name("reader".into()).spawn_scoped(scope, || {
            let finished = pump.run(None, cancel);
            done.store(true, Ordering::Release);
            finished
        });
        let reader = reader.map_err(|error| {
            ids.iter().all(|id| commands.edge.end(*id, Rung::Kill).is_ok());
            failure::io(0, &error)
        })?;
        let over = || done.load(Ordering::Acquire) || cancel.is_set();
        let fed = feed.map_or(Ok(()), |pipe| feed_from(pull, &pipe, over));
        if fed.is_err() {
            // A ladder that cannot be asked for has no programs left: the launcher is gone.
            ids.iter().all(|id| commands.edge.end(*id, Rung::Int).is_ok());
        }
        match (fed, reader.join()) {
            (Err(unwind), _) => Err(RunError::Source(unwind)),
            (Ok(()), Ok(finished)) => Ok(finished),
            (Ok(()), Err(panic)) => std::panic::resume_unwind(panic),
        }
    })
}

/// Writes what is pulled until the source ends, the reader closes, or it is over.
fn feed_from(
    pull: &mut dyn FnMut() -> Result<Option<Vec<u8>>, Unwind>,
    pipe: &OwnedFd,
    over: impl Fn() -> bool,
) -> Result<(), Unwind> {
    while !over() {
        let Some(bytes) = pull()? else { break };
        let mut rest = &bytes[..];
        while !rest.is_empty() && !over() {
            match rustix::io::write(pipe, rest) {
                Ok(n) => rest = &rest[n..],
                Err(rustix::io::Errno::AGAIN) => {
                    // A poll that fails is answered by the next write.
                    poll::wait(pipe.as_fd(), Ready::WRITE, Some(PATIENCE)).unwrap_or(false);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Ok(()),
            }
        }
    }
    Ok(())
}

fn pipe(stage: usize) -> Result<(OwnedFd, OwnedFd), RunError> {
    shoal_sys::fd::pipe().map_err(|e| failure::io(stage, &e))
}

/// A pipe whose read end stays here.
fn output_pipe(stage: usize) -> Result<(OwnedFd, OwnedFd), RunError> {
    let (ours, theirs) = pipe(stage)?;
    shoal_sys::fd::set_nonblocking(&ours, true).map_err(|e| failure::io(stage, &e))?;
    Ok((ours, theirs))
}

/// Starting the stages of one chain.
struct Start<'a> {
    commands: &'a Commands,
    inbox: &'a Arc<Inbox>,
    run: RunId,
    task: u64,
    cwd: &'a [u8],
    early: RefCell<Vec<(CommandId, Event)>>,
}

impl Start<'_> {
    /// Starts every stage, or none: those that run when one fails are ended.
    fn all(&self, programs: Vec<Program>, input: OwnedFd, output: Option<OwnedFd>) -> Result<Started, RunError> {
        let count = programs.len();
        let mut started = Vec::with_capacity(count);
        let mut input = input;
        let (mut output, mut stdout) = (output, None);
        for (index, program) in programs.into_iter().enumerate() {
            let connected = (|| {
                let (stderr, their_stderr) = output_pipe(index)?;
                let (theirs, next) = if index + 1 < count {
                    let (read, write) = pipe(index)?;
                    (write, Some(read))
                } else if let Some(file) = output.take() {
                    (file, None)
                } else {
                    let (read, write) = output_pipe(index)?;
                    stdout = Some(read);
                    (write, None)
                };
                let stage = self.one(index, program, [input.as_fd(), theirs.as_fd(), their_stderr.as_fd()])?;
                Ok::<_, RunError>((stage, stderr, next))
            })();
            match connected {
                Ok((stage, stderr, next)) => {
                    started.push((stage, stderr));
                    if let Some(next) = next {
                        input = next;
                    }
                }
                Err(error) => {
                    self.undo(started.into_iter().map(|(stage, _)| stage).collect());
                    return Err(error);
                }
            }
        }
        let (stages, stderrs) = started.into_iter().unzip();
        Ok(Started { stages, ends: Ends { stdout, stderrs }, early: self.early.take() })
    }

    fn one(&self, index: usize, program: Program, stdio: [BorrowedFd<'_>; 3]) -> Result<Stage, RunError> {
        let id = self.commands.edge.register(self.inbox);
        let result = self.request(index, id, program).and_then(|spawn| {
            self.commands.edge.spawn(spawn, stdio).map_err(|e| failure::edge(index, &e))?;
            self.await_start(index, id)
        });
        if result.is_err() {
            self.commands.edge.forget(id);
        }
        let pid = result?;
        Ok(Stage::new(id, pid, clock::now()))
    }

    fn request(&self, index: usize, id: CommandId, program: Program) -> Result<Spawn, RunError> {
        let too_long =
            |what: &str| failure::start(index, StartErrorKind::Io, format!("{what} is too long for a program"));
        let argv = program.argv.into_iter().map(Bytes::new).collect::<Result<Vec<_>, _>>();
        let env = program.env.into_iter().map(|(name, value)| Bytes::new([&*name, b"=", &*value].concat()));
        let env = env.collect::<Result<Vec<_>, _>>().map_err(|_| too_long("a variable"))?;
        Ok(Spawn {
            id,
            run: self.run,
            path: Bytes::new(program.path.as_bytes()).map_err(|_| too_long("the path"))?,
            argv: List::new(argv.map_err(|_| too_long("an argument"))?).map_err(|_| too_long("the argument list"))?,
            env: List::new(env).map_err(|_| too_long("the environment"))?,
            cwd: Bytes::new(self.cwd).map_err(|_| too_long("the directory"))?,
            background: self.task != 0,
        })
    }

    /// The launcher answers each start at once; it is this jail's pid 1, so without it there is no process to wait for.
    fn await_start(&self, index: usize, id: CommandId) -> Result<i32, RunError> {
        loop {
            let mut answer = None;
            // All of them are taken: the end of a short program may stand right behind its start.
            for (of, event) in self.inbox.take() {
                match event {
                    Event::Started(started) if of == id => answer = Some(Ok(started.pid)),
                    Event::Failed(failed) if of == id => answer = Some(Err(failure::told(index, &failed))),
                    other => self.early.borrow_mut().push((of, other)),
                }
            }
            if let Some(answer) = answer {
                return answer;
            }
            poll::wait(self.inbox.as_fd(), Ready::READ, None).map_err(|e| failure::io(index, &e))?;
        }
    }

    /// Ends the stages that run already and forgets them.
    fn undo(&self, started: Vec<Stage>) {
        for stage in started {
            if self.commands.edge.end(stage.id, Rung::Kill).is_ok() {
                self.commands.edge.forget(stage.id);
            }
        }
    }
}
