//! Both directions of one end of an edge.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use shoal_proto::Message;
use shoal_sys::socket::{self, Carrier};

use crate::send::SendHalf;
use crate::{ChanError, Received, Receiver, Sender};

/// One end of an edge: sends `Tx`, receives `Rx`.
#[derive(Debug)]
pub struct Chan<Tx, Rx> {
    sender: SendHalf<Tx>,
    receiver: Receiver<Rx>,
}

/// The two ends of an edge over the carrier of this system.
pub type Pair<A, B> = (Chan<A, B>, Chan<B, A>);

/// Makes the two ends of an edge: the first sends `A`, the second sends `B`.
pub fn pair<A: Message, B: Message>() -> io::Result<Pair<A, B>> {
    pair_over(Carrier::NATIVE)
}

/// Makes the two ends of an edge over a given carrier.
pub fn pair_over<A: Message, B: Message>(carrier: Carrier) -> io::Result<Pair<A, B>> {
    let (a, b) = socket::pair(carrier)?;
    Ok((Chan::from_fd(a)?, Chan::from_fd(b)?))
}

impl<Tx: Message, Rx: Message> Chan<Tx, Rx> {
    /// Takes an end made elsewhere; the carrier is read from the socket. It blocks until told otherwise.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        let carrier = socket::carrier(&fd)?;
        let fd = Arc::new(fd);
        Ok(Self { sender: SendHalf::new(Arc::clone(&fd), carrier), receiver: Receiver::new(fd, carrier) })
    }

    /// Whether `send` queues instead of waiting (bounds in the crate documentation). Receiving is not affected: every
    /// receiving method says itself whether it waits.
    pub fn set_nonblocking(&mut self, on: bool) {
        self.sender.nonblocking = on;
    }

    /// Sends a message with the descriptors its row declares.
    pub fn send(&mut self, message: &Tx, fds: &[BorrowedFd<'_>]) -> Result<(), ChanError> {
        self.sender.send(message, fds)
    }

    /// Sends what a non-blocking `send` queued; `true` when nothing is left.
    pub fn flush(&mut self) -> Result<bool, ChanError> {
        self.sender.flush()
    }

    /// Whether the owner must wait for room and [`Chan::flush`].
    pub fn has_queued(&self) -> bool {
        self.sender.has_queued()
    }

    /// Events dropped for lack of room since the start.
    pub fn dropped_events(&self) -> u64 {
        self.sender.dropped_events()
    }

    /// Waits for the next message.
    pub fn recv(&mut self) -> Result<Received<Rx>, ChanError> {
        self.receiver.recv()
    }

    /// The next message if it is there.
    pub fn try_recv(&mut self) -> Result<Option<Received<Rx>>, ChanError> {
        self.receiver.try_recv()
    }

    /// Waits for the next message, at most `limit` ([`ChanError::TimedOut`]).
    pub fn recv_deadline(&mut self, limit: Duration) -> Result<Received<Rx>, ChanError> {
        self.receiver.recv_deadline(limit)
    }

    /// Splits the end for a process with threads: the sender can be cloned, the receiver has one owner.
    pub fn split(self) -> (Sender<Tx>, Receiver<Rx>) {
        (Sender::new(self.sender), self.receiver)
    }

    #[cfg(feature = "aio")]
    pub(crate) fn into_halves(self) -> (SendHalf<Tx>, Receiver<Rx>) {
        (self.sender, self.receiver)
    }
}

impl<Tx, Rx: Message> AsFd for Chan<Tx, Rx> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}
