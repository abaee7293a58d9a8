//! The receiving half.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_proto::header::{FLAG_MEMFD, HEADER_LEN, MAX_INLINE};
use shoal_proto::{Header, Message, Violation};
use shoal_sys::poll::{Ready, wait};
use shoal_sys::socket::{self, Carrier};

use crate::{ChanError, fds};

/// A message with its descriptors.
#[derive(Debug)]
pub struct Received<Rx> {
    /// The message.
    pub msg: Rx,
    /// Its descriptors, number and kinds as its row declares, close-on-exec.
    pub fds: Vec<OwnedFd>,
}

/// The receiving half of a channel.
#[derive(Debug)]
pub struct Receiver<Rx> {
    fd: Arc<OwnedFd>,
    carrier: Carrier,
    seq: u32,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that hold the message in progress; only a stream leaves one behind.
    filled: usize,
    /// Descriptors of the message in progress.
    fds: Vec<OwnedFd>,
    dead: bool,
    receives: PhantomData<fn() -> Rx>,
}

impl<Rx: Message> Receiver<Rx> {
    pub(crate) fn new(fd: Arc<OwnedFd>, carrier: Carrier) -> Self {
        Self {
            fd,
            carrier,
            seq: 0,
            buffer: vec![0; HEADER_LEN + MAX_INLINE],
            filled: 0,
            fds: Vec::new(),
            dead: false,
            receives: PhantomData,
        }
    }

    /// Waits for the next message.
    pub fn recv(&mut self) -> Result<Received<Rx>, ChanError> {
        self.next(true)
    }

    /// The next message if it is there.
    pub fn try_recv(&mut self) -> Result<Option<Received<Rx>>, ChanError> {
        match self.next(false) {
            Ok(received) => Ok(Some(received)),
            Err(ChanError::WouldBlock) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Waits for the next message, at most `limit`.
    pub fn recv_deadline(&mut self, limit: Duration) -> Result<Received<Rx>, ChanError> {
        // A deadline of a wait is the one thing here that needs a clock.
        #[allow(clippy::disallowed_methods)]
        let now = Instant::now;
        let end = now() + limit;
        loop {
            match self.next(false) {
                Err(ChanError::WouldBlock) => {}
                other => return other,
            }
            let left = end.saturating_duration_since(now());
            if left.is_zero() || !wait(self.fd.as_fd(), Ready::READ, Some(left))? {
                return Err(ChanError::TimedOut);
            }
        }
    }

    fn next(&mut self, wait: bool) -> Result<Received<Rx>, ChanError> {
        if self.dead {
            return Err(ChanError::Closed);
        }
        let result = match self.carrier {
            Carrier::Packet => self.packet(wait),
            Carrier::Stream => self.stream(wait),
        };
        if matches!(result, Err(ChanError::Closed | ChanError::Violation(_))) {
            self.dead = true;
            self.fds.clear();
        }
        result
    }

    fn packet(&mut self, wait: bool) -> Result<Received<Rx>, ChanError> {
        let got = socket::recv(&self.fd, &mut self.buffer, wait)?;
        // A message without bytes cannot be told from the end; senders never make one.
        if got.len == 0 {
            return Err(ChanError::Closed);
        }
        if got.truncated {
            return Err(Violation::Truncated.into());
        }
        self.decode(got.len, got.fds)
    }

    fn stream(&mut self, wait: bool) -> Result<Received<Rx>, ChanError> {
        loop {
            let end = self.stream_end()?;
            if self.filled == end {
                let (len, fds) = (self.filled, std::mem::take(&mut self.fds));
                self.filled = 0;
                return self.decode(len, fds);
            }
            let room = self.buffer.get_mut(self.filled..end).ok_or(Violation::Truncated)?;
            let got = socket::recv(&self.fd, room, wait)?;
            if got.len == 0 {
                return Err(ChanError::Closed);
            }
            // Descriptors go with the first byte of a message.
            if got.truncated || (!got.fds.is_empty() && self.filled != 0) {
                return Err(Violation::Truncated.into());
            }
            self.fds.extend(got.fds);
            self.filled += got.len;
        }
    }

    /// Where the message in progress ends, as far as that is known: never beyond it, so that descriptors of the next
    /// message stay with it.
    fn stream_end(&self) -> Result<usize, Violation> {
        if self.filled < HEADER_LEN {
            return Ok(HEADER_LEN);
        }
        let (header, _rest) = Header::decode(self.buffer.get(..HEADER_LEN).unwrap_or_default())?;
        let inline = if header.flags & FLAG_MEMFD == 0 { usize::try_from(header.len).unwrap_or(usize::MAX) } else { 0 };
        if inline > MAX_INLINE {
            return Err(Violation::Length { said: inline, got: self.filled.saturating_sub(HEADER_LEN) });
        }
        Ok(HEADER_LEN.saturating_add(inline))
    }

    /// Everything that is checked, in the order of what the checks cost.
    fn decode(&mut self, len: usize, mut fds: Vec<OwnedFd>) -> Result<Received<Rx>, ChanError> {
        let bytes = self.buffer.get(..len).unwrap_or_default();
        let (header, inline) = Header::decode(bytes)?;
        header.check_len(inline.len())?;
        if header.seq != self.seq {
            return Err(Violation::Sequence { got: header.seq, expected: self.seq }.into());
        }
        let rule = Rx::fd_rule(header.kind)?;
        let said = usize::from(header.nfds);
        if fds.len() != said {
            return Err(Violation::Descriptors { kind: header.kind, got: fds.len(), min: said, max: said }.into());
        }
        let memfd = if header.flags & FLAG_MEMFD == 0 {
            None
        } else {
            let none = Violation::Descriptors { kind: header.kind, got: 0, min: 1, max: 1 };
            Some(fds.pop().ok_or(none)?)
        };
        fds::check(header.kind, rule, &fds)?;
        let msg = match memfd {
            None => Rx::decode_body(header.kind, inline)?,
            Some(memfd) => Rx::decode_body(header.kind, &read_body(&header, &memfd)?)?,
        };
        self.seq = self.seq.wrapping_add(1);
        Ok(Received { msg, fds })
    }
}

/// The body in a memfd: sealed, and as long as the header says (which is at most the cap).
fn read_body(header: &Header, memfd: &OwnedFd) -> Result<Vec<u8>, ChanError> {
    let said = usize::try_from(header.len).unwrap_or(usize::MAX);
    let body = match shoal_sys::memfd::read_sealed(memfd, said) {
        Ok(body) => body,
        Err(e) if matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge) => {
            return Err(Violation::Body(e.to_string()).into());
        }
        Err(e) => return Err(ChanError::Io(e)),
    };
    if body.len() != said {
        return Err(Violation::Length { said, got: body.len() }.into());
    }
    Ok(body)
}

impl<Rx> AsFd for Receiver<Rx> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
