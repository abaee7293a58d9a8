//! The shoal command: the operator's and the human's view of a kernel.
#![forbid(unsafe_code)]

fn main() {}
