//! The worker of a Shoal session: evaluates requests and holds bindings and values.
#![forbid(unsafe_code)]

mod capture;
mod clock;
mod commands;
mod files;
mod launcher_edge;
mod machine;
mod output;
mod runs;

fn main() {}
