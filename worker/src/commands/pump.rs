//! The loop that feeds, reads and waits for the programs of one chain.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Exit, Finished, StageEnd};
use shoal_proto::launcher_worker::{CommandId, Exited, RunId, Rung};
use shoal_sys::poll::{self, Ready};
use shoal_value::Bytes;
use shoal_value::outcome::{Capture, Usage};

use super::leftovers::Leftover;
use super::spill::{Closed, Depot, Spill};
use super::{Commands, signals};
use crate::capture::Kept;
use crate::clock;
use crate::launcher_edge::{Event, Inbox};
use crate::output::{OutputLog, Stream};

/// How long the pipes are drained after the last program ended.
const DRAIN: Duration = Duration::from_millis(250);
/// The launcher counts holders by looking at their descriptors; a slow count is left out.
const COUNT: Duration = Duration::from_secs(1);
/// One read.
const CHUNK: usize = 64 * 1024;
/// Bytes in memory of a stream of a language task. It may outlive its execution, and then the store takes no more.
const KEPT_OF_TASK: usize = 1024 * 1024;

/// A running stage.
#[derive(Debug)]
pub(super) struct Stage {
    /// Its number at the launcher.
    pub(super) id: CommandId,
    pid: i32,
    started: Instant,
    ended: Option<(Exited, Instant)>,
}

impl Stage {
    /// A stage that was started.
    pub(super) fn new(id: CommandId, pid: i32, started: Instant) -> Self {
        Self { id, pid, started, ended: None }
    }
}

/// Our ends of the pipes.
pub(super) struct Ends {
    /// The last stage's output, unless it goes to a file.
    pub(super) stdout: Option<OwnedFd>,
    /// Each stage's errors.
    pub(super) stderrs: Vec<OwnedFd>,
}

/// A chain whose stages all run.
pub(super) struct Started {
    /// The stages in order.
    pub(super) stages: Vec<Stage>,
    /// Their pipes.
    pub(super) ends: Ends,
    /// What was told of a stage while a later one was being started.
    pub(super) early: Vec<(CommandId, Event)>,
}

/// Bytes on their way into the first stage.
pub(super) struct Fed {
    pipe: OwnedFd,
    bytes: Arc<[u8]>,
    at: usize,
}

impl Fed {
    /// These bytes.
    pub(super) fn new(pipe: OwnedFd, bytes: Arc<[u8]>) -> Self {
        Self { pipe, bytes, at: 0 }
    }

