//! One terminal: its leader, its screen, who waits for it and what is on its way to its program.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use shoal_proto::broker_ptyd::{MAX_ROW, Refusal, Screen, Send};
use shoal_proto::hello::ExitStatus;
use shoal_proto::{Bytes, List, Text};
use shoal_sys::pty;

use crate::emulator::{Cursor, Emulator, SLICE};
use crate::input::{self, OpenLine};
use crate::reads::{Ended, View, Waiting};
use crate::writes::{Over, Writes};

/// Bytes of output taken from the terminal before they are parsed; the rest waits in the system and slows the program.
const INPUT: usize = 64 * 1024;
/// Parsing time of one terminal before the others have their turn.
const TURN: Duration = Duration::from_millis(20);
/// Ticks of one terminal come at most so often.
const TICK: Duration = Duration::from_millis(50);
/// After the program ended its last output may still be on its way inside the system, unless the terminal says that
/// nobody has it open any more.
const SETTLE: Duration = Duration::from_millis(50);

/// What a read compares with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    rows: Vec<Text<MAX_ROW>>,
    cursor: Cursor,
    size: (u16, u16),
}

/// How far the end of the program is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// It runs.
    Alive,
    /// It ended; its last output may come until then.
    Ending(ExitStatus, Instant),
    /// It ended and everything is on the screen.
    Ended(ExitStatus),
}

/// A terminal.
pub(crate) struct Pane {
    leader: Option<OwnedFd>,
    emulator: Emulator,
    unparsed: Vec<u8>,
    hung_up: bool,
    life: Life,
    open_line: OpenLine,
    /// Bytes on their way to the program.
    pub(crate) writes: Writes,
    /// Reads that wait.
    pub(crate) reads: Vec<Waiting>,
    seen: Option<Seen>,
    reset: bool,
    output: u64,
    last_output: Option<Instant>,
    ticked: Option<(u64, Instant)>,
}

impl Pane {
    /// A blank terminal without a leader yet.
    pub(crate) fn new(cols: u16, rows: u16) -> Self {
        Self {
            leader: None,
            emulator: Emulator::new(cols, rows),
            unparsed: Vec::new(),
            hung_up: false,
            life: Life::Alive,
            open_line: OpenLine::default(),
            writes: Writes::default(),
            reads: Vec::new(),
            seen: None,
            reset: false,
            output: 0,
            last_output: None,
            ticked: None,
        }
    }

    /// Takes the leader. `again`: an emulator before this one is gone, so the program is made to repaint.
    pub(crate) fn attach(&mut self, leader: OwnedFd, again: bool) -> std::io::Result<()> {
        shoal_sys::fd::set_nonblocking(&leader, true)?;
        self.leader = Some(leader);
        self.hung_up = false;
        if again {
            self.reset = true;
            self.make_repaint();
        }
        Ok(())
    }

