//! Evaluator of the Shoal language: compile, run, methods, builtins, effects, and the Host trait.
//!
//! The crate is pure: it opens no file, starts no program, reads no clock and keeps no mutable global. Every effect leaves
//! through [`host::Host`].
#![forbid(unsafe_code)]

mod builtins;
pub mod cancel;
pub mod ctx;
pub mod effects;
mod glob;
pub mod host;
mod machine;
mod methods;
mod native;
pub mod place;
pub mod registry;
pub mod scope;
pub mod unwind;

pub use ctx::Ctx;
pub use unwind::{Eval, Stop, Unwind};
