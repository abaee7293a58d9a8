//! The supervisor of a Shoal kernel.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    shoal_kernel::run(shoal_kernel::Means::default())
}
