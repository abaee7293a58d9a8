//! The plain JSON mapping: values to JSON text and back.

use crate::{ErrorValue, MAX_DEPTH, Value};

mod read;
pub(crate) mod sink;
mod write;

pub use read::table_or_list;
pub(crate) use read::{nesting, parse_within};
pub use write::{stringify, stringify_pretty};

/// Reads JSON text: ints that fit i64, other numbers float; an array that is non-empty and all objects is a table. Fails
/// with `arg_error` that names line and column.
pub fn parse(text: &str) -> Result<Value, ErrorValue> {
    parse_within(text, MAX_DEPTH)
}
