//! The operating-system calls of Shoal: the one crate with unsafe code.

pub mod fd;
pub mod memfd;
pub mod poll;
pub mod pty;
pub mod socket;
