//! The programs under test, where an ordinary user can reach them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Every program a running kernel needs.
pub const PROGRAMS: [&str; 8] = [
    "shoal-kernel",
    "shoal-broker",
    "shoal-policy",
    "shoal-launcher",
    "shoal-worker",
    "shoal-ptyd",
    "shoal-mcp",
    "shoal",
];

/// Folder the build put the programs into: that of the test, without `deps`.
pub fn built() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps").to_path_buf();
    for program in PROGRAMS {
        let path = folder.join(program);
        assert!(path.exists(), "{} is missing: run `cargo build --workspace --bins` first", path.display());
    }
    folder
}

/// Every folder above can be entered by others.
pub(crate) fn is_reachable(folder: &Path) -> bool {
    folder.ancestors().all(|f| std::fs::metadata(f).is_ok_and(|m| m.permissions().mode() & 0o001 != 0))
}

/// A folder with all programs that every user can reach: the build's own, or a copy in `place`.
pub(crate) fn reachable(place: &Path) -> PathBuf {
    let folder = built();
    if is_reachable(&folder) { folder } else { copied(&place.join("bin"), &[]) }
}

/// A new folder with a copy of every program, some of them replaced by others.
pub(crate) fn copied(folder: &Path, replaced: &[(&str, &Path)]) -> PathBuf {
    let built = built();
    std::fs::create_dir(folder).expect("a folder for programs");
    for program in PROGRAMS {
        let source = replaced.iter().find(|(name, _)| *name == program).map(|(_, source)| source.to_path_buf());
        std::fs::copy(source.unwrap_or_else(|| built.join(program)), folder.join(program)).expect("a copied program");
    }
    folder.to_path_buf()
}
