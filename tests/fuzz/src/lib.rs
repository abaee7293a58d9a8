//! Fuzz targets: every decoder that bytes from a lower-trust side can reach, each with the property it must keep.
//!
//! A target is a function of bytes that panics when the property does not hold. The smoke test runs all of them on
//! mutated seeds; `libfuzzer/` runs one for as long as you like:
//!
//! ```text
//! cd tests/fuzz/libfuzzer && RUSTC_BOOTSTRAP=1 SHOAL_FUZZ_TARGET=wire_request cargo fuzz run any --fuzz-dir . -- -max_total_time=3600
//! ```
#![forbid(unsafe_code)]

mod edges;
mod evaluator;
mod grown;
mod language;
mod random;
mod wire;

pub use grown::grow_all;
pub use random::Random;

/// One target: its name, the function, and small seeds that reach far into it.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name, as `SHOAL_FUZZ_TARGET` takes it.
    pub name: &'static str,
    /// Panics when the property does not hold.
    pub run: fn(&[u8]),
    /// Where mutation starts.
    pub seeds: &'static [&'static [u8]],
}

/// Every target.
pub fn targets() -> Vec<Target> {
    [edges::TARGETS, wire::TARGETS, language::TARGETS, evaluator::TARGETS].concat()
}

/// The target of a name.
pub fn target(name: &str) -> Option<Target> {
    targets().into_iter().find(|t| t.name == name)
}
