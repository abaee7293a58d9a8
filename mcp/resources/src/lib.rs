//! What can be read and watched under `shoal://`: addresses, the kernel calls behind them, the shapes of what is read.
//!
//! The MCP facade serves these to its clients, the worker to the language and to watches; both make the calls, this
//! crate knows which. [`read`] reads, [`list`] and [`templates`] list, [`topic`] tells what a URI changes with.
#![forbid(unsafe_code)]

pub mod bound;
mod event_log;
pub mod list;
pub mod page;
pub mod read;
mod route;
pub mod templates;
pub mod topic;
