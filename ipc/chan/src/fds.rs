//! What a descriptor must be to arrive with a message.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use shoal_proto::{FdKind, FdRule, Violation};

/// Refuses descriptors that are not what `rule` declares, in order.
pub(crate) fn check(kind: u8, rule: FdRule, fds: &[OwnedFd]) -> Result<(), Violation> {
    rule.check_count(kind, fds.len())?;
    for (index, (fd, declared)) in fds.iter().zip(rule.kinds).enumerate() {
        if !is(*declared, fd.as_fd()) {
            return Err(Violation::DescriptorKind { kind, index, expected: declared.name() });
        }
    }
    Ok(())
}

fn is(kind: FdKind, fd: BorrowedFd<'_>) -> bool {
    match kind {
        FdKind::Memfd => shoal_sys::memfd::is_sealed(fd),
        FdKind::PipeRead => shoal_sys::fd::is_pipe_read(fd),
        FdKind::Socket => shoal_sys::fd::is_connected_unix(fd),
        FdKind::Listener => shoal_sys::fd::is_listening_unix(fd),
        FdKind::Dir => shoal_sys::fd::is_dir(fd),
        FdKind::Leader => shoal_sys::pty::is_leader(fd),
        FdKind::Stdio => shoal_sys::fd::is_stdio(fd),
    }
}
