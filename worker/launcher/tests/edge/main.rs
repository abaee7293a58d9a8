//! The real launcher between a fake supervisor, broker, worker and ptyd.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod cancel;
mod lifecycle;
mod session;
mod spawn;
mod terminal;
