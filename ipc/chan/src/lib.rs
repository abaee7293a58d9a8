//! Typed channels between the processes of a kernel.
//!
//! A [`Chan<Tx, Rx>`] is one end of an edge: it sends one message enum and receives the other ([`pair`] swaps the types
//! for the far end). A message and its descriptors arrive together or not at all: their number and kinds are checked
//! against the row that declares the message before its payload is decoded, and every fault of the peer is a
//! [`Violation`](shoal_proto::Violation) after which the end is dead. Nothing is skipped.
//!
//! Two carriers have one format, the 16-byte header of `shoal-proto` and a body: sequenced packets where the system has
//! them, a byte stream elsewhere. A body above 64 KiB travels in a sealed memfd, the last descriptor of its message.
//!
//! # Bounds
//!
//! | class | queued by a non-blocking sender | when there is no room |
//! |---|---|---|
//! | control | 32 messages | `WouldBlock`: the peer does not read, its owner ends it |
//! | event | 64 messages | dropped and counted ([`Sender::dropped_events`]) |
//! | bulk | 4 messages, 64 MiB | `WouldBlock` |
//!
//! Queued control messages go first, so they never wait behind bulk. A blocking sender queues nothing. A receiver holds
//! one message.
#![forbid(unsafe_code)]

#[cfg(feature = "aio")]
pub mod aio;
mod chan;
mod error;
mod fds;
mod frame;
mod outbox;
mod receive;
mod send;

pub use chan::{Chan, Pair, pair, pair_over};
pub use error::ChanError;
pub use receive::{Received, Receiver};
pub use send::Sender;
pub use shoal_sys::socket::Carrier;
