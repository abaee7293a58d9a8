//! Pairs of connected UNIX sockets, and messages with descriptors over them.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};

/// Descriptors one message may carry here; the receiver's buffer has room for no more.
pub const MAX_FDS: usize = 8;

/// How messages keep their boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The kernel keeps them (`SOCK_SEQPACKET`).
    Packet,
    /// The receiver counts bytes (`SOCK_STREAM`): systems without sequenced packets on UNIX sockets.
    Stream,
}

impl Carrier {
    /// The better carrier of this system.
    pub const NATIVE: Self = if cfg!(target_os = "linux") { Self::Packet } else { Self::Stream };
}

/// What one receive gave.
#[derive(Debug)]
pub struct Received {
    /// Bytes written to the buffer; 0 is the end of the peer.
    pub len: usize,
    /// Descriptors, close-on-exec.
    pub fds: Vec<OwnedFd>,
    /// The message was longer than the buffer, or had more descriptors than [`MAX_FDS`]; the rest is lost.
    pub truncated: bool,
}

/// Makes a connected pair, both ends close-on-exec.
pub fn pair(carrier: Carrier) -> io::Result<(OwnedFd, OwnedFd)> {
    let kind = match carrier {
        Carrier::Packet => SocketType::SEQPACKET,
        Carrier::Stream => SocketType::STREAM,
    };
    #[cfg(target_os = "linux")]
    let ends = rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    #[cfg(not(target_os = "linux"))]
    let ends = {
        let ends = rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None)?;
        crate::fd::set_cloexec(&ends.0, true)?;
        crate::fd::set_cloexec(&ends.1, true)?;
        ends
    };
    Ok(ends)
}

/// The carrier of an existing socket; `EPROTOTYPE` for another kind of socket.
pub fn carrier(fd: impl AsFd) -> io::Result<Carrier> {
    match sockopt::socket_type(fd)? {
        SocketType::SEQPACKET => Ok(Carrier::Packet),
        SocketType::STREAM => Ok(Carrier::Stream),
        _other => Err(io::Error::from_raw_os_error(libc::EPROTOTYPE)),
    }
}

/// Sends `parts` with `fds`; `wait` says whether to block while there is no room (`EAGAIN` otherwise).
///
/// A dead peer is `EPIPE`, never SIGPIPE. On a stream fewer bytes may be taken than given; the descriptors go with
/// the first of them.
pub fn send(fd: impl AsFd, parts: &[IoSlice<'_>], fds: &[BorrowedFd<'_>], wait: bool) -> io::Result<usize> {
    if fds.len() > MAX_FDS {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // On macOS the whole process ignores SIGPIPE instead, see `signal::ignore_pipe`.
    #[cfg(target_os = "linux")]
    let mut flags = SendFlags::NOSIGNAL;
    #[cfg(target_os = "macos")]
    let mut flags = SendFlags::empty();
    flags.set(SendFlags::DONTWAIT, !wait);
    loop {
        match rustix::net::sendmsg(&fd, parts, &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Receives into `buffer`; `wait` says whether to block while there is nothing (`EAGAIN` otherwise).
pub fn recv(fd: impl AsFd, buffer: &mut [u8], wait: bool) -> io::Result<Received> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    #[cfg(target_os = "linux")]
    let mut flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let mut flags = RecvFlags::empty();
    flags.set(RecvFlags::DONTWAIT, !wait);
    let result = loop {
        match rustix::net::recvmsg(&fd, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    #[cfg(not(target_os = "linux"))]
    for fd in &fds {
        crate::fd::set_cloexec(fd, true)?;
    }
    let truncated = result.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    Ok(Received { len: result.bytes, fds, truncated })
}

/// Refuses descriptors on this socket where the kernel can (Linux 6.16); returns whether it does now.
#[cfg(target_os = "linux")]
pub fn refuse_descriptors(fd: impl AsFd) -> bool {
    const SO_PASSRIGHTS: libc::c_int = 83;
    let off: libc::c_int = 0;
    let len = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap_or(4);
    // SAFETY: the option value points to a live int of the length given; the call reads it and nothing else.
    let result = unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&fd.as_fd()),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const off).cast(),
            len,
        )
    };
    result == 0
}

/// Refuses descriptors on this socket where the kernel can; nowhere but on Linux.
#[cfg(not(target_os = "linux"))]
pub fn refuse_descriptors(_fd: impl AsFd) -> bool {
    false
}

/// A UNIX stream socket, close-on-exec and without waiting.
pub fn stream() -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    #[cfg(target_os = "macos")]
    let flags = SocketFlags::empty();
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    #[cfg(target_os = "macos")]
    without_waiting(&fd)?;
    Ok(fd)
}

