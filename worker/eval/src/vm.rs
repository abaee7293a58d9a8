//! The machine that runs compiled programs.
//!
//! Calls of closures by operations push a frame and do not recurse natively. A builtin that calls a closure re-enters
//! [`crate::machine::Machine::run`]; nested calls are counted over both ways, so the native stack that is needed has a
//! bound (see [`crate::stack`]).

mod bind;
mod callees;
mod execute;
mod frame;
mod frames;
mod growth;
mod ints;
mod leaf;
mod matching;
mod name;
mod operands;
mod run;
mod scoped;
mod short;
mod steps;

pub(crate) use bind::downcast;
pub(crate) use callees::Callees;
pub(crate) use frame::{Handler, Lambda, Linked, Links, LoopState, More, SavedPlace};
pub(crate) use frames::Frames;
pub(crate) use leaf::Prepared;
pub(crate) use operands::Operands;
pub(crate) use run::{Call, stray};
pub(crate) use short::{Arg, Formula};
pub(crate) use steps::{assertion, immutable};
