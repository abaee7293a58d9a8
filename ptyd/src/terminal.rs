//! One terminal: its leader, its screen, what waits to be typed and who waits for it.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use shoal_proto::broker_launcher::{PtyExited, PtyId};
use shoal_proto::broker_ptyd::{Hosted, Read, Refusal, Refused, Send, Sent, Tick, ToBroker};
use shoal_proto::hello::ExitStatus;
use shoal_proto::launcher_ptyd::Leader;
use shoal_sys::poll::Ready;
use shoal_sys::pty::{self, MAX_LINE};

use crate::canonical::OpenLine;
use crate::host::now;
use crate::input;
use crate::pane::{Pane, Size};
use crate::snapshot::Snapshot;
use crate::ticks::Ticks;
use crate::waits::{Ended, Facts, Waiting, Want};
use crate::writes::Writes;

/// Output taken from one terminal before the others are looked at.
const MAX_READ: usize = 64 * 1024;
/// Programs that outlive the terminal's own program may write on; its end is told after this at the latest.
const DRAIN: Duration = Duration::from_secs(2);
/// Readers of one terminal; the broker's limits on open calls lie below.
const MAX_WAITS: usize = 256;
/// Sends that come before the leader, which is on its way.
const MAX_EARLY: usize = 64;
/// How long they wait for it.
const EARLY: Duration = Duration::from_secs(4);

/// One terminal.
pub(crate) struct Terminal {
    id: PtyId,
    pub(crate) pane: Pane,
    leader: Option<File>,
    /// Pid of the program as the launcher told it.
    pid: i32,
    /// All followers were closed when it was last tried: there is nothing to poll for until somebody calls. A process
    /// without an open follower can open its terminal again.
    hung_up: bool,
    end: Option<End>,
    writes: Writes,
    line: OpenLine,
    early: Vec<(Option<Instant>, Send)>,
    pub(crate) waits: Vec<Waiting>,
    ticks: Ticks,
    /// Bytes of output so far.
    pub(crate) output: u64,
    last_output: Option<Instant>,
    /// The screen of the previous read.
    pub(crate) seen: Option<u64>,
}

/// The end of the program.
#[derive(Clone, Copy, Debug)]
struct End {
    status: ExitStatus,
    at: Instant,
    /// Its last output is on the screen.
    drained: bool,
}

/// Whether somebody is about to look at the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Now,
    Later,
}

/// How far reading the leader came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// There is nothing more now.
    All,
    /// There may be more.
    Part,
}

impl Terminal {
    pub(crate) fn new(id: PtyId, size: Size) -> Self {
        Self {
            id,
            pane: Pane::new(size),
            leader: None,
            pid: 0,
            hung_up: false,
            end: None,
            writes: Writes::default(),
            line: OpenLine::default(),
            early: Vec::new(),
            waits: Vec::new(),
            ticks: Ticks::default(),
            output: 0,
            last_output: None,
            seen: None,
        }
    }

    /// Takes the leader. After another ptyd the screen is blank and the program is made to repaint.
    pub(crate) fn take_leader(
        &mut self,
        order: Leader,
        leader: OwnedFd,
        out: &mut Vec<ToBroker>,
    ) -> std::io::Result<()> {
        shoal_sys::fd::set_nonblocking(&leader, true)?;
        if order.again {
            let (cols, rows) = pty::size(&leader)?;
            self.pane = Pane::new(Size::clamped(cols, rows));
            self.pane.rebuild();
        } else if self.pane.size() != Size::clamped(order.cols, order.rows) {
            let size = self.pane.size();
            pty::resize(&leader, size.cols.get(), size.rows.get())?;
        }
        self.leader = Some(File::from(leader));
        self.pid = order.pid;
        self.hung_up = false;
        for (_due, send) in std::mem::take(&mut self.early) {
            self.send(send, now(), out);
        }
        Ok(())
    }

    /// The program ended. Its output may not have been read.
    pub(crate) fn program_ended(&mut self, status: ExitStatus, now: Instant) {
        if self.end.is_none() {
            self.end = Some(End { status, at: now, drained: false });
        }
    }

    /// What a broker that comes later is told; nothing while there is no program.
    pub(crate) fn hosted(&self) -> Option<Hosted> {
        let size = self.pane.size();
        let hosted = Hosted { id: self.id, pid: self.pid, cols: size.cols.get(), rows: size.rows.get() };
        self.leader.as_ref().map(|_| hosted)
    }

