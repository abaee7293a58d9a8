//! The shipped policies and those in the documentation compile with the real program.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the test runs the program and reads the repository")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn check(files: &[&Path]) -> Result<(), String> {
    let output = Command::new(env!("CARGO_BIN_EXE_shoal-policy"))
        .args(["--uid", "1000", "--home", "/home/me", "--check"])
        .args(files)
        .output()
        .expect("the program runs");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn every_shipped_example_compiles() {
    let mut seen = 0;
    for entry in std::fs::read_dir(root().join("packaging/examples")).expect("there").flatten() {
        if entry.path().extension().is_some_and(|e| e == "toml") {
            check(&[&entry.path()]).unwrap_or_else(|e| panic!("{}: {e}", entry.path().display()));
            seen += 1;
        }
    }
    assert!(seen >= 3);
}

/// The ```toml blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).expect(page);
    text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).map(str::to_owned).collect()
}

#[test]
fn every_block_of_the_documentation_compiles() {
    let dir = tempfile::tempdir().expect("a temp dir");
    let found = blocks("docs/policy.md");
    assert!(found.len() >= 4, "{} blocks", found.len());
    for (n, block) in found.iter().enumerate() {
        let path = dir.path().join(format!("{n}.toml"));
        std::fs::write(&path, block).expect("written");
        let empty = dir.path().join("empty.toml");
        std::fs::write(&empty, "").expect("written");
        let is_leash = block.contains("[principal") || block.contains("[default");
        let files = if is_leash { [path.as_path(), &empty] } else { [empty.as_path(), &path] };
        check(&files).unwrap_or_else(|e| panic!("block {n}: {e}\n{block}"));
    }
}

#[test]
fn an_error_is_one_line_on_stderr_and_exit_1() {
    let dir = tempfile::tempdir().expect("a temp dir");
    let path = dir.path().join("leash.toml");
    std::fs::write(&path, "[default]\nopaqe = 1\n").expect("written");
    let error = check(&[&path]).expect_err("malformed");
    assert_eq!(error, format!("{}:2:1: unknown key `opaqe`; did you mean `opaque`?\n", path.display()));
    let missing = check(&[Path::new("/nonexistent/x.toml")]).expect_err("missing");
    assert!(missing.starts_with("/nonexistent/x.toml: cannot be opened:"), "{missing}");
}
