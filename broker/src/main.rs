//! The broker of a Shoal kernel: judges, remembers and hands out.
#![forbid(unsafe_code)]

fn main() {}
