//! The shared cases, where they are present beside the repository.
#![allow(clippy::disallowed_methods, reason = "the test reads its cases and makes their fixtures")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::support::TestHost;
use crate::verdict::{Verdict, run};

#[derive(Deserialize)]
struct Suite {
    #[serde(default)]
    case: Vec<Case>,
}

#[derive(Deserialize, Clone)]
struct Case {
    name: String,
    #[serde(default)]
    src: String,
    value: Option<String>,
    error: Option<String>,
    error_contains: Option<String>,
    #[serde(default)]
    parse_error: bool,
    parse_error_contains: Option<String>,
    #[serde(default)]
    fixture: Vec<String>,
    skip: Option<String>,
}

#[derive(Deserialize)]
struct Deviations {
    deviation: Vec<Case>,
}

/// Cases that are known to fail, as `SUITE::CASE`.
fn expected_failures() -> Vec<&'static str> {
    include_str!("expected-failures").lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

fn cases_dir() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "shared", "cases"].iter().collect()
}

fn make_fixture(root: &Path, name: &str) {
    let path = root.join(name);
    if name.ends_with('/') {
        std::fs::create_dir_all(path).expect("a fixture directory");
    } else {
        std::fs::create_dir_all(path.parent().expect("it is below the root")).expect("a fixture's parent");
        std::fs::write(path, b"").expect("a fixture file");
    }
}

/// Why the case fails; none if it holds.
fn judge(case: &Case, verdict: &Verdict) -> Option<String> {
    let contains = |text: &str, part: &Option<String>| part.as_ref().is_none_or(|part| text.contains(part.as_str()));
    let holds = match verdict {
        Verdict::Value(text) => case.value.as_ref().is_some_and(|value| value.trim() == text.trim()),
        Verdict::Error(code, text) => case.error.as_ref() == Some(code) && contains(text, &case.error_contains),
        Verdict::Parse(text) => case.parse_error && contains(text, &case.parse_error_contains),
    };
    (!holds).then(|| {
        let wanted = case.value.clone().or_else(|| case.error.clone()).unwrap_or_else(|| "a parse error".to_owned());
        format!("{}: wanted {wanted}, found {verdict:?}\n    {}", case.name, case.src.trim().replace('\n', "\n    "))
    })
}

#[test]
fn every_case_holds_that_is_not_expected_to_fail() {
    let dir = cases_dir();
    let Ok(listing) = std::fs::read_dir(dir.join("visible")) else { return };
    let deviations = std::fs::read_to_string(dir.join("deviations.toml")).expect("the deviations");
    let deviations: Deviations = toml::from_str(&deviations).expect("the deviations parse");
    let deviations: HashMap<_, _> = deviations.deviation.into_iter().map(|d| (d.name.clone(), d)).collect();
    let only = std::env::var("SHOAL_CASE").ok();
    let mut expected = expected_failures();
    let (mut failures, mut count) = (Vec::new(), 0);
    let mut files: Vec<PathBuf> = listing.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for file in files {
        let stem = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let suite: Suite = toml::from_str(&std::fs::read_to_string(&file).expect("a suite")).expect("it parses");
        for case in suite.case {
            if case.skip.is_some() || only.as_ref().is_some_and(|only| !case.name.contains(only)) {
                continue;
            }
            count += 1;
            let name = format!("{stem}::{}", case.name);
            let failure = failure(&case, deviations.get(&case.name));
            match (failure, expected.iter().position(|expected| *expected == name)) {
                (Some(_), Some(at)) => drop(expected.swap_remove(at)),
                (Some(failure), None) => failures.push(format!("{stem}::{failure}")),
                (None, _) => {}
            }
        }
    }
    assert!(failures.is_empty(), "{} of {count} cases fail:\n{}", failures.len(), failures.join("\n"));
    assert!(only.is_some() || expected.is_empty(), "these pass and leave the list of expected failures: {expected:#?}");
}

/// Runs a case in a directory of its own.
fn failure(case: &Case, deviation: Option<&Case>) -> Option<String> {
    let mut expected = case.clone();
    if let Some(deviation) = deviation {
        expected = Case { src: case.src.clone(), ..deviation.clone() };
    }
    let host = TestHost::new();
    let root = PathBuf::from(host.cwd().path().display().into_owned());
    case.fixture.iter().for_each(|name| make_fixture(&root, name));
    judge(&expected, &run(&host, &case.src))
}
