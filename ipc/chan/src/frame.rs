//! A message ready to be sent, whatever the carrier.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use shoal_proto::header::{FLAG_MEMFD, MAX_FDS, MAX_INLINE};
use shoal_proto::{Class, Header, Message, Violation};

use crate::ChanError;

/// An encoded message. Its sequence number is given when it leaves, because control overtakes what is queued.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) class: Class,
    /// Bytes of the body, wherever they are.
    pub(crate) len: u32,
    kind: u8,
    /// The body, empty when it is in `memfd`.
    inline: Vec<u8>,
    memfd: Option<OwnedFd>,
}

impl Frame {
    /// Encodes `message`, which goes with `fds` descriptors.
    pub(crate) fn encode<M: Message>(message: &M, fds: usize) -> Result<Self, ChanError> {
        M::fd_rule(message.kind())?.check_count(message.kind(), fds)?;
        let body = message.encode_body()?;
        let too_long = || Violation::Encode(format!("{} of {} bytes", message.name(), body.len()));
        if body.len() > shoal_proto::message::MAX_BODY {
            return Err(too_long().into());
        }
        let len = u32::try_from(body.len()).map_err(|_over| too_long())?;
        let (inline, memfd) = if body.len() > MAX_INLINE {
            (Vec::new(), Some(shoal_sys::memfd::sealed("shoal-message", &body)?))
        } else {
            (body, None)
        };
        if fds + usize::from(memfd.is_some()) > MAX_FDS {
            return Err(Violation::Encode(format!("{} with {fds} descriptors", message.name())).into());
        }
        Ok(Self { class: message.class(), len, kind: message.kind(), inline, memfd })
    }

    /// The header bytes under sequence number `seq`, for a message with `fds` descriptors of its own.
    pub(crate) fn header(&self, seq: u32, fds: usize) -> [u8; shoal_proto::header::HEADER_LEN] {
        let (flags, extra) = if self.memfd.is_some() { (FLAG_MEMFD, 1) } else { (0, 0) };
        // `encode` refused more than MAX_FDS, so the count fits.
        let nfds = u8::try_from(fds + extra).unwrap_or(u8::MAX);
        Header { kind: self.kind, flags, nfds, len: self.len, seq }.encode()
    }

    pub(crate) fn inline(&self) -> &[u8] {
        &self.inline
    }

    /// All descriptors that go with the message: its own and its body's.
    pub(crate) fn all_fds<'a>(&'a self, own: &[BorrowedFd<'a>]) -> Vec<BorrowedFd<'a>> {
        own.iter().copied().chain(self.memfd.as_ref().map(AsFd::as_fd)).collect()
    }
}

/// Copies of descriptors, for a frame that must wait.
pub(crate) fn keep(fds: &[BorrowedFd<'_>]) -> io::Result<Vec<OwnedFd>> {
    fds.iter().map(BorrowedFd::try_clone_to_owned).collect()
}
