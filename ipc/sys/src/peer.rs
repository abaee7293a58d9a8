//! Who is at the other end of a UNIX socket.

use std::io;
use std::os::fd::AsFd;

/// The process that connected, as the kernel recorded it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its pid in this pid namespace, 0 when it has none here. May be another process by now: use [`pidfd`].
    pub pid: i32,
    /// Its effective uid.
    pub uid: u32,
    /// Its effective gid.
    pub gid: u32,
}

/// Credentials of the connector.
#[cfg(target_os = "linux")]
pub fn credentials(fd: impl AsFd) -> io::Result<Peer> {
    // Not through rustix: its pid cannot be 0, which is what a peer outside of our pid namespace has.
    let mut cred = libc::ucred { pid: 0, uid: 0, gid: 0 };
    option(fd, libc::SO_PEERCRED, &mut cred)?;
    Ok(Peer { pid: cred.pid, uid: cred.uid, gid: cred.gid })
}

/// A handle of the connector (Linux 6.5; `ENOPROTOOPT` before).
#[cfg(target_os = "linux")]
pub fn pidfd(fd: impl AsFd) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut number: libc::c_int = -1;
    option(fd, SO_PEERPIDFD, &mut number)?;
    // SAFETY: the kernel made a new descriptor for this process and wrote its number; nobody else owns it.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(number) })
}

/// Reads a socket option of plain integers.
#[cfg(target_os = "linux")]
fn option<T>(fd: impl AsFd, name: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut len = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    let number = std::os::fd::AsRawFd::as_raw_fd(&fd.as_fd());
    // SAFETY: the kernel writes at most `len` bytes, the size of the live value; every bit pattern of `T` (integers
    // only, see the two callers) is valid.
    let result =
        unsafe { libc::getsockopt(number, libc::SOL_SOCKET, name, std::ptr::from_mut(value).cast(), &raw mut len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Credentials of the connector.
#[cfg(not(target_os = "linux"))]
pub fn credentials(fd: impl AsFd) -> io::Result<Peer> {
    let number = std::os::fd::AsRawFd::as_raw_fd(&fd.as_fd());
    let (mut uid, mut gid) = (0, 0);
    // SAFETY: both pointers are live and of the types the call writes.
    let result = unsafe { libc::getpeereid(number, &raw mut uid, &raw mut gid) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { pid: 0, uid, gid })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::socket::{Carrier, pair};

    #[test]
    fn the_peer_of_a_pair_is_its_maker() {
        for carrier in [Carrier::Packet, Carrier::Stream] {
            let (a, _b) = pair(carrier).unwrap();
            let peer = credentials(&a).unwrap();
            assert_eq!((peer.pid, peer.uid), (crate::process::pid(), crate::process::uid()));
            let handle = crate::pidfd::Pidfd::from(pidfd(&a).unwrap());
            assert_eq!(handle.pid().unwrap(), Some(crate::process::pid()));
        }
    }

    #[test]
    fn a_file_has_no_peer() {
        assert_eq!(credentials(crate::fd::null().unwrap()).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }
}