/// Accepts a connection, close-on-exec and without waiting.
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let fd = rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    #[cfg(target_os = "macos")]
    let fd = rustix::net::accept(listener)?;
    #[cfg(target_os = "macos")]
    without_waiting(&fd)?;
    Ok(fd)
}

/// What a socket on macOS cannot be made with.
#[cfg(target_os = "macos")]
fn without_waiting(fd: &OwnedFd) -> io::Result<()> {
    crate::fd::set_cloexec(fd, true)?;
    crate::fd::set_nonblocking(fd, true)
}

/// Closes the socket for both directions, for every holder of it: a blocked receiver sees the end.
pub fn shutdown(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, rustix::net::Shutdown::Both)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fd;

    fn exchange(carrier: Carrier) {
        let (a, b) = pair(carrier).unwrap();
        let (read, write) = fd::pipe().unwrap();
        let sent =
            send(&a, &[IoSlice::new(b"he"), IoSlice::new(b"llo")], &[read.as_fd(), write.as_fd()], true).unwrap();
        assert_eq!(sent, 5);
        let mut buffer = [0; 16];
        let got = recv(&b, &mut buffer, true).unwrap();
        assert_eq!(&buffer[..got.len], b"hello");
        assert_eq!(got.fds.len(), 2);
        assert!(!got.truncated);
        assert!(rustix::io::fcntl_getfd(&got.fds[0]).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn packets_carry_bytes_and_descriptors() {
        exchange(Carrier::Packet);
    }

    #[test]
    fn streams_carry_bytes_and_descriptors() {
        exchange(Carrier::Stream);
    }

    #[test]
    fn a_short_buffer_is_told() {
        let (a, b) = pair(Carrier::Packet).unwrap();
        send(&a, &[IoSlice::new(b"hello")], &[], true).unwrap();
        let got = recv(&b, &mut [0; 2], true).unwrap();
        assert!(got.truncated);
    }

    #[test]
    fn nothing_there_is_would_block_and_a_dead_peer_is_the_end() {
        let (a, b) = pair(Carrier::Packet).unwrap();
        assert_eq!(recv(&b, &mut [0; 2], false).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(a);
        assert_eq!(recv(&b, &mut [0; 2], false).unwrap().len, 0);
        assert_eq!(send(&b, &[IoSlice::new(b"x")], &[], false).unwrap_err().raw_os_error(), Some(libc::EPIPE));
    }

    #[test]
    fn too_many_descriptors_are_refused_before_sending() {
        let (a, _b) = pair(Carrier::Packet).unwrap();
        let null = fd::null().unwrap();
        let many = vec![null.as_fd(); MAX_FDS + 1];
        assert_eq!(send(&a, &[IoSlice::new(b"x")], &many, true).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn the_carrier_is_read_from_the_socket() {
        assert_eq!(carrier(&pair(Carrier::Packet).unwrap().0).unwrap(), Carrier::Packet);
        assert_eq!(carrier(&pair(Carrier::Stream).unwrap().0).unwrap(), Carrier::Stream);
        assert!(carrier(fd::null().unwrap()).is_err());
    }

    #[test]
    fn refused_descriptors_stay_with_the_sender() {
        let (a, b) = pair(Carrier::Packet).unwrap();
        if refuse_descriptors(&b) {
            let null = fd::null().unwrap();
            let refused = send(&a, &[IoSlice::new(b"x")], &[null.as_fd()], true);
            assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
        }
        send(&a, &[IoSlice::new(b"x")], &[], true).unwrap();
    }

    #[test]
    fn shutdown_ends_the_peer() {
        let (a, b) = pair(Carrier::Packet).unwrap();
        shutdown(&a).unwrap();
        assert_eq!(recv(&b, &mut [0; 2], true).unwrap().len, 0);
    }
}