    /// How the program ended, once all it wrote is on the screen.
    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        self.end.filter(|end| end.drained).map(|end| end.status)
    }

    /// What to poll for, if anything.
    pub(crate) fn interest(&self) -> Option<(BorrowedFd<'_>, Ready)> {
        let leader = self.leader.as_ref().filter(|_| !self.hung_up)?;
        let ready = Ready { read: self.pane.has_room(), write: !self.writes.is_empty(), hang_up: false };
        (ready.read || ready.write).then(|| (leader.as_fd(), ready))
    }

    /// Whether there is work without anything to poll for.
    pub(crate) fn is_busy(&self) -> bool {
        self.parses_now() || self.end.is_some_and(|end| !end.drained)
    }

    /// Whether output is parsed as it comes: somebody waits for the screen, or the output itself demands it. Else it is
    /// parsed when somebody looks.
    fn parses_now(&self) -> bool {
        !self.pane.is_idle() && (self.pane.must_parse() || !self.waits.is_empty() || self.end.is_some())
    }

    /// When something is due without output.
    pub(crate) fn due(&self) -> Option<Instant> {
        let waits = self.waits.iter().filter_map(|waiting| waiting.due(self.last_output));
        let early = self.early.iter().filter_map(|(due, _)| *due);
        waits.chain(early).chain(self.writes.due()).chain(self.ticks.due()).min()
    }

    /// Reads, parses for at most `slice`, writes, and answers whoever waits for what came.
    pub(crate) fn pump(&mut self, buffer: &mut [u8], slice: Duration, look: Look, out: &mut Vec<ToBroker>) {
        let start = now();
        let taken = self.read_output(buffer, start);
        if look == Look::Now || self.parses_now() {
            self.pane.parse(&mut || now().saturating_duration_since(start) >= slice);
        }
        if self.pane.take_wants_repaint() {
            self.make_repaint();
        }
        let answers = self.pane.take_answers();
        self.writes.answer(&answers);
        self.write(out);
        self.settle(taken, now(), out);
    }

    fn read_output(&mut self, buffer: &mut [u8], now: Instant) -> Taken {
        let Some(leader) = self.leader.as_mut().filter(|_| !self.hung_up) else { return Taken::All };
        let mut total = 0_usize;
        while total < MAX_READ && self.pane.has_room() {
            match leader.read(buffer) {
                Ok(0) => {
                    self.hung_up = true;
                    return Taken::All;
                }
                Ok(count) => {
                    self.pane.push(buffer.get(..count).unwrap_or_default());
                    total = total.saturating_add(count);
                    self.output = self.output.saturating_add(u64::try_from(count).unwrap_or_default());
                    self.last_output = Some(now);
                    self.ticks.changed();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Taken::All,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // EIO: nobody has the follower open.
                Err(_closed) => {
                    self.hung_up = true;
                    return Taken::All;
                }
            }
        }
        Taken::Part
    }

    /// Two changes of size, so that the program gets SIGWINCH and draws everything, whatever it compares.
    fn make_repaint(&self) {
        let Some(leader) = &self.leader else { return };
        let (cols, rows) = (self.pane.size().cols.get(), self.pane.size().rows.get());
        let other = if rows > 1 { rows.saturating_sub(1) } else { rows.saturating_add(1) };
        for rows in [other, rows] {
            if let Err(error) = pty::resize(leader, cols, rows) {
                crate::note(&format!("terminal {}: repaint: {error}", self.id));
            }
        }
    }

    /// Writes what the terminal takes now; never waits.
    fn write(&mut self, out: &mut Vec<ToBroker>) {
        let Some(leader) = self.leader.as_mut() else { return };
        while !self.writes.is_empty() {
            match leader.write(self.writes.next()) {
                Ok(0) => return,
                Ok(count) => out.extend(self.writes.wrote(count).map(ToBroker::Sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_closed) => return out.extend(self.writes.close().into_iter().map(ToBroker::Sent)),
            }
        }
    }

    /// What follows from output and time.
    fn settle(&mut self, taken: Taken, now: Instant, out: &mut Vec<ToBroker>) {
        out.extend(self.writes.expire(now).into_iter().map(ToBroker::Sent));
        self.expire_early(now, out);
        if let Some(end) = self.end.as_mut().filter(|end| !end.drained) {
            let late = now.saturating_duration_since(end.at) >= DRAIN;
            end.drained = late || (taken == Taken::All && self.pane.is_idle());
            if end.drained {
                out.push(ToBroker::Exited(PtyExited { id: self.id, status: end.status }));
                out.extend(self.writes.close().into_iter().map(ToBroker::Sent));
            }
        }
        if self.ticks.take(now) {
            out.push(ToBroker::Tick(Tick { id: self.id, output: self.output }));
        }
        self.judge_waits(now, out);
    }

    fn expire_early(&mut self, now: Instant, out: &mut Vec<ToBroker>) {
        let over = |due: &Option<Instant>| due.is_none_or(|due| due <= now);
        for (_due, send) in self.early.extract_if(.., |(due, _)| over(due)) {
            out.push(ToBroker::Sent(Sent { call: send.call, sent: 0, complete: false }));
        }
    }

    /// Answers the reads whose wait has ended.
    fn judge_waits(&mut self, now: Instant, out: &mut Vec<ToBroker>) {
        if self.waits.is_empty() {
            return;
        }
        let looks = self.waits.iter().any(Waiting::looks_at_screen);
        let snapshot = looks.then(|| self.pane.snapshot());
        let screen = snapshot.as_ref().map(Snapshot::text).unwrap_or_default();
        let to_cursor = snapshot.as_ref().and_then(Snapshot::text_to_cursor);
        let to_cursor = to_cursor.as_deref();
        let facts = Facts { screen: &screen, to_cursor, last_output: self.last_output, exited: self.exit().is_some() };
        let mut ended = Vec::new();
        self.waits.retain(|waiting| match waiting.judge(facts, now) {
            Some(end) => {
                ended.push((waiting.call, waiting.want, now.saturating_duration_since(waiting.since), end));
                false
            }
            None => true,
        });
        for (call, want, waited, end) in ended {
            out.push(ToBroker::Screen(self.screen(call, want, waited, end)));
        }
    }

    /// Types the input of a call, or refuses it whole.
    pub(crate) fn send(&mut self, send: Send, now: Instant, out: &mut Vec<ToBroker>) {
        let call = send.call;
        self.hung_up = false;
        if self.leader.is_none() && self.end.is_none() {
            if self.early.len() < MAX_EARLY {
                self.early.push((now.checked_add(EARLY), send));
            } else {
                out.push(ToBroker::Sent(Sent { call, sent: 0, complete: false }));
            }
            return;
        }
        match self.checked(&send) {
            Ok(bytes) => {
                out.extend(self.writes.push(call, bytes, now).map(ToBroker::Sent));
                self.write(out);
            }
            Err(why) => out.push(ToBroker::Refused(Refused { call, why })),
        }
    }

    fn checked(&mut self, send: &Send) -> Result<Vec<u8>, Refusal> {
        let leader = self.leader.as_ref().filter(|_| self.end.is_none()).ok_or(Refusal::Closed)?;
        let bytes = input::encode(send.input.as_slice(), send.paste, self.pane.modes())?;
        let mode = pty::line_mode(leader).map_err(|_closed| Refusal::Closed)?;
        let too_long = |_| Refusal::LineTooLong { max: u32::try_from(MAX_LINE).unwrap_or(u32::MAX) };
        self.line = self.line.after(&bytes, &mode, MAX_LINE).map_err(too_long)?;
        Ok(bytes)
    }

    /// Answers with the screen, now or when the wait has ended.
    pub(crate) fn read(&mut self, read: Read, now: Instant, out: &mut Vec<ToBroker>) {
        let (call, want) = (read.call, Want::of(&read));
        self.hung_up = false;
        let Some(wait) = read.wait else {
            let screen = self.screen(call, want, Duration::ZERO, Ended::default());
            return out.push(ToBroker::Screen(screen));
        };
        if self.waits.len() >= MAX_WAITS {
            let end = Ended { matched: None, timed_out: true };
            return out.push(ToBroker::Screen(self.screen(call, want, Duration::ZERO, end)));
        }
        match Waiting::new(call, want, wait, now) {
            Ok(waiting) => {
                self.waits.push(waiting);
                self.judge_waits(now, out);
            }
            Err(why) => out.push(ToBroker::Refused(Refused { call, why })),
        }
    }

    /// Resizes emulator and window; the program gets SIGWINCH.
    pub(crate) fn resize(&mut self, size: Size) -> std::io::Result<()> {
        self.pane.resize(size);
        self.seen = None;
        match &self.leader {
            Some(leader) => pty::resize(leader, size.cols.get(), size.rows.get()),
            None => Ok(()),
        }
    }

    /// Forgets the terminal: whoever waits for it is told that it is gone.
    pub(crate) fn close(mut self, out: &mut Vec<ToBroker>) {
        out.extend(self.writes.close().into_iter().map(ToBroker::Sent));
        let early = self.early.iter().map(|(_, send)| send.call);
        let calls = self.waits.iter().map(|waiting| waiting.call).chain(early);
        out.extend(calls.map(|call| ToBroker::Refused(Refused { call, why: Refusal::Unknown })));
    }

    /// The broker that made the open calls is gone.
    pub(crate) fn forget_callers(&mut self) {
        self.waits.clear();
        self.early.clear();
        self.writes.forget_callers();
    }
}
