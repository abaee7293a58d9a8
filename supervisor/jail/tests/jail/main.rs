//! Jails that are really made. Each test is a process with one thread, so there is no test harness.
#![allow(missing_docs, clippy::disallowed_methods, clippy::print_stdout, clippy::exit)]

mod attacks;
mod inside;
mod rig;
mod roles;
mod work;

/// Test name and body.
type Test = (&'static str, fn());

fn main() {
    let tests: Vec<Test> = [inside::TESTS, roles::TESTS, attacks::TESTS, work::TESTS].concat();
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
