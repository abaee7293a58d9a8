//! The operating-system calls of Shoal: the one crate with unsafe code.
//!
//! Every other crate is `#![forbid(unsafe_code)]` and reaches the kernel through here. What `rustix` offers safely is
//! wrapped in the shape the roles need; the rest (`clone`, `execveat`, `signalfd`, `waitid` with its usage numbers) is
//! called through `libc`, one operation per `unsafe` block, each with the invariant that makes it sound.
//!
//! Everything that makes a descriptor makes it close-on-exec.

// This crate is where the calls are made, and it reads `/proc`.
#![allow(clippy::disallowed_methods)]

pub mod detach;
pub mod fd;
pub mod lock;
pub mod memfd;
pub mod peer;
pub mod poll;
pub mod prctl;
pub mod process;
pub mod pty;
pub mod rlimit;
pub mod signal;
pub mod socket;
pub mod spawn;
pub mod user;

#[cfg(target_os = "linux")]
pub mod caps;
#[cfg(target_os = "linux")]
pub mod fork;
#[cfg(target_os = "linux")]
pub mod landlock;
#[cfg(target_os = "linux")]
pub mod mount;
#[cfg(target_os = "linux")]
pub mod pidfd;
#[cfg(target_os = "linux")]
pub mod procfs;
#[cfg(target_os = "linux")]
pub mod seccomp;
