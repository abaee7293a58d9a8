//! The terminals of the session and the one loop over edges and leaders.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use shoal_chan::{Chan, ChanError, Received};
use shoal_proto::broker_launcher::{PtyExited, PtyId};
use shoal_proto::broker_ptyd::{self, PtyCall, Read, Refusal, Refused, Sent, Tick, ToBroker};
use shoal_proto::hello::{BUILD, EDGE_VERSION, Hello};
use shoal_proto::launcher_ptyd::{self, ToPtyd};
use shoal_proto::supervisor_launcher::Generation;
use shoal_proto::{Text, Violation};
use shoal_sys::poll::{self, Ready};

use crate::pane::Pane;
use crate::reads::Waiting;

type LauncherEdge = Chan<launcher_ptyd::ToLauncher, ToPtyd>;
type BrokerEdge = Chan<ToBroker, broker_ptyd::ToPtyd>;

/// Terminals of one session; the broker's quota is lower.
const MAX_PANES: usize = 64;
/// Reads of one terminal that may wait at a time.
const MAX_READS: usize = 64;
/// Messages taken from an edge before the terminals have their turn.
const BATCH: usize = 16;
/// Both peers say hello as soon as they have their end.
const HELLO_TIME: Duration = Duration::from_secs(10);

/// The host of a session's terminals.
pub(crate) struct Host {
    launcher: LauncherEdge,
    broker: Option<BrokerEdge>,
    panes: BTreeMap<PtyId, Pane>,
}

impl Host {
    /// Says hello on both edges.
    pub(crate) fn greet(mut launcher: LauncherEdge, broker: BrokerEdge) -> Result<Self, ChanError> {
        launcher.send(&launcher_ptyd::ToLauncher::Hello(hello(0)), &[])?;
        let Received { msg: ToPtyd::Hello(first), .. } = launcher.recv_deadline(HELLO_TIME)? else {
            return Err(Violation::State { what: "a message", state: "awaiting the hello" }.into());
        };
        check(&first)?;
        launcher.set_nonblocking(true);
        let mut host = Self { launcher, broker: None, panes: BTreeMap::new() };
        host.adopt(broker, first.generation);
        Ok(host)
    }

    /// Serves until the launcher ends.
    pub(crate) fn serve(&mut self) -> Result<(), ChanError> {
        loop {
            let busy = self.turn();
            let (launcher, broker, leaders) = self.wait(busy)?;
            if launcher {
                self.on_launcher_ready()?;
            }
            if broker {
                self.on_broker_ready();
            }
            let now = now();
            for id in leaders {
                if let Some(pane) = self.panes.get_mut(&id) {
                    pane.read_output(now);
                }
            }
        }
    }

    /// Lets every terminal parse, write and answer; `true` when some have more to parse.
    fn turn(&mut self) -> bool {
        let mut busy = false;
        let mut news = Vec::new();
        for (id, pane) in &mut self.panes {
            busy |= pane.parse(now);
            let now = now();
            let over = pane.flush(now).into_iter();
            news.extend(over.map(|o| ToBroker::Sent(Sent { call: o.call, sent: o.sent, complete: o.complete })));
            // An end is told after the last output, and before the reads that wait for it.
            if let Some(status) = pane.settle(now) {
                news.push(ToBroker::Exited(PtyExited { id: *id, status }));
            }
            news.extend(pane.answer_reads(now).into_iter().map(ToBroker::Screen));
            news.extend(pane.tick(now).map(|output| ToBroker::Tick(Tick { id: *id, output })));
        }
        news.iter().for_each(|message| self.tell(message));
        busy
    }

    /// Waits for something to do: whether the launcher and the broker have, and which terminals.
    fn wait(&self, busy: bool) -> Result<(bool, bool, Vec<PtyId>), ChanError> {
        let both = |write| Ready { read: true, write, hang_up: false };
        let mut interests = vec![(self.launcher.as_fd(), both(self.launcher.has_queued()))];
        interests.extend(self.broker.as_ref().map(|edge| (edge.as_fd(), both(edge.has_queued()))));
        let mut ids = Vec::new();
        for (id, pane) in &self.panes {
            if let Some((leader, read, write)) = pane.interest() {
                ids.push(*id);
                interests.push((leader, Ready { read, write, hang_up: false }));
            }
        }
        let timeout = if busy { Some(Duration::ZERO) } else { self.timeout() };
        let mut ready = poll::poll(&interests, timeout)?.into_iter();
        let launcher = ready.next().is_some_and(Ready::any);
        let broker = self.broker.is_some() && ready.next().is_some_and(Ready::any);
        let leaders = ids.into_iter().zip(ready).filter(|(_, ready)| ready.read || ready.hang_up);
        Ok((launcher, broker, leaders.map(|(id, _)| id).collect()))
    }

    fn timeout(&self) -> Option<Duration> {
        let due = self.panes.values().filter_map(Pane::due).min()?;
        Some(due.saturating_duration_since(now()))
    }

    fn on_launcher_ready(&mut self) -> Result<(), ChanError> {
        self.launcher.flush()?;
        for _ in 0..BATCH {
            let Some(Received { msg, fds }) = self.launcher.try_recv()? else { break };
            let mut fds = fds.into_iter();
            match msg {
                ToPtyd::Hello(_) => return Err(Violation::State { what: "Hello", state: "up" }.into()),
                ToPtyd::Adopt(Generation { generation }) => {
                    if let Some(end) = fds.next() {
                        self.adopt(Chan::from_fd(end)?, generation);
                    }
                }
                ToPtyd::Leader(leader) => self.on_leader(&leader, fds.next())?,
                ToPtyd::Exited(PtyExited { id, status }) => {
                    if let Some(pane) = self.panes.get_mut(&id) {
                        pane.on_exit(status, now());
                    }
                }
            }
        }
        Ok(())
    }

