//! Tree tests: all processes, real clients.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start processes and read /proc")]

mod faults;
mod guides;
mod isolation;
mod limits;
mod plans;
mod records;
mod secrets;
mod start;
mod syntax;
mod terminals;
mod watches;
mod work;
