//! One-shot compiler of `leash.toml` and `shoal.toml` to sealed sections.
//!
//! The supervisor opens the two files and a memfd and starts this role with nothing else: no environment, no sockets, no
//! paths to open. It writes the compiled sections into the memfd, seals it and exits 0; or it says on stderr in one line
//! what is wrong and exits 1, and the policy in force stays.
//!
//! Invariant: this is the only program of the kernel that parses TOML, and it opens nothing.
#![forbid(unsafe_code)]

mod args;
mod built_in;
mod check;
mod compile;
mod keys;
mod section;
mod settings;
mod size;
mod source;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::RawFd;
use std::process::ExitCode;

/// Where the supervisor puts `leash.toml`.
const LEASH_FD: RawFd = 3;
/// Where the supervisor puts `shoal.toml`.
const SHOAL_FD: RawFd = 4;
/// Where the sections go.
const OUTPUT_FD: RawFd = 5;
/// Longest file read: far above any policy a person writes.
const MAX_FILE: u64 = 1024 * 1024;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: impl Iterator<Item = String>) -> Result<(), String> {
    let args = args::Args::parse(words)?;
    if let Some(paths) = &args.check {
        return check::check(paths, &args);
    }
    // The files were opened for us: from here on there is nothing to reach but them.
    #[cfg(target_os = "linux")]
    shoal_jail::confine::policy().map_err(|e| format!("the policy compiler {e}"))?;
    let leash = read_inherited(LEASH_FD, "leash.toml")?;
    let shoal = read_inherited(SHOAL_FD, "shoal.toml")?;
    let sections = compile::compile(&args, &leash, &shoal)?;
    let bytes = sections.encode().map_err(|e| format!("the compiled policy does not fit: {e}"))?;
    let output = shoal_sys::fd::inherited(OUTPUT_FD).map_err(|e| format!("no output descriptor {OUTPUT_FD}: {e}"))?;
    let mut output = File::from(output);
    output.write_all(&bytes).map_err(|e| format!("cannot write the compiled policy: {e}"))?;
    shoal_sys::memfd::seal(&output).map_err(|e| format!("cannot seal the compiled policy: {e}"))
}

fn read_inherited(fd: RawFd, name: &str) -> Result<String, String> {
    let file = shoal_sys::fd::inherited(fd).map_err(|e| format!("no descriptor {fd} for {name}: {e}"))?;
    read_bounded(File::from(file), name)
}

/// Reads a file of at most [`MAX_FILE`] bytes of UTF-8.
pub(crate) fn read_bounded(file: File, name: &str) -> Result<String, String> {
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|e| format!("{name}: cannot be read: {e}"))?;
    if text.len() as u64 > MAX_FILE {
        return Err(format!("{name}: longer than {MAX_FILE} bytes"));
    }
    Ok(text)
}
