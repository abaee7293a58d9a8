//! The worker of a Shoal session: evaluates requests and holds bindings and values.
#![forbid(unsafe_code)]

fn main() {}
