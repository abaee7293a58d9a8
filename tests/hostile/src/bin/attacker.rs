//! A hostile program: `attacker all TARGETS` tries everything, `attacker ID TARGETS` one attack; the targets are one
//! argument of JSON, or the path of a file with it after `@`. `attacker hold` keeps as many descriptors on their way as it
//! can, and says so by a file.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a program of the tests")]

use std::process::ExitCode;

use shoal_hostile::{Targets, find, outcome, run_all};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["hold", ..] => {
            if let Err(error) = shoal_hostile::hold_descriptors(std::path::Path::new("held")) {
                println!("{error}");
                return ExitCode::FAILURE;
            }
        }
        [what, targets] => {
            let text = match targets.strip_prefix('@') {
                Some(path) => std::fs::read_to_string(path).unwrap_or_default(),
                None => (*targets).to_owned(),
            };
            let targets = match Targets::from_text(&text) {
                Ok(targets) => targets,
                Err(error) => {
                    println!("targets: {error}");
                    return ExitCode::from(2);
                }
            };
            match find(what) {
                Some(attack) => println!("{}", outcome(&attack, &targets)),
                None if *what == "all" => print!("{}", run_all(&targets)),
                None => {
                    println!("no attack {what}");
                    return ExitCode::from(2);
                }
            }
        }
        _ => {
            println!("usage: attacker all|ID TARGETS");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
