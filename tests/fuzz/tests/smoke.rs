//! Every target on its seeds and on some thousand mutations of them. `SHOAL_FUZZ_SEED` repeats a run.
#![forbid(unsafe_code)]

use shoal_fuzz::{Random, Target, grow_all, targets};

/// Mutations per target: seconds, not minutes.
const ROUNDS: usize = 4_000;
/// Programs evaluated: each has a thread of its own.
const EVALUATIONS: usize = 1_500;

fn run(target: Target) {
    run_rounds(target, ROUNDS);
}

fn run_rounds(target: Target, rounds: usize) {
    let seed = number("SHOAL_FUZZ_SEED").unwrap_or_else(|| u64::from(std::process::id()) * 7919);
    println_seed(target.name, seed);
    let mut random = Random::new(seed);
    for seed in target.seeds {
        (target.run)(seed);
    }
    for _ in 0..rounds {
        let mut bytes = random.mutate(target.seeds[random.clone().below(target.seeds.len())]);
        if random.below(3) == 0 {
            bytes = random.mutate(&bytes);
        }
        (target.run)(&bytes);
    }
}

fn println_seed(name: &str, seed: u64) {
    eprintln!("{name}: SHOAL_FUZZ_SEED={seed}");
}

/// Steps per type of message; `SHOAL_FUZZ_STEPS` takes more.
const STEPS: usize = 2_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|s| s.parse().ok())
}

#[test]
fn grown_messages() {
    let seed = number("SHOAL_FUZZ_SEED").unwrap_or_else(|| u64::from(std::process::id()) * 7919);
    let steps = number("SHOAL_FUZZ_STEPS").map_or(STEPS, |n| usize::try_from(n).unwrap_or(usize::MAX));
    println_seed("grown", seed);
    let valid = grow_all(&mut Random::new(seed), steps);
    // Random bytes are valid once in thousands of times.
    assert!(valid > 70 * steps / 20, "only {valid} of the changed bodies were valid");
}

#[test]
fn edges() {
    targets()
        .into_iter()
        .filter(|t| t.name.contains("_to_") || t.name == "edge_header" || t.name == "sections")
        .for_each(run);
}

#[test]
fn public_socket() {
    targets().into_iter().filter(|t| t.name.starts_with("wire_") || t.name.starts_with("leash_")).for_each(run);
}

#[test]
fn language() {
    targets().into_iter().filter(|t| t.name.starts_with("syntax_") || t.name.starts_with("value_")).for_each(run);
}

#[test]
fn evaluator() {
    targets().into_iter().filter(|t| t.name.starts_with("eval_")).for_each(|target| run_rounds(target, EVALUATIONS));
}

#[test]
fn names_are_unique_and_every_target_has_seeds() {
    let all = targets();
    for target in &all {
        assert!(!target.seeds.is_empty(), "{}", target.name);
        assert_eq!(all.iter().filter(|t| t.name == target.name).count(), 1, "{}", target.name);
    }
}
