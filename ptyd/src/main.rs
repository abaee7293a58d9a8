//! Terminal host of a Shoal session: emulates the screens of its PTYs.
#![forbid(unsafe_code)]

fn main() {}
