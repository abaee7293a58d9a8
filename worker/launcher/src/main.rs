//! Pid 1 of a session: starts, signals and reaps its commands.
#![forbid(unsafe_code)]

fn main() {}
