//! Journal, content store and token file of a Shoal kernel: what its state directory holds.
//!
//! One SQLite database and one directory of compressed files inside the state directory. [`Journal`] owns them on a
//! thread of its own: jobs are queued, run in groups inside one transaction, and answered after the commit, so that
//! what was answered survives the death of any process. Rows are chained by BLAKE3: [`Store::verify`] finds any change
//! of a chained member of any row.
//!
//! Invariant: nothing else in the process opens the database file (a second descriptor closed would drop SQLite's
//! locks), and no SQL text comes from a client.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "this crate owns the state directory's files and stamps its rows with the clock"
)]

mod cas;
mod chain;
mod counter;
mod durable;
mod error;
mod fs;
mod gc;
mod group;
mod log_length;
mod owner;
mod plan;
mod query;
mod recover;
mod row;
mod schema;
mod store;
mod syncer;
mod tail;
mod tokens;
mod undo;
mod watch;
mod wire;

pub use cas::{Adopted, Blob, INLINE_MAX, Writer as BlobWriter};
pub use chain::Verified;
pub use error::JournalError;
pub use gc::{GcReport, GcRequest};
pub use group::{Health, Journal, Settings};
pub use plan::PlanRecord;
pub use query::Query;
pub use row::{Closing, Ended, Kind, NewRow, Output, OutputData, Row};
pub use store::{Store, Usage};
pub use tail::Tail;
pub use tokens::{NewToken, Token, TokenFile, TokenStamp};
pub use undo::UndoRecord;
pub use watch::SavedWatch;
