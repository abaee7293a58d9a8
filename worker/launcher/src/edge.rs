//! What all edges of the launcher have in common.

use std::os::fd::{BorrowedFd, OwnedFd};

use shoal_chan::{Chan, ChanError, Received};
use shoal_proto::{EDGE_VERSION, Hello, Message, Text, Violation};

/// Messages taken from one peer before the others are looked at.
const BATCH: usize = 16;

/// What a ready edge gave.
pub(crate) struct Taken<Rx> {
    /// Messages in order.
    pub(crate) messages: Vec<Received<Rx>>,
    /// Why the edge is of no more use.
    pub(crate) end: Option<ChanError>,
}

/// Flushes what is queued and takes what is there, bounded so that no peer starves the others.
pub(crate) fn take<Tx: Message, Rx: Message>(edge: &mut Chan<Tx, Rx>) -> Taken<Rx> {
    let mut messages = Vec::new();
    if edge.has_queued()
        && let Err(end) = edge.flush()
    {
        return Taken { messages, end: Some(end) };
    }
    while messages.len() < BATCH {
        match edge.try_recv() {
            Ok(Some(received)) => messages.push(received),
            Ok(None) | Err(ChanError::WouldBlock) => break,
            Err(end) => return Taken { messages, end: Some(end) },
        }
    }
    Taken { messages, end: None }
}

/// Sends if the edge is there; an edge that does not take it is dropped and its peer is `false`.
#[must_use]
pub(crate) fn tell<Tx: Message, Rx: Message>(
    edge: &mut Option<Chan<Tx, Rx>>,
    message: &Tx,
    fds: &[BorrowedFd<'_>],
) -> bool {
    let Some(open) = edge else { return true };
    match open.send(message, fds) {
        Ok(()) => true,
        Err(error) => {
            note_end(Tx::EDGE, &error);
            *edge = None;
            false
        }
    }
}

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

/// A hello of another version is refused: both ends come from one build.
pub(crate) fn check_hello(hello: &Hello) -> Result<(), Violation> {
    if hello.version == EDGE_VERSION { Ok(()) } else { Err(Violation::Version(hello.version)) }
}

/// Says on stderr why a peer was given up; the end of a peer alone is no news.
#[expect(clippy::print_stderr, reason = "the launcher's only log")]
pub(crate) fn note_end(edge: &str, error: &ChanError) {
    if !matches!(error, ChanError::Closed) {
        eprintln!("shoal-launcher: {edge}: {error}");
    }
}
