//! Values of the Shoal language: types, order, rendering, paths and slices, elision.
//!
//! The crate is pure: it opens no file, reads no clock and keeps no global state. Whatever depends on the present moment
//! or on a file is handed in. Live things (closures, streams, tasks, aliases) are opaque handles behind the traits of
//! [`handle`]; the evaluator supplies the types.
//!
//! Invariant: a container nested deeper than [`MAX_DEPTH`] levels cannot be built, so the recursive walks of this crate
//! (drop, compare, hash, render, encode) need at most [`NATIVE_STACK`] bytes of native stack.
#![forbid(unsafe_code)]

pub mod access;
pub mod bytes;
pub mod code;
pub mod convert;
pub mod datetime;
pub mod equal;
pub mod error;
pub mod feed;
pub mod handle;
pub mod json;
pub mod list;
pub mod ops;
pub mod order;
pub mod outcome;
pub mod pattern;
pub mod range;
pub mod record;
pub mod render;
pub mod select;
pub mod table;
pub mod units;
pub mod value;
pub mod weight;
pub mod wire;

#[cfg(test)]
mod deep;
#[cfg(test)]
mod testing;

pub use bytes::Bytes;
pub use datetime::{DateTime, TimeOfDay};
pub use error::{ErrorValue, Span};
pub use handle::{Alias, Callable, StreamSource, TaskHandle};
pub use list::List;
pub use outcome::Outcome;
pub use pattern::{Glob, Regex};
pub use range::Range;
pub use record::{Leaf, Record};
pub use table::Table;
pub use value::{PathValue, Str, Value};

/// Levels of containers a value may have: a list of scalars has one. Deeper ones are refused (`too_large`) when built,
/// so that recursive walks are bounded.
pub const MAX_DEPTH: usize = 1_000;

/// Bytes in one str or bytes value held in memory; larger ones are `too_large`.
pub const MAX_TEXT: usize = 256 * 1024 * 1024;

/// Items one operation may materialise; more is `too_large`.
pub const MAX_ITEMS: usize = 50_000_000;

/// Native stack a walk over the deepest value may need, in debug builds too. A thread that holds values has this much
/// left whenever it calls into this crate; only [`wire::from_wire`] needs more, see [`wire::READ_STACK`].
pub const NATIVE_STACK: usize = 2 * 1024 * 1024;
