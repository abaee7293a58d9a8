//! The supervisor of a Shoal kernel: spawns, reaps and restarts its roles.
#![forbid(unsafe_code)]

fn main() {}