    /// Writes what there is room for; `false` when all is written or nobody reads.
    fn write(&mut self) -> bool {
        loop {
            let rest = &self.bytes[self.at..];
            if rest.is_empty() {
                return false;
            }
            match rustix::io::write(&self.pipe, rest) {
                Ok(n) => self.at += n,
                Err(rustix::io::Errno::AGAIN) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}

/// One of the streams that are read.
struct Tap {
    pipe: Option<OwnedFd>,
    stream: Stream,
    kept: Kept,
    spill: Option<Spill>,
    stage: usize,
}

impl Tap {
    /// Takes bytes that were read. Those that do not fit into memory go on into the store, with all before them.
    fn take(&mut self, bytes: &[u8], run: RunId, depot: Option<&dyn Depot>) {
        if self.kept.overflows(bytes.len()) {
            self.spill = depot.and_then(|depot| Spill::begin(depot, run, self.stream, self.kept.all()));
        }
        if self.spill.as_ref().is_some_and(|spill| !spill.write(bytes)) {
            self.spill = None;
        }
        self.kept.push(bytes);
    }
}

/// The loop's state.
pub(super) struct Pump<'a> {
    commands: &'a Commands,
    inbox: Arc<Inbox>,
    log: Option<Arc<OutputLog>>,
    run: RunId,
    stages: Vec<Stage>,
    taps: Vec<Tap>,
    background: bool,
    held: u32,
    counts: usize,
    cancelled: bool,
    /// When output that came is to be told.
    untold: Option<Instant>,
}

impl<'a> Pump<'a> {
    /// A pump for started stages of a run; `background` ones do not end with it.
    pub(super) fn new(
        commands: &'a Commands,
        inbox: Arc<Inbox>,
        run: RunId,
        background: bool,
        started: Started,
    ) -> Self {
        let Started { stages, ends, early } = started;
        let limit = if background { commands.kept.min(KEPT_OF_TASK) } else { commands.kept };
        let tap = |pipe, stream, stage| Tap { pipe, stream, kept: Kept::new(limit), spill: None, stage };
        let last = stages.len().saturating_sub(1);
        let mut taps = vec![tap(ends.stdout, Stream::Stdout, last)];
        taps.extend(ends.stderrs.into_iter().enumerate().map(|(stage, pipe)| tap(Some(pipe), Stream::Stderr, stage)));
        let log = commands.runs.log(run);
        let (held, counts, cancelled, untold) = (0, 0, false, None);
        let mut pump = Self { commands, inbox, log, run, stages, taps, background, held, counts, cancelled, untold };
        early.into_iter().for_each(|(id, event)| pump.on_event(id, event));
        pump
    }

    /// Numbers of its stages.
    pub(super) fn ids(&self) -> Vec<CommandId> {
        self.stages.iter().map(|stage| stage.id).collect()
    }

    /// Runs until every stage ended and its pipes are drained.
    pub(super) fn run(mut self, mut fed: Option<Fed>, cancel: &CancelToken) -> Finished {
        let inbox = Arc::clone(&self.inbox);
        let _waker = cancel.on_cancel(move || inbox.wake());
        let mut chunk = vec![0; CHUNK];
        while !self.is_over() {
            if cancel.is_set() && !self.cancelled {
                self.cancelled = true;
                self.climb();
            }
            let readable = self.wait(fed.as_ref());
            for (index, ready) in readable.into_iter().enumerate() {
                if ready {
                    self.read(index, &mut chunk);
                }
            }
            if fed.as_mut().is_some_and(|fed| !fed.write()) {
                fed = None;
            }
            self.take_events();
            if self.untold.is_some_and(|due| due <= clock::now()) {
                self.untold = self.commands.runs.progress(self.run);
            }
        }
        drop(fed);
        self.count_holders();
        self.finish()
    }

    /// Every stage ended, and the pipes are at their end or were drained long enough.
    fn is_over(&self) -> bool {
        let Some(last) = self.last_end() else { return false };
        self.taps.iter().all(|tap| tap.pipe.is_none()) || clock::now() >= last + DRAIN
    }

    /// When the last stage ended, if all did.
    fn last_end(&self) -> Option<Instant> {
        let ends: Option<Vec<Instant>> = self.stages.iter().map(|stage| stage.ended.map(|(_, at)| at)).collect();
        ends?.into_iter().max()
    }

    /// Waits for something to do; says which taps have something to read.
    fn wait(&self, fed: Option<&Fed>) -> Vec<bool> {
        let mut interests = vec![(self.inbox.as_fd(), Ready::READ)];
        interests.extend(self.taps.iter().filter_map(|tap| tap.pipe.as_ref()).map(|pipe| (pipe.as_fd(), Ready::READ)));
        interests.extend(fed.map(|fed| (fed.pipe.as_fd(), Ready::WRITE)));
        let due = self.last_end().map(|last| last + DRAIN).into_iter().chain(self.untold).min();
        let timeout = due.map(|due| due.saturating_duration_since(clock::now()));
        let ready = poll::poll(&interests, timeout).unwrap_or_default();
        let mut ready = ready.into_iter().skip(1).map(|r| r.read || r.hang_up);
        self.taps.iter().map(|tap| tap.pipe.is_some() && ready.next().unwrap_or(false)).collect()
    }

    fn read(&mut self, index: usize, chunk: &mut [u8]) {
        let Some(tap) = self.taps.get_mut(index) else { return };
        let Some(pipe) = &tap.pipe else { return };
        match rustix::io::read(pipe, &mut *chunk) {
            Ok(0) => tap.pipe = None,
            Ok(n) => {
                let bytes = &chunk[..n];
                tap.take(bytes, self.run, self.commands.depot());
                if let Some(log) = &self.log {
                    log.append(tap.stream, bytes);
                    self.untold = self.commands.runs.progress(self.run);
                }
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => tap.pipe = None,
        }
    }

    fn take_events(&mut self) {
        for (id, event) in self.inbox.take() {
            self.on_event(id, event);
        }
    }

    fn on_event(&mut self, id: CommandId, event: Event) {
        match event {
            Event::Exited(exited) => {
                if let Some(stage) = self.stages.iter_mut().find(|stage| stage.id == id) {
                    stage.ended = Some((exited, clock::now()));
                }
            }
            Event::Held(holders) => {
                self.held = self.held.saturating_add(holders);
                self.counts += 1;
            }
            // All of its stages were started before the pump was.
            Event::Started(_) | Event::Failed(_) => {}
        }
    }

    /// Ends every stage by the ladder, unless the broker has it climb already.
    fn climb(&self) {
        if !self.background && self.commands.edge.is_climbed(self.run) {
            return;
        }
        // A launcher that is gone has taken the programs with it, and our own end follows.
        self.stages
            .iter()
            .filter(|stage| stage.ended.is_none())
            .all(|s| self.commands.edge.end(s.id, Rung::Int).is_ok());
    }

    /// Asks who still holds the pipes that did not come to their end.
    fn count_holders(&mut self) {
        let mut open: Vec<usize> = self.taps.iter().filter(|tap| tap.pipe.is_some()).map(|tap| tap.stage).collect();
        open.sort_unstable();
        open.dedup();
        for stage in open.iter().filter_map(|index| self.stages.get(*index)) {
            if self.commands.edge.count_holders(stage.id, stage.pid).is_err() {
                return;
            }
        }
        let due = clock::now() + COUNT;
        while self.counts < open.len() {
            let rest = due.saturating_duration_since(clock::now());
            if rest.is_zero() || poll::wait(self.inbox.as_fd(), Ready::READ, Some(rest)).is_err() {
                return;
            }
            self.take_events();
        }
    }

    fn finish(mut self) -> Finished {
        let mut capture = Capture { held_by: self.held, ..Capture::default() };
        let mut kept = Vec::new();
        // All of them end before one is waited for.
        let mut ended = Vec::new();
        for tap in self.taps.drain(..) {
            if let Some(pipe) = tap.pipe {
                self.commands.leftovers.take(Leftover { pipe, log: self.log.clone(), stream: tap.stream });
            }
            ended.push((tap.stream, tap.kept, tap.spill.map(Spill::close)));
        }
        for (stream, of_stream, spilled) in ended {
            let seen = of_stream.seen();
            let bytes = match spilled.and_then(Closed::place) {
                Some(place) => of_stream.into_stored(place.hash.into(), place.kept),
                None => of_stream.into_bytes(),
            };
            match stream {
                Stream::Stdout => {
                    capture.stdout_seen += seen;
                    capture.stdout_kept += bytes.len();
                }
                Stream::Stderr => {
                    capture.stderr_seen += seen;
                    capture.stderr_kept += bytes.len();
                }
            }
            kept.push(bytes);
        }
        let mut kept = kept.into_iter();
        let stdout = kept.next().unwrap_or_else(Bytes::empty);
        let stages = self.stages.iter().zip(kept).map(|(stage, stderr)| stage_end(stage, stderr)).collect();
        Finished { stages, stdout, capture, cancelled: self.cancelled }
    }
}

fn stage_end(stage: &Stage, stderr: Bytes) -> StageEnd {
    let (exited, at) = match &stage.ended {
        Some((exited, at)) => (Some(exited), *at),
        None => (None, stage.started),
    };
    let signal = exited.and_then(|e| e.status.signal);
    let exit = match signal {
        Some(signal) => Exit::Signal(signals::name(signal)),
        None => Exit::Status(exited.and_then(|e| e.status.code).unwrap_or(u8::MAX).into()),
    };
    let limit = exited.and_then(|e| e.limit).map(|limit| limit.name().into());
    let small = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let usage = exited.map_or_else(Usage::default, |e| Usage {
        cpu_ns: small(e.cpu_us.saturating_mul(1000)),
        peak_bytes: small(e.peak_kib.saturating_mul(1024)),
    });
    let dur_ns = i64::try_from(at.duration_since(stage.started).as_nanos()).unwrap_or(i64::MAX);
    StageEnd { pid: stage.pid.into(), exit, dur_ns, limit, usage, stderr }
}
