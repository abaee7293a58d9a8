//! One end of an edge under the loop: a task that reads, a queue that is written in order.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use shoal_chan::aio::{AsyncReceiver, AsyncSender, split};
use shoal_chan::{Chan, ChanError};
use shoal_proto::{EDGE_VERSION, Hello, Message, Text};
use tokio::sync::mpsc;

use crate::wake::Wake;

/// What came over an edge.
#[derive(Debug)]
pub(crate) enum Arrived<Rx> {
    /// A message and its descriptors, checked against its row.
    Message(Rx, Vec<OwnedFd>),
    /// The peer is gone or broke the protocol; nothing follows.
    Gone(ChanError),
}

/// The sending side of an edge. Dropping it closes the edge.
#[derive(Debug)]
pub(crate) struct Peer<Tx> {
    /// Tells messages of this end from those of an earlier one.
    pub(crate) epoch: u64,
    sender: AsyncSender<Tx>,
    queue: mpsc::UnboundedSender<(Tx, Vec<OwnedFd>)>,
    waiting: Rc<Cell<usize>>,
    tasks: [tokio::task::AbortHandle; 2],
}

/// Messages that may wait for a peer that does not read. Above it the peer counts as hung: what waits is bounded by the
/// budgets of the connections that asked, this only bounds the number.
const MAX_WAITING: usize = 16 * 1024;

impl<Tx: Message + 'static> Peer<Tx> {
    /// Takes an end; what arrives is wrapped by `wake` and sent to the loop.
    pub(crate) fn open<Rx: Message + 'static>(
        fd: OwnedFd,
        epoch: u64,
        wakes: &mpsc::Sender<Wake>,
        wake: impl Fn(u64, Arrived<Rx>) -> Wake + 'static,
    ) -> io::Result<Self> {
        Self::over(Chan::from_fd(fd)?, epoch, wakes, wake)
    }

    /// The same for a channel whose first messages were read already.
    pub(crate) fn over<Rx: Message + 'static>(
        chan: Chan<Tx, Rx>,
        epoch: u64,
        wakes: &mpsc::Sender<Wake>,
        wake: impl Fn(u64, Arrived<Rx>) -> Wake + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = split(chan)?;
        let (queue, queued) = mpsc::unbounded_channel();
        let waiting = Rc::new(Cell::new(0));
        let reader = tokio::task::spawn_local(read(receiver, epoch, wakes.clone(), wake));
        let writer = tokio::task::spawn_local(write(sender.clone(), queued, waiting.clone()));
        Ok(Self { epoch, sender, queue, waiting, tasks: [reader.abort_handle(), writer.abort_handle()] })
    }

    /// Sends in order. A peer that is gone is noticed by the reader, so nothing is lost in silence.
    pub(crate) fn send(&self, message: Tx) {
        self.send_with(message, Vec::new());
    }

    /// Sends with descriptors.
    pub(crate) fn send_with(&self, message: Tx, fds: Vec<OwnedFd>) {
        if self.waiting.get() == 0 {
            let borrowed: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
            match self.sender.try_send(&message, &borrowed) {
                Err(ChanError::WouldBlock) => {}
                Ok(()) | Err(ChanError::Closed) => return,
                Err(error) => return crate::log::line(format_args!("{} {}: {error}", Tx::EDGE, message.name())),
            }
        }
        if self.waiting.get() >= MAX_WAITING {
            return crate::log::line(format_args!("{}: the peer does not read; {} dropped", Tx::EDGE, message.name()));
        }
        self.waiting.set(self.waiting.get() + 1);
        // The writer ends only with the edge.
        self.queue.send((message, fds)).ok();
    }
}

impl<Tx> Drop for Peer<Tx> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn read<Rx: Message>(
    mut receiver: AsyncReceiver<Rx>,
    epoch: u64,
    wakes: mpsc::Sender<Wake>,
    wake: impl Fn(u64, Arrived<Rx>) -> Wake,
) {
    loop {
        let arrived = match receiver.recv().await {
            Ok(received) => Arrived::Message(received.msg, received.fds),
            Err(error) => Arrived::Gone(error),
        };
        let last = matches!(arrived, Arrived::Gone(_));
        if wakes.send(wake(epoch, arrived)).await.is_err() || last {
            return;
        }
    }
}

async fn write<Tx: Message>(
    sender: AsyncSender<Tx>,
    mut queued: mpsc::UnboundedReceiver<(Tx, Vec<OwnedFd>)>,
    waiting: Rc<Cell<usize>>,
) {
    while let Some((message, fds)) = queued.recv().await {
        let borrowed: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
        match sender.send(&message, &borrowed).await {
            Ok(()) => {}
            Err(ChanError::Closed) => return,
            Err(error) => crate::log::line(format_args!("{} {}: {error}", Tx::EDGE, message.name())),
        }
        waiting.set(waiting.get().saturating_sub(1));
    }
}

/// The broker's hello.
pub(crate) fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(shoal_wire::BUILD), generation }
}
