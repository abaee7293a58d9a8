//! What both edges have in common, and the broker's, whose answers can be many.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use shoal_chan::{Chan, ChanError, Received};
use shoal_proto::{EDGE_VERSION, Hello, Message, Text, Violation};
use shoal_proto::{broker_ptyd, launcher_ptyd};

pub(crate) type LauncherEdge = Chan<launcher_ptyd::ToLauncher, launcher_ptyd::ToPtyd>;
pub(crate) type BrokerChan = Chan<broker_ptyd::ToBroker, broker_ptyd::ToPtyd>;

/// Messages taken from one peer before the terminals are looked at.
pub(crate) const BATCH: usize = 64;

/// Takes an end as an edge whose sends never wait.
pub(crate) fn open<Tx: Message, Rx: Message>(fd: OwnedFd) -> std::io::Result<Chan<Tx, Rx>> {
    let mut edge = Chan::from_fd(fd)?;
    edge.set_nonblocking(true);
    Ok(edge)
}

/// Our hello on an edge of this generation.
pub(crate) fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(shoal_proto::hello::BUILD), generation }
}

/// Both ends come from one build, so another version is refused.
pub(crate) fn check_hello(hello: &Hello) -> Result<(), Violation> {
    if hello.version == EDGE_VERSION { Ok(()) } else { Err(Violation::Version(hello.version)) }
}

/// What a ready edge gave, and why it is of no more use.
pub(crate) struct Taken<Rx> {
    pub(crate) messages: Vec<Received<Rx>>,
    pub(crate) end: Option<ChanError>,
}

impl<Rx> Default for Taken<Rx> {
    fn default() -> Self {
        Self { messages: Vec::new(), end: None }
    }
}

/// Takes what is there, bounded so that no peer starves the terminals.
pub(crate) fn take<Tx: Message, Rx: Message>(edge: &mut Chan<Tx, Rx>) -> Taken<Rx> {
    let mut messages = Vec::new();
    while messages.len() < BATCH {
        match edge.try_recv() {
            Ok(Some(received)) => messages.push(received),
            Ok(None) | Err(ChanError::WouldBlock) => break,
            Err(end) => return Taken { messages, end: Some(end) },
        }
    }
    Taken { messages, end: None }
}

/// The broker's edge with the answers it has not taken.
///
/// Many reads can end at once. What does not fit into the channel waits here, in order, and no further call is taken
/// until it is gone: so there are never more answers than calls were open, and those the broker bounds.
pub(crate) struct BrokerEdge {
    pub(crate) chan: BrokerChan,
    /// We have said hello.
    pub(crate) greeted: bool,
    /// The broker has.
    pub(crate) greeted_us: bool,
    answers: VecDeque<broker_ptyd::ToBroker>,
}

impl BrokerEdge {
    pub(crate) fn new(chan: BrokerChan) -> Self {
        Self { chan, greeted: false, greeted_us: false, answers: VecDeque::new() }
    }

    /// Sends as soon as the broker takes it.
    pub(crate) fn tell(&mut self, message: broker_ptyd::ToBroker) -> Result<(), ChanError> {
        if !self.answers.is_empty() {
            // A tick that comes too late says nothing: the next one has the newer count.
            if !matches!(message, broker_ptyd::ToBroker::Tick(_)) {
                self.answers.push_back(message);
            }
            return Ok(());
        }
        match self.chan.send(&message, &[]) {
            Err(ChanError::WouldBlock) => {
                self.answers.push_back(message);
                Ok(())
            }
            other => other,
        }
    }

    /// Goes on with what waits.
    pub(crate) fn flush(&mut self) -> Result<(), ChanError> {
        self.chan.flush()?;
        while let Some(answer) = self.answers.front() {
            match self.chan.send(answer, &[]) {
                Ok(()) => self.answers.pop_front(),
                Err(ChanError::WouldBlock) => return Ok(()),
                Err(end) => return Err(end),
            };
        }
        Ok(())
    }

    /// Whether calls are taken.
    pub(crate) fn takes_calls(&self) -> bool {
        self.answers.is_empty()
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.chan.has_queued() || !self.answers.is_empty()
    }
}

/// Says why a peer was given up; the end of a peer alone is no news.
pub(crate) fn note_end(edge: &str, error: &ChanError) {
    if !matches!(error, ChanError::Closed) {
        crate::note(&format!("{edge}: {error}"));
    }
}
