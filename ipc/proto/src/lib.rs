//! Messages on the edges between the processes of a Shoal kernel, and their codec.
//!
//! There is one enum per edge and direction. Every variant declares in one table row its type number, the descriptors
//! that may travel with it and its credit class; a carrier (`shoal-chan`) refuses everything else before the payload is
//! looked at. The crate is pure: no files, no sockets, no clock.
//!
//! Invariant: no body carries a session id, principal or policy that the upper side believes. Who speaks is the
//! descriptor a message arrived on.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used))]

pub mod bounded;
pub mod broker_launcher;
pub mod broker_ptyd;
pub mod broker_worker;
mod codec;
pub mod fault;
pub mod header;
pub mod hello;
pub mod launcher_ptyd;
pub mod launcher_worker;
pub mod message;
pub mod section;
pub mod supervisor_broker;
pub mod supervisor_launcher;

pub use bounded::{Bytes, List, Text};
pub use fault::Violation;
pub use header::Header;
pub use hello::{EDGE_VERSION, Hello};
pub use message::{Class, FdKind, FdRule, Message};
pub use section::{Section, Sections};
