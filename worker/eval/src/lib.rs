//! Evaluator of the Shoal language: compile, run, methods, builtins, effects, and the Host trait.
//!
//! The crate is pure: it opens no file, starts no program, reads no clock and keeps no mutable global. Every effect leaves
//! through [`host::Host`].
#![forbid(unsafe_code)]

mod builtins;
pub mod cancel;
mod channel;
mod code;
mod command;
mod compile;
pub mod ctx;
mod dispatch;
pub mod effects;
mod glob;
pub mod host;
mod interp;
mod machine;
mod methods;
mod module;
mod native;
pub mod place;
mod plan;
pub mod pull;
mod reef;
pub mod registry;
pub mod request;
pub mod scope;
pub mod stack;
pub(crate) mod stream;
mod suggest;
pub mod task;
mod types;
pub mod unwind;
mod vm;
mod wait;

pub use ctx::Ctx;
pub use unwind::{Eval, Stop, Unwind};
