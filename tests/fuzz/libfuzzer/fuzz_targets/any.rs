//! Runs the target that `SHOAL_FUZZ_TARGET` names under libFuzzer.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<shoal_fuzz::Target> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("SHOAL_FUZZ_TARGET").expect("SHOAL_FUZZ_TARGET names a target");
        shoal_fuzz::target(&name).unwrap_or_else(|| panic!("no target {name}"))
    });
    (target.run)(bytes);
});
