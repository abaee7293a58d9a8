//! `shoal`: the operator's and the human's command. An ordinary client of the kernel's socket; it has no authority of its
//! own beyond being the local user in person.
#![forbid(unsafe_code)]
// This program is for people: it starts sibling programs and reads the files it is told to set up.
#![allow(clippy::disallowed_methods)]

mod args;
mod commands;
mod context;
mod escape;
mod fail;
mod out;
mod records;
mod script;
mod siblings;
mod statedir;
mod style;
mod table;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Args;
use crate::fail::Fail;

fn main() -> ExitCode {
    let words = alias(std::env::args_os().collect());
    let ended = match script::of(&words) {
        Some(script) => Err(siblings::become_program("shoal-launcher", &script)),
        None => match Args::try_parse_from(words) {
            Ok(args) => commands::run(args),
            Err(e) => return usage(&e),
        },
    };
    match ended {
        Ok(code) => code,
        Err(Fail::ClosedOutput) => ExitCode::FAILURE,
        Err(fail) => {
            crate::out::note(&format!("shoal: {}", escape::line(&fail.to_string())));
            fail.code()
        }
    }
}

/// `shoal-token ARGS` is `shoal token ARGS`: the alias is the name the program was started by.
fn alias(mut words: Vec<std::ffi::OsString>) -> Vec<std::ffi::OsString> {
    let name = words.first().and_then(|w| std::path::Path::new(w).file_name()?.to_str().map(str::to_owned));
    if let Some(command) = name.as_deref().and_then(|n| n.strip_prefix("shoal-")) {
        let command = command.into();
        words.splice(..1, ["shoal".into(), command]);
    }
    words
}

/// Prints help to stdout and errors to stderr; exit code 2 is for usage.
fn usage(error: &clap::Error) -> ExitCode {
    let shown = error.print();
    match (error.use_stderr(), shown) {
        (false, Ok(())) => ExitCode::SUCCESS,
        (false, Err(_)) => ExitCode::FAILURE,
        (true, _) => ExitCode::from(2),
    }
}
