//! The real broker between a scripted supervisor, scripted workers and real clients.

mod client;
mod crash;
mod kernel;
mod launcher;
mod worker;

mod authority;
mod crashes;
mod ends;
mod executions;
mod frames;
mod life;
mod ownership;
mod permits;
mod plans;
mod quotas;
mod replays;
mod subscribers;

/// So many cases of a model, unless `PROPTEST_CASES` says otherwise.
fn cases(usual: u32) -> proptest::test_runner::Config {
    let named = std::env::var_os("PROPTEST_CASES").is_some();
    let config = proptest::test_runner::Config::default();
    let cases = if named { config.cases } else { usual };
    proptest::test_runner::Config { cases, max_shrink_iters: 64, ..config }
}
