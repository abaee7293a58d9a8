//! One-shot compiler of leash.toml and shoal.toml to sealed sections.
#![forbid(unsafe_code)]

fn main() {}
