//! The shared language cases: every program that has a value or an evaluation error parses, and every one that must not
//! parse fails with the words its case names.

#![allow(clippy::disallowed_methods, reason = "the case files are test data, read where they stand")]

use std::path::Path;

use serde::Deserialize;
use shoal_syntax::{Names, format, parse, tree_json};

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(default)]
    src: String,
    #[serde(default)]
    parse_error: bool,
    parse_error_contains: Option<String>,
}

#[test]
fn shared_cases_parse_or_fail_as_they_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/visible");
    let Ok(entries) = folder.read_dir() else { return };
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in file.case {
            seen += 1;
            wrong.extend(verdict(&case).map(|why| format!("{}: {why}\n    {}", case.name, case.src)));
        }
    }
    assert!(seen > 0, "no cases in {}", folder.display());
    assert!(wrong.is_empty(), "{} of {seen} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// Why the case does not hold.
fn verdict(case: &Case) -> Option<String> {
    let parsed = parse(&case.src, &Names::script());
    let Some(diag) = parsed.diags.first() else {
        return case.parse_error.then(|| "parses".to_owned());
    };
    if !case.parse_error {
        return Some(diag.to_string());
    }
    let expected = case.parse_error_contains.as_deref().unwrap_or("");
    (!diag.to_string().contains(expected)).then(|| format!("expected {expected:?}, got {diag}"))
}

#[test]
fn shared_cases_keep_their_tree_when_formatted_and_as_json() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/visible");
    let Ok(entries) = folder.read_dir() else { return };
    let names = Names::script();
    for entry in entries {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let file: File = toml::from_str(&text).unwrap();
        for case in file.case.iter().filter(|case| !case.parse_error) {
            let json = tree_json::to_json(&parse(&case.src, &names).program);
            assert_eq!(tree_json::to_json(&tree_json::from_json(&json).unwrap()), json, "{}", case.name);
            let formatted = format(&case.src, &names).unwrap();
            assert_eq!(format(&formatted, &names).unwrap(), formatted, "{}", case.name);
            assert!(formatted.is_empty() || formatted.ends_with('\n'), "{} was not printed: {formatted}", case.name);
        }
    }
}
