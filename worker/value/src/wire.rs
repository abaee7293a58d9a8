//! The wire form: values as JSON objects tagged with `$`, for hosts and clients.
//!
//! Two shapes are written: the full one, which [`from_wire`] reads back, and the elided one of an answer, in which whatever
//! is over budget is a reference with a preview. What is over budget is decided by counting, and counting stops at the
//! budget, so an answer costs its own size and not that of the value.

mod decode;
mod elide;
mod encode;
mod gone;

pub use decode::{READ_STACK, WireError, from_wire};
pub use elide::{Origin, elide};
pub use encode::to_wire;

#[cfg(test)]
mod tests;
