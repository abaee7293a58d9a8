//! The sending half.

use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shoal_proto::Message;
use shoal_sys::poll::{Ready, wait};
use shoal_sys::socket::{self, Carrier};

use crate::ChanError;
use crate::frame::{self, Frame};
use crate::outbox::{Outbox, Placed};

/// A stream that took a part of a message must take the rest: a peer that does not within this is dead.
const STREAM_REST: Duration = Duration::from_secs(5);

/// State of the sending direction.
#[derive(Debug)]
pub(crate) struct SendHalf<Tx> {
    fd: Arc<OwnedFd>,
    carrier: Carrier,
    seq: u32,
    pub(crate) nonblocking: bool,
    outbox: Outbox,
    dead: bool,
    sends: PhantomData<fn(Tx)>,
}

impl<Tx: Message> SendHalf<Tx> {
    pub(crate) fn new(fd: Arc<OwnedFd>, carrier: Carrier) -> Self {
        Self { fd, carrier, seq: 0, nonblocking: false, outbox: Outbox::default(), dead: false, sends: PhantomData }
    }

    /// Sends, or queues in non-blocking mode; see the bounds in the crate documentation.
    pub(crate) fn send(&mut self, message: &Tx, fds: &[BorrowedFd<'_>]) -> Result<(), ChanError> {
        let frame = Frame::encode(message, fds.len())?;
        if !self.nonblocking {
            return self.transmit(&frame, fds, true);
        }
        if self.flush()? {
            match self.transmit(&frame, fds, false) {
                Err(ChanError::WouldBlock) => {}
                other => return other,
            }
        }
        match self.outbox.room(frame.class, frame.len) {
            Placed::Queued => {
                let fds = frame::keep(fds)?;
                self.outbox.push((frame, fds));
                Ok(())
            }
            Placed::Dropped => Ok(()),
            Placed::Full => Err(ChanError::WouldBlock),
        }
    }

    /// Sends now or says `WouldBlock`; queues nothing.
    #[cfg(feature = "aio")]
    pub(crate) fn send_now(&mut self, frame: &Frame, fds: &[BorrowedFd<'_>]) -> Result<(), ChanError> {
        self.transmit(frame, fds, false)
    }

    /// Sends what is queued; `true` when nothing is left.
    pub(crate) fn flush(&mut self) -> Result<bool, ChanError> {
        let mut outbox = std::mem::take(&mut self.outbox);
        let result = loop {
            let Some((frame, fds)) = outbox.next() else { break Ok(true) };
            let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
            match self.transmit(frame, &fds, false) {
                Ok(()) => outbox.sent(),
                Err(ChanError::WouldBlock) => break Ok(false),
                Err(e) => break Err(e),
            }
        };
        self.outbox = outbox;
        result
    }

    #[cfg(feature = "aio")]
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.outbox.is_empty()
    }

    pub(crate) fn dropped_events(&self) -> u64 {
        self.outbox.dropped_events
    }

    #[cfg(feature = "aio")]
    pub(crate) fn count_dropped_event(&mut self) {
        self.outbox.dropped_events += 1;
    }

    fn transmit(&mut self, frame: &Frame, fds: &[BorrowedFd<'_>], wait: bool) -> Result<(), ChanError> {
        if self.dead {
            return Err(ChanError::Closed);
        }
        let header = frame.header(self.seq, fds.len());
        let parts = [IoSlice::new(&header), IoSlice::new(frame.inline())];
        let sent = match socket::send(&self.fd, &parts, &frame.all_fds(fds), wait) {
            Ok(sent) => sent,
            Err(e) => return Err(self.fail(e)),
        };
        if self.carrier == Carrier::Stream
            && let Err(e) = self.send_rest(&header, frame.inline(), sent)
        {
            return Err(self.fail(e));
        }
        self.seq = self.seq.wrapping_add(1);
        Ok(())
    }

    /// The part of a message that the stream did not take at once.
    fn send_rest(&self, header: &[u8], body: &[u8], mut sent: usize) -> io::Result<()> {
        let total = header.len() + body.len();
        while sent < total {
            let head = header.get(sent..).unwrap_or_default();
            let rest = body.get(sent.saturating_sub(header.len())..).unwrap_or_default();
            match socket::send(&self.fd, &[IoSlice::new(head), IoSlice::new(rest)], &[], false) {
                Ok(n) => sent += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if !wait(self.fd.as_fd(), Ready::WRITE, Some(STREAM_REST))? {
                        return Err(io::ErrorKind::BrokenPipe.into());
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn fail(&mut self, error: io::Error) -> ChanError {
        let error = ChanError::from(error);
        if matches!(error, ChanError::Closed) {
            self.dead = true;
        }
        error
    }
}

/// The sending half of a split channel: clone it for every thread that sends.
#[derive(Debug)]
pub struct Sender<Tx> {
    half: Arc<Mutex<SendHalf<Tx>>>,
}

impl<Tx> Clone for Sender<Tx> {
    fn clone(&self) -> Self {
        Self { half: Arc::clone(&self.half) }
    }
}

impl<Tx: Message> Sender<Tx> {
    pub(crate) fn new(half: SendHalf<Tx>) -> Self {
        Self { half: Arc::new(Mutex::new(half)) }
    }

    /// Sends a message with the descriptors its row declares; blocks unless the channel is non-blocking.
    pub fn send(&self, message: &Tx, fds: &[BorrowedFd<'_>]) -> Result<(), ChanError> {
        self.lock().send(message, fds)
    }

    /// Events dropped for lack of room since the start.
    pub fn dropped_events(&self) -> u64 {
        self.lock().dropped_events()
    }

    /// Ends the channel for both sides: a receiver blocked on either end sees [`ChanError::Closed`].
    pub fn shutdown(&self) -> Result<(), ChanError> {
        let fd = Arc::clone(&self.lock().fd);
        Ok(socket::shutdown(&*fd)?)
    }

    fn lock(&self) -> MutexGuard<'_, SendHalf<Tx>> {
        // A panic in another thread's send left at worst an unsent message; the state itself is whole.
        self.half.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
