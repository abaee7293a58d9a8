//! The manifests: versions, lints, licences, and that every library is accounted for.

use shoal_tidy::{crates, read, root};

fn manifest(path: &str) -> toml::Table {
    match toml::from_str(&read(path)) {
        Ok(table) => table,
        Err(e) => panic!("{path}: {e}"),
    }
}

fn workspace_libraries() -> Vec<String> {
    let table = manifest("Cargo.toml");
    let found = table["workspace"]["dependencies"].as_table().expect("a table");
    found.keys().filter(|name| !name.starts_with("shoal-")).cloned().collect()
}

#[test]
fn bincode_is_pinned_and_nothing_floats() {
    let table = manifest("Cargo.toml");
    let libraries = table["workspace"]["dependencies"].as_table().expect("a table");
    for (name, spec) in libraries {
        let version = spec.as_str().or_else(|| spec.get("version").and_then(toml::Value::as_str)).unwrap_or("");
        assert!(!version.contains('*'), "{name} = {version:?}");
    }
    assert_eq!(libraries["bincode"]["version"].as_str(), Some("=2.0.1"));
}

#[test]
fn every_crate_takes_lints_and_libraries_from_the_workspace() {
    for (name, folder) in crates() {
        if folder.starts_with("tests/fuzz") {
            continue;
        }
        let path = folder.join("Cargo.toml");
        let table = manifest(&path.to_string_lossy());
        assert_eq!(table["lints"]["workspace"].as_bool(), Some(true), "{name}: lints");
        assert_eq!(table["package"]["license"]["workspace"].as_bool(), Some(true), "{name}: license");
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(found) = table.get(section).and_then(toml::Value::as_table) else { continue };
            for (library, spec) in found {
                let from_workspace = spec.get("workspace").and_then(toml::Value::as_bool) == Some(true);
                assert!(from_workspace, "{name}: {section}.{library} does not come from the workspace");
            }
        }
    }
}

#[test]
fn every_library_is_accounted_for() {
    let text = read("docs/dependencies.md");
    for library in workspace_libraries() {
        let row =
            text.lines().find(|l| l.starts_with(&format!("| `{library}` ")) || l.starts_with(&format!("| {library} ")));
        let Some(row) = row else { panic!("docs/dependencies.md has no row for {library}") };
        let cells = row.trim_matches('|').split('|').filter(|c| !c.trim().is_empty()).count();
        assert!(cells >= 4, "docs/dependencies.md: {library} needs why, licence and maintenance");
    }
}

#[test]
fn licences_are_there() {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(root().join(name).exists(), "{name} is missing");
    }
}
