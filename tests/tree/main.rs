//! Tree tests: all processes, real clients.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start processes and read /proc")]

mod agent;
mod attach;
mod capture;
mod commands;
mod faults;
mod guides;
mod isolation;
mod journal_file;
mod language;
mod limits;
mod lost;
mod many_terminals;
mod plans;
mod policy;
mod records;
mod results;
mod scripts;
mod secrets;
mod setup;
mod soak;
mod start;
mod syntax;
mod terminal_bounds;
mod terminal_programs;
mod terminals;
mod watch_filters;
mod watches;
mod work;
