//! Client of a Shoal kernel: discovery, autostart, attach, pipelining, reconnect, events.
//!
//! [`Config`] says where the kernel is and who is asking, [`Connection`] is one open socket with requests matched by
//! id and events sorted by topic, and [`Client`] is an attachment that survives the loss of its connection.
//!
//! Everything runs on the caller's tokio runtime; a current-thread one is enough, and faster here. Handles are cheap
//! to clone and safe to share. A call that is dropped before its answer loses the answer and nothing else.
#![forbid(unsafe_code)]
// This crate starts a kernel when none runs, and reads the lock file that names the one that does.
#![allow(clippy::disallowed_methods)]

mod attach;
mod autostart;
mod client;
mod config;
mod connection;
mod error;
mod subscription;

pub use attach::{Attach, Attached, Create, Enter, allowed_env};
pub use client::Client;
pub use config::{Config, Flags};
pub use connection::Connection;
pub use error::{CallError, ConnectError, StartError};
pub use shoal_place::{PlaceError, Vars};
pub use subscription::{Subscribed, Subscription};
