//! The source text: the unsafe fence, pure crates, sizes, bincode's one place, sleeps, words.

#![allow(clippy::disallowed_methods, reason = "the checks read the repository")]

use std::path::Path;

use shoal_tidy::{crates, files, root, rust_files};

/// Lines after which a file is too long, tables and vectors exempt.
const HARD_LINES: usize = 800;
/// Lines a `main.rs` of a process may have.
const MAIN_LINES: usize = 120;

/// A line of code without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or("")
}

/// Whether `word` stands in the line as a word of its own.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[test]
fn unsafe_lives_in_shoal_sys_alone() {
    for (path, text) in rust_files() {
        if path.starts_with("ipc/sys") || path.starts_with("tests/tidy") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            assert!(!has_word(code(line), "unsafe"), "{}:{}: unsafe outside ipc/sys", path.display(), number + 1);
        }
    }
}

#[test]
fn every_other_crate_forbids_unsafe() {
    for (name, folder) in crates() {
        if name == "shoal-sys" || folder.starts_with("tests/fuzz") {
            continue;
        }
        let source = root().join(&folder).join("src");
        let heads = ["lib.rs", "main.rs"].map(|f| source.join(f));
        let found: Vec<_> = heads.iter().filter(|p| p.exists()).collect();
        assert!(!found.is_empty(), "{name} has neither lib.rs nor main.rs");
        for head in found {
            let text = std::fs::read_to_string(head).unwrap_or_default();
            assert!(text.contains("#![forbid(unsafe_code)]"), "{} does not forbid unsafe code", head.display());
        }
    }
}

#[test]
fn pure_crates_touch_nothing_outside() {
    const PURE: [&str; 7] = [
        "ipc/wire/src",
        "ipc/proto/src",
        "broker/leash/src",
        "worker/syntax/src",
        "worker/value/src",
        "worker/eval/src",
        "mcp/watch/src",
    ];
    const OUTSIDE: [&str; 9] = [
        "std::fs",
        "std::net",
        "std::process",
        "std::os",
        "std::env::",
        "Instant::now",
        "SystemTime::now",
        "static mut",
        "thread_local!",
    ];
    for (path, text) in rust_files() {
        if !PURE.iter().any(|p| path.starts_with(p)) || path.ends_with("tests.rs") {
            continue;
        }
        let body = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        for (number, line) in body.lines().enumerate() {
            for outside in OUTSIDE {
                // Bytes of paths are `OsStr`; converting them touches nothing.
                let line = code(line).replace("std::os::unix::ffi", "");
                assert!(!line.contains(outside), "{}:{}: {outside} in a pure crate", path.display(), number + 1);
            }
        }
    }
}

#[test]
fn bincode_has_one_place() {
    for (path, text) in rust_files() {
        if path.starts_with("ipc/proto") || path.starts_with("tests/tidy") {
            continue;
        }
        assert!(!text.lines().any(|l| has_word(code(l), "bincode")), "{}: bincode outside ipc/proto", path.display());
    }
}

#[test]
fn every_edge_has_fuzz_targets() {
    let listed = shoal_tidy::read("tests/fuzz/src/edges.rs");
    for (path, text) in rust_files() {
        if !path.starts_with("ipc/proto/src") || path.ends_with("message.rs") {
            continue;
        }
        let module = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
        for line in text.lines().filter(|l| l.trim_end().ends_with('{') && l.contains(" = \"")) {
            let Some(message) = line.split_whitespace().next() else { continue };
            let target = format!("{module}::{message};");
            assert!(listed.contains(&target), "tests/fuzz/src/edges.rs has no target for {target}");
        }
    }
}

#[test]
fn files_stay_readable() {
    for (path, text) in rust_files() {
        let lines = text.lines().count();
        let limit = if path.ends_with("src/main.rs") && !path.starts_with("tests") { MAIN_LINES } else { HARD_LINES };
        assert!(lines <= limit, "{} has {lines} lines; at most {limit}: split it by concern", path.display());
    }
}

#[test]
fn tests_do_not_sleep() {
    for (path, text) in rust_files() {
        let in_tests = path.components().any(|c| c.as_os_str() == "tests");
        if !in_tests || path.starts_with("tests/tidy") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            assert!(
                !code(line).contains("thread::sleep") || line.contains("poll interval"),
                "{}:{}: a sleep in a test; wait for what is observable, with a deadline",
                path.display(),
                number + 1
            );
        }
    }
}

#[test]
fn ignored_tests_say_why() {
    for (path, text) in rust_files() {
        if path.starts_with("tests/tidy") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            assert!(!line.contains("#[ignore]"), "{}:{}: #[ignore] without a reason", path.display(), number + 1);
        }
    }
}

#[test]
fn the_repository_speaks_of_the_project_alone() {
    // Spelt in two parts, so that this file does not hold them.
    let words = [
        ["/work", "/main"],
        ["/work", "/target"],
        ["/work", "/shared"],
        ["crates", ".io"],
        ["pypi", ".org"],
        ["npmjs", ".com"],
        ["deb.", "debian"],
        ["/root", "/."],
    ];
    let kinds = ["rs", "md", "toml", "py", "mjs", "sh", "json", "yml", "service", "socket", "plist"];
    let root = root();
    for path in files(&root) {
        let is_text =
            path.extension().and_then(|e| e.to_str()).is_some_and(|e| kinds.contains(&e)) || path.ends_with(".ci/run");
        if !is_text || path.ends_with("Cargo.lock") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for parts in words {
            let word = parts.concat();
            let shown = path.strip_prefix(&root).unwrap_or(Path::new("?"));
            assert!(!text.contains(&word), "{} names {word}", shown.display());
        }
    }
}