    /// The leader while it can give or take something: for reading unless a turn's worth waits to be parsed.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, bool, bool)> {
        let leader = self.leader.as_ref().filter(|_| !self.hung_up)?;
        Some((leader.as_fd(), self.unparsed.len() < INPUT, !self.writes.is_empty()))
    }

    /// Reads what the program printed.
    pub(crate) fn read_output(&mut self, now: Instant) {
        let Some(leader) = self.leader.as_ref().filter(|_| !self.hung_up) else { return };
        let mut chunk = [0; 16 * 1024];
        while self.unparsed.len() < INPUT {
            match rustix::io::read(leader, &mut chunk) {
                Ok(0) => {
                    self.hung_up = true;
                    break;
                }
                Ok(n) => {
                    self.unparsed.extend_from_slice(chunk.get(..n).unwrap_or_default());
                    self.output = self.output.saturating_add(u64::try_from(n).unwrap_or(0));
                    self.last_output = Some(now);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // EIO: nobody has the program's side open.
                Err(_) => {
                    self.hung_up = true;
                    break;
                }
            }
        }
    }

    /// Parses for a turn; `true` when something is left for the next.
    pub(crate) fn parse(&mut self, clock: impl Fn() -> Instant) -> bool {
        let start = clock();
        let mut at: usize = 0;
        while let Some(rest) = self.unparsed.get(at..).filter(|rest| !rest.is_empty()) {
            let slice = rest.get(..SLICE.min(rest.len())).unwrap_or(rest);
            self.emulator.feed(slice);
            at = at.saturating_add(slice.len());
            if clock().saturating_duration_since(start) >= TURN {
                break;
            }
        }
        self.unparsed.drain(..at.min(self.unparsed.len()));
        self.writes.answer(self.emulator.take_answers(), start);
        if self.emulator.take_rebuilt() {
            self.reset = true;
            self.make_repaint();
        }
        !self.unparsed.is_empty()
    }

    /// Writes what the terminal takes.
    pub(crate) fn flush(&mut self, now: Instant) -> Vec<Over> {
        if self.is_closed() {
            return self.writes.abandon();
        }
        self.writes.flush(self.leader.as_ref().map(AsFd::as_fd), now)
    }

    /// Queues a send, or says why not; nothing is written then.
    pub(crate) fn send(&mut self, send: &Send, now: Instant) -> Result<(), Refusal> {
        if self.is_closed() {
            return Err(Refusal::Closed);
        }
        let bytes = input::encode(send, &self.emulator)?;
        if let Some(leader) = &self.leader {
            self.open_line = self.open_line.after(leader.as_fd(), &bytes)?;
        }
        self.writes.send(send.call, bytes, now);
        Ok(())
    }

    fn is_closed(&self) -> bool {
        matches!(self.life, Life::Ended(_))
    }

    /// A new size for window and screen. A program that is gone has no window.
    pub(crate) fn resize(&mut self, cols: u16, rows: u16) {
        self.emulator.resize(cols, rows);
        self.seen = None;
        let (cols, rows) = self.emulator.size();
        if let Some(leader) = &self.leader {
            let _gone: std::io::Result<()> = pty::resize(leader, cols, rows);
        }
    }

    /// The program ended.
    pub(crate) fn on_exit(&mut self, status: ExitStatus, now: Instant) {
        if self.life == Life::Alive {
            self.life = Life::Ending(status, now.checked_add(SETTLE).unwrap_or(now));
        }
    }

    /// Whether the end has just become complete: the last output is on the screen.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<ExitStatus> {
        let Life::Ending(status, due) = self.life else { return None };
        let drained = self.hung_up || self.leader.is_none() || now >= due;
        if !drained || !self.unparsed.is_empty() {
            return None;
        }
        self.life = Life::Ended(status);
        Some(status)
    }

    /// When to look again even if nothing comes.
    pub(crate) fn due(&self) -> Option<Instant> {
        let settle = match self.life {
            Life::Ending(_, due) => Some(due),
            Life::Alive | Life::Ended(_) => None,
        };
        let reads = self.reads.iter().filter_map(|read| read.due(self.last_output));
        let tick = self.ticked.filter(|(output, _)| *output != self.output).and_then(|(_, at)| at.checked_add(TICK));
        settle.into_iter().chain(self.writes.due()).chain(reads).chain(tick).min()
    }

    /// The count of output bytes, if it changed since the last tick and that is long enough ago.
    pub(crate) fn tick(&mut self, now: Instant) -> Option<u64> {
        let due = match self.ticked {
            None => self.output > 0,
            Some((output, at)) => output != self.output && now.saturating_duration_since(at) >= TICK,
        };
        due.then(|| {
            self.ticked = Some((self.output, now));
            self.output
        })
    }

    /// Reads whose wait is over, with their screens.
    pub(crate) fn answer_reads(&mut self, now: Instant) -> Vec<Screen> {
        if self.reads.is_empty() || !self.unparsed.is_empty() {
            return Vec::new();
        }
        let rows = self.emulator.rows();
        let view = View { rows: &rows, last_output: self.last_output, exited: self.is_closed() };
        let mut over = Vec::new();
        self.reads.retain(|waiting| match waiting.check(view, now) {
            Some(ended) => {
                over.push((waiting.read.clone(), ended));
                false
            }
            None => true,
        });
        over.into_iter().map(|(read, ended)| self.screen(&read, ended)).collect()
    }

    fn screen(&mut self, read: &shoal_proto::broker_ptyd::Read, ended: Ended) -> Screen {
        let now = Seen { rows: self.emulator.rows(), cursor: self.emulator.cursor(), size: self.emulator.size() };
        let changed = self.seen.as_ref() != Some(&now);
        let (start, end) = read.scrollback.unwrap_or((0, 0));
        let index = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let scrollback = self.emulator.scrollback(index(start), index(end));
        let formatted = if read.formatted { self.emulator.formatted() } else { Vec::new() };
        let screen = Screen {
            call: read.call,
            cols: now.size.0,
            rows: List::new(now.rows.clone()).unwrap_or_default(),
            row: now.cursor.row,
            col: now.cursor.col.min(now.size.0.saturating_sub(1)),
            hidden: now.cursor.hidden,
            changed,
            reset: std::mem::take(&mut self.reset),
            exit: match self.life {
                Life::Ended(status) => Some(status),
                Life::Alive | Life::Ending(..) => None,
            },
            waited_ms: u32::try_from(ended.waited.as_millis()).unwrap_or(u32::MAX),
            matched: ended.matched,
            timed_out: ended.timed_out,
            scrollback_len: u32::try_from(self.emulator.scrollback_len()).unwrap_or(u32::MAX),
            scrollback: List::new(scrollback).unwrap_or_default(),
            // A screen of a million styled cells may not fit; the rows say the same without colour.
            formatted: Bytes::new(formatted).unwrap_or_default(),
            output: self.output,
        };
        self.seen = Some(now);
        screen
    }

    /// Two changes of size: full-screen programs repaint on each, others do not care.
    fn make_repaint(&self) {
        let Some(leader) = &self.leader else { return };
        let (cols, rows) = self.emulator.size();
        let other = if rows > 1 { rows.saturating_sub(1) } else { 2 };
        for rows in [other, rows] {
            let _gone: std::io::Result<()> = pty::resize(leader, cols, rows);
        }
    }
}
