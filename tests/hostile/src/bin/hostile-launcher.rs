//! Stands in for a session's launcher and is hostile: it is born and confined like an honest one, behaves until it is told,
//! and then breaks one of its three edges (`violate EDGE NAME`).
#![forbid(unsafe_code)]

use std::io;
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    shoal_sys::prctl::set_name("shoal-launcher")?;
    shoal_sys::signal::ignore_pipe();
    shoal_hostile::violations::launcher()
}