    fn on_leader(&mut self, leader: &launcher_ptyd::Leader, fd: Option<OwnedFd>) -> Result<(), ChanError> {
        if self.panes.len() >= MAX_PANES && !self.panes.contains_key(&leader.id) {
            return Ok(());
        }
        let pane = self.panes.entry(leader.id).or_insert_with(|| Pane::new(leader.cols, leader.rows));
        match fd {
            Some(fd) => Ok(pane.attach(fd, leader.again)?),
            None => Err(Violation::Field("a leader without its descriptor".into()).into()),
        }
    }

    /// A fresh broker: its edge replaces the old one, and reads of the old broker have nobody to answer to.
    fn adopt(&mut self, mut broker: BrokerEdge, generation: u32) {
        broker.set_nonblocking(true);
        self.broker = Some(broker);
        self.panes.values_mut().for_each(|pane| pane.reads.clear());
        self.tell(&ToBroker::Hello(hello(generation)));
    }

    fn on_broker_ready(&mut self) {
        if let Err(end) = self.take_from_broker() {
            if !matches!(end, ChanError::Closed) {
                crate::note(&end);
            }
            // The launcher brings the next broker's end.
            self.broker = None;
        }
    }

    fn take_from_broker(&mut self) -> Result<(), ChanError> {
        if let Some(broker) = &mut self.broker {
            broker.flush()?;
        }
        for _ in 0..BATCH {
            let Some(broker) = &mut self.broker else { break };
            let Some(Received { msg, .. }) = broker.try_recv()? else { break };
            self.on_broker(msg)?;
        }
        Ok(())
    }

    fn on_broker(&mut self, message: broker_ptyd::ToPtyd) -> Result<(), ChanError> {
        match message {
            broker_ptyd::ToPtyd::Hello(first) => check(&first)?,
            broker_ptyd::ToPtyd::Expect(expect) => {
                if self.panes.len() < MAX_PANES {
                    self.panes.entry(expect.id).or_insert_with(|| Pane::new(expect.cols, expect.rows));
                }
            }
            broker_ptyd::ToPtyd::Send(send) => {
                let refused = match self.panes.get_mut(&send.id) {
                    Some(pane) => pane.send(&send, now()).err(),
                    None => Some(Refusal::Unknown),
                };
                self.refuse(send.call, refused);
            }
            broker_ptyd::ToPtyd::Read(read) => self.read(read),
            broker_ptyd::ToPtyd::Resize(resize) => match self.panes.get_mut(&resize.id) {
                Some(pane) => {
                    pane.resize(resize.cols, resize.rows);
                    self.tell(&ToBroker::Done(PtyCall { call: resize.call, id: resize.id }));
                }
                None => self.refuse(resize.call, Some(Refusal::Unknown)),
            },
            broker_ptyd::ToPtyd::Close(call) => {
                self.close(call);
            }
            broker_ptyd::ToPtyd::CancelRead(PtyCall { call, id }) => {
                if let Some(pane) = self.panes.get_mut(&id) {
                    pane.reads.retain(|waiting| waiting.read.call != call);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, read: Read) {
        let call = read.call;
        let refused = match self.panes.get_mut(&read.id) {
            None => Some(Refusal::Unknown),
            Some(pane) => match Waiting::new(read, now()) {
                Ok(waiting) => {
                    if pane.reads.len() >= MAX_READS {
                        pane.reads.remove(0);
                    }
                    pane.reads.push(waiting);
                    None
                }
                Err(refusal) => Some(refusal),
            },
        };
        self.refuse(call, refused);
    }

    /// Whoever still waits for a closed terminal is told that it is unknown now.
    fn close(&mut self, call: PtyCall) {
        if let Some(mut pane) = self.panes.remove(&call.id) {
            for over in pane.writes.abandon() {
                self.tell(&ToBroker::Sent(Sent { call: over.call, sent: over.sent, complete: over.complete }));
            }
            for waiting in pane.reads {
                self.refuse(waiting.read.call, Some(Refusal::Unknown));
            }
        }
        self.tell(&ToBroker::Done(call));
    }

    fn refuse(&mut self, call: u64, why: Option<Refusal>) {
        if let Some(why) = why {
            self.tell(&ToBroker::Refused(Refused { call, why }));
        }
    }

    /// Tells the broker. One that does not read loses its edge, and with it its terminals' screens stay as they are.
    fn tell(&mut self, message: &ToBroker) {
        let Some(broker) = &mut self.broker else { return };
        if let Err(end) = broker.send(message, &[]) {
            if !matches!(end, ChanError::Closed) {
                crate::note(&end);
            }
            self.broker = None;
        }
    }
}

fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation }
}

fn check(hello: &Hello) -> Result<(), ChanError> {
    if hello.version == EDGE_VERSION { Ok(()) } else { Err(Violation::Version(hello.version).into()) }
}

#[expect(clippy::disallowed_methods, reason = "the one place where this process reads the clock")]
fn now() -> Instant {
    Instant::now()
}
