//! Making the first process of a jail: namespaces from the kernel, identity maps from the parent.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::time::Duration;

use shoal_sys::fork::{Namespaces, fork};
use shoal_sys::poll::{Ready, wait};
use shoal_sys::socket::{self, Carrier};
use shoal_sys::spawn::Child;

/// The child's first act is two system calls; longer is a fault.
const HANDSHAKE: Duration = Duration::from_secs(2);
/// Exit code of a child whose parent went away before the maps were written.
const ORPHANED: u8 = 71;

/// Makes a process in new namespaces that runs `inside` once its user is mapped, and exits with what it returns.
///
/// The user and the group keep their numbers inside, so that files look as they do outside. The parent must have one
/// thread.
pub fn make(namespaces: Namespaces, inside: impl FnOnce() -> u8) -> io::Result<Child> {
    if !namespaces.user {
        // A process that hides its memory may not write about itself in /proc; the launcher hides its own again.
        return fork(namespaces, || if shoal_sys::prctl::set_dumpable(true).is_ok() { inside() } else { ORPHANED });
    }
    let (ours, theirs) = socket::pair(Carrier::NATIVE)?;
    let mut ends = Some((ours, theirs));
    let child = fork(namespaces, || {
        let Some((ours, theirs)) = ends.take() else { return ORPHANED };
        // This copy of the parent's end would hide that the parent is gone.
        drop(ours);
        // A process that hides its memory has maps that only root can write.
        let ready = shoal_sys::prctl::set_dumpable(true)
            .and_then(|()| socket::send(&theirs, &[IoSlice::new(b"m")], &[], true))
            .and_then(|_sent| socket::recv(&theirs, &mut [0; 1], true));
        match ready {
            Ok(received) if received.len == 1 => inside(),
            Ok(_) | Err(_) => ORPHANED,
        }
    })?;
    let Some((ours, theirs)) = ends else { return Err(io::ErrorKind::NotFound.into()) };
    drop(theirs);
    if let Err(error) = map(&ours, child.pid) {
        let handle = child.pidfd;
        handle.signal(libc::SIGKILL)?;
        wait(handle.as_fd(), Ready::READ, Some(HANDSHAKE))?;
        handle.try_reap()?;
        return Err(error);
    }
    Ok(child)
}

fn map(ours: &impl AsFd, child: i32) -> io::Result<()> {
    if !wait(ours.as_fd(), Ready::READ, Some(HANDSHAKE))? || socket::recv(ours, &mut [0; 1], false)?.len != 1 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let (uid, gid) = (shoal_sys::process::uid(), shoal_sys::process::gid());
    std::fs::write(format!("/proc/{child}/setgroups"), "deny")?;
    std::fs::write(format!("/proc/{child}/uid_map"), format!("{uid} {uid} 1"))?;
    std::fs::write(format!("/proc/{child}/gid_map"), format!("{gid} {gid} 1"))?;
    socket::send(ours, &[IoSlice::new(b"g")], &[], true)?;
    Ok(())
}
