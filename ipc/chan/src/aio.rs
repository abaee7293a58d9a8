//! The asynchronous ends: the same code under a tokio loop.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_proto::{Class, Message};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::frame::Frame;
use crate::send::SendHalf;
use crate::{Chan, ChanError, Received, Receiver};

/// A copy of the channel's descriptor, registered for one direction.
///
/// The directions are apart because a socket reports room on every message its peer takes: a loop that is registered for
/// both wakes once more for each message it sent.
#[derive(Debug)]
struct Registered(OwnedFd);

impl Registered {
    fn new(fd: BorrowedFd<'_>, interest: Interest) -> io::Result<AsyncFd<Self>> {
        // `register_with_interest`, its successor, is `unsafe` because a type could give another number later; this one
        // owns one descriptor for life, and this crate has no unsafe code.
        #[allow(deprecated)]
        AsyncFd::with_interest(Self(fd.try_clone_to_owned()?), interest)
    }
}

impl AsRawFd for Registered {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Splits `chan` for the current tokio loop. The loop may be current-thread; no task blocks it.
pub fn split<Tx: Message, Rx: Message>(chan: Chan<Tx, Rx>) -> io::Result<(AsyncSender<Tx>, AsyncReceiver<Rx>)> {
    let ready = Registered::new(chan.as_fd(), Interest::READABLE)?;
    let (sender, receiver) = chan.into_halves();
    Ok((AsyncSender { half: Arc::new(Mutex::new(sender)) }, AsyncReceiver { ready, receiver }))
}

/// The sending half; clone it for every task that sends.
#[derive(Debug)]
pub struct AsyncSender<Tx> {
    half: Arc<Mutex<SendHalf<Tx>>>,
}

impl<Tx> Clone for AsyncSender<Tx> {
    fn clone(&self) -> Self {
        Self { half: Arc::clone(&self.half) }
    }
}

impl<Tx: Message> AsyncSender<Tx> {
    /// Sends when there is room. An event that finds none is dropped and counted instead of waiting.
    ///
    /// Nothing is queued here, so a control message waits for no other message; two tasks that send at once are served
    /// in any order. Dropping the future before it is ready sends nothing.
    pub async fn send(&self, message: &Tx, fds: &[BorrowedFd<'_>]) -> Result<(), ChanError> {
        let frame = Frame::encode(message, fds.len())?;
        match self.try_frame(&frame, fds) {
            Err(ChanError::WouldBlock) => {}
            other => return other,
        }
        let room = {
            let half = self.lock();
            Registered::new(half.as_fd(), Interest::WRITABLE)?
        };
        loop {
            match self.try_frame(&frame, fds) {
                // Cleared before the next try: room that comes after the try sets it again.
                Err(ChanError::WouldBlock) => room.writable().await.map_err(ChanError::from)?.clear_ready(),
                other => return other,
            }
        }
    }

    /// Sends now or says [`ChanError::WouldBlock`].
    pub fn try_send(&self, message: &Tx, fds: &[BorrowedFd<'_>]) -> Result<(), ChanError> {
        self.try_frame(&Frame::encode(message, fds.len())?, fds)
    }

    /// Events dropped for lack of room since the start.
    pub fn dropped_events(&self) -> u64 {
        self.lock().dropped_events()
    }

    fn try_frame(&self, frame: &Frame, fds: &[BorrowedFd<'_>]) -> Result<(), ChanError> {
        let mut half = self.lock();
        match half.send_now(frame, fds) {
            Err(ChanError::WouldBlock) if frame.class == Class::Event => {
                half.count_dropped_event();
                Ok(())
            }
            other => other,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SendHalf<Tx>> {
        // A panic in another task's send left at worst an unsent message; the state itself is whole.
        self.half.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct AsyncReceiver<Rx> {
    ready: AsyncFd<Registered>,
    receiver: Receiver<Rx>,
}

impl<Rx: Message> AsyncReceiver<Rx> {
    /// Waits for the next message. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Result<Received<Rx>, ChanError> {
        loop {
            if let Some(received) = self.receiver.try_recv()? {
                return Ok(received);
            }
            // Cleared before the next try: what comes after the try sets it again.
            self.ready.readable().await.map_err(ChanError::from)?.clear_ready();
        }
    }
}
