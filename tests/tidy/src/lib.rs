//! Reads the repository for the checks in `tests/`: its files, and what each crate depends on.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the checks read the repository and ask cargo")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Folders that hold no source of ours.
const SKIPPED: [&str; 4] = ["target", ".git", "node_modules", "corpus"];

/// Every file below a folder, sorted, build output left out.
pub fn files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![below.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_symlink() || SKIPPED.contains(&name.as_str()) || name.starts_with("target-") {
                continue;
            }
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Every Rust file of the repository with its text.
pub fn rust_files() -> Vec<(PathBuf, String)> {
    let root = root();
    files(&root)
        .into_iter()
        .filter(|p| p.extension().is_some_and(|e| e == "rs"))
        .map(|p| {
            let text = std::fs::read_to_string(&p).unwrap_or_default();
            (p.strip_prefix(&root).map(Path::to_path_buf).unwrap_or(p), text)
        })
        .collect()
}

/// Names of all packages that are linked into a package, itself included: not what its tests or build scripts need.
pub fn dependencies(package: &str) -> BTreeSet<String> {
    tree(&["--package", package, "--edges", "normal"])
}

fn tree(args: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["tree", "--offline", "--prefix", "none", "--format", "{p}"])
        .args(args)
        .output();
    let output = match output {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => panic!("cargo tree {args:?}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(e) => panic!("cargo tree {args:?}: {e}"),
    };
    let text = String::from_utf8_lossy(&output);
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Reads a file of the repository; a missing one fails the check that needs it.
pub fn read(path: &str) -> String {
    match std::fs::read_to_string(root().join(path)) {
        Ok(text) => text,
        Err(e) => panic!("{path}: {e}"),
    }
}

/// Crate folders: every folder with a `Cargo.toml` that names a package.
pub fn crates() -> Vec<(String, PathBuf)> {
    let root = root();
    files(&root)
        .into_iter()
        .filter(|p| p.file_name().is_some_and(|n| n == "Cargo.toml"))
        .filter_map(|p| {
            let text = std::fs::read_to_string(&p).ok()?;
            let name = text.lines().skip_while(|l| *l != "[package]").find_map(|l| l.strip_prefix("name = "))?;
            let folder = p.parent()?.strip_prefix(&root).ok()?.to_path_buf();
            Some((name.trim_matches('"').to_owned(), folder))
        })
        .collect()
}
