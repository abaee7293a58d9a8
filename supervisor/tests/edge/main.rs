//! The real supervisor between scripted roles.
//!
//! This executable is all of them: copied beside the kernel under the roles' names it hands its edge over to the test
//! and waits to be told to end, so that every test speaks for broker and launchers itself.
#![allow(missing_docs, clippy::disallowed_methods, clippy::print_stdout, clippy::exit)]

mod broker;
mod fake;
mod rig;
mod sessions;
mod start;

/// Test name and body.
type Test = (&'static str, fn());

fn main() {
    let name = std::env::args().next().unwrap_or_default();
    let name = std::path::Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    for role in ["shoal-broker", "shoal-launcher", "shoal-policy"] {
        if name.starts_with(role) {
            return fake::run(role);
        }
    }
    let tests: Vec<Test> = [start::TESTS, broker::TESTS, sessions::TESTS].concat();
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--list") {
        if !args.iter().any(|arg| arg == "--ignored") {
            tests.iter().for_each(|(name, _)| println!("{name}: test"));
        }
        return;
    }
    let wanted = args.iter().find(|arg| !arg.starts_with('-'));
    for (name, test) in tests {
        if wanted.is_none_or(|wanted| wanted == name) {
            test();
            println!("{name}: ok");
        }
    }
}
