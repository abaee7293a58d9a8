//! Direction of dependencies: who may see whom, as `docs/` and ARCHITECTURE.md state it.

use shoal_tidy::{crates, dependencies, root};

/// Crates with a `main`.
const PROCESSES: [&str; 8] = [
    "shoal-kernel",
    "shoal-cli",
    "shoal-broker",
    "shoal-policy",
    "shoal-worker",
    "shoal-launcher",
    "shoal-ptyd",
    "shoal-mcp",
];

fn absent(package: &str, forbidden: &[&str]) {
    let seen = dependencies(package);
    let found: Vec<_> = forbidden.iter().filter(|name| seen.contains(**name)).collect();
    assert!(found.is_empty(), "{package} must not see {found:?}");
}

#[test]
fn processes_meet_only_in_ipc() {
    for process in PROCESSES {
        let others: Vec<&str> = PROCESSES.into_iter().filter(|p| *p != process).collect();
        absent(process, &others);
    }
}

#[test]
fn every_crate_with_a_main_is_listed() {
    for (name, folder) in crates() {
        let has_main = root().join(&folder).join("src/main.rs").exists();
        let is_test = folder.starts_with("tests");
        assert!(!has_main || is_test || PROCESSES.contains(&name.as_str()), "{name} has a main and is not listed");
    }
}

#[test]
fn supervisor_and_launcher_have_no_parsers() {
    let parsers = ["tokio", "serde_json", "rusqlite", "toml", "shoal-syntax", "shoal-value", "shoal-eval", "vt100"];
    absent("shoal-kernel", &parsers);
    absent("shoal-launcher", &parsers);
}

#[test]
fn only_the_policy_compiler_links_toml() {
    for (name, folder) in crates() {
        if name == "shoal-policy" || folder.starts_with("tests") || folder.starts_with("worker") {
            continue;
        }
        absent(&name, &["toml"]);
    }
    // The language has a `toml` namespace: only crates of the worker's evaluator may carry the library for it.
    absent("shoal-syntax", &["toml"]);
    absent("shoal-launcher", &["toml"]);
}

#[test]
fn the_broker_interprets_no_value_and_no_source() {
    absent("shoal-broker", &["shoal-syntax", "shoal-value", "shoal-eval", "vt100", "toml"]);
}

#[test]
fn each_heavy_library_has_one_owner() {
    let owned = [
        ("shoal-eval", &["shoal-eval", "shoal-worker"][..]),
        ("vt100", &["shoal-ptyd"][..]),
        ("rusqlite", &["shoal-journal", "shoal-broker", "shoal-cli"][..]),
        ("tokio", &["shoal-broker", "shoal-chan", "shoal-client", "shoal-mcp", "shoal-cli"][..]),
    ];
    for (name, folder) in crates() {
        if folder.starts_with("tests") {
            continue;
        }
        let others: Vec<&str> =
            owned.iter().filter(|(_, owners)| !owners.contains(&name.as_str())).map(|(library, _)| *library).collect();
        absent(&name, &others);
    }
}

#[test]
fn pure_crates_see_no_runtime_and_no_unsafe_fence() {
    for pure in ["shoal-wire", "shoal-proto", "shoal-leash", "shoal-syntax", "shoal-value"] {
        absent(pure, &["tokio", "nix", "shoal-sys", "shoal-chan", "rusqlite"]);
    }
}
