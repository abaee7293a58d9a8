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
pub mod file_system;
#[cfg_attr(target_os = "macos", path = "darwin/fork.rs")]
pub mod fork;
mod forked;
pub mod heap;
pub mod lock;
pub mod memfd;
pub mod peer;
#[cfg_attr(target_os = "macos", path = "darwin/pidfd.rs")]
pub mod pidfd;
pub mod poll;
pub mod prctl;
pub mod process;
pub mod procfs;
pub mod pty;
pub mod rlimit;
pub mod signal;
pub mod socket;
pub mod spawn;
pub mod user;

#[cfg(all(target_os = "linux", feature = "attack"))]
pub mod attack;
#[cfg(target_os = "linux")]
pub mod caps;
#[cfg(target_os = "linux")]
pub mod landlock;
#[cfg(target_os = "linux")]
pub mod mount;
#[cfg(target_os = "linux")]
pub mod seccomp;

#[cfg(target_os = "macos")]
#[path = "darwin/kqueue.rs"]
mod kqueue;
#[cfg(target_os = "macos")]
#[path = "darwin/launchd.rs"]
pub mod launchd;
#[cfg(target_os = "macos")]
#[path = "darwin/seatbelt.rs"]
pub mod seatbelt;
#[cfg(target_os = "macos")]
#[path = "darwin/vnode.rs"]
pub mod vnode;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Shoal runs on Linux and macOS");
