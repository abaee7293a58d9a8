//! The operator's side: the command as a person types it, on real terminals, against a real kernel.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start processes and read files")]

mod attach;
mod behaviour;
mod docs;
mod doctor;
mod kill;
mod skew;
mod top;
