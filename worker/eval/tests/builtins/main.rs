//! The documentation of the language: `docs/builtins.md` is complete and made from the tables, and all transcripts are true.

mod cases;
mod evaluate;
mod guide;
mod markdown;
mod rows;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "each test binary uses a part of it")]
mod support;

use std::path::PathBuf;

use evaluate::shown;

/// Set to write `docs/builtins.md` and the results in `docs/language.md` anew instead of comparing them.
const REFRESH: &str = "SHOAL_REFRESH_DOCS";

fn doc_file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "builtins.md"].iter().collect()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test compares and refreshes a file of the repository")]
fn the_reference_is_generated_from_the_tables() {
    let generated = markdown::reference();
    if std::env::var_os(REFRESH).is_some() {
        std::fs::write(doc_file(), generated).expect("docs/builtins.md can be written");
        return;
    }
    let kept = std::fs::read_to_string(doc_file()).expect("docs/builtins.md exists");
    if let Some(at) = kept.lines().zip(generated.lines()).position(|(a, b)| a != b) {
        panic!("docs/builtins.md differs from the tables in line {}: run with {REFRESH}=1 to write it anew", at + 1);
    }
    assert_eq!(kept.len(), generated.len(), "docs/builtins.md is not complete: run with {REFRESH}=1 to write it anew");
}

#[test]
fn every_builtin_has_a_text_and_a_transcript() {
    let lacking: Vec<String> = rows::all()
        .into_iter()
        .filter(|row| row.doc.text.is_empty() || row.doc.examples.is_empty())
        .map(|row| row.usage)
        .collect();
    assert!(lacking.is_empty(), "without text or transcript: {lacking:#?}");
}

/// Runs programs and reports all that give something else than they should.
fn check<'a>(programs: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mut wrong = Vec::new();
    for (source, expected) in programs {
        let found = shown(source);
        if found != expected {
            wrong.push(format!("{source}\n    expected {expected}\n    found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_transcript_of_the_reference_is_true() {
    let rows = rows::all();
    let examples = rows.iter().flat_map(|row| &row.doc.examples);
    check(examples.map(|example| (&*example.source, &*example.gives)));
}

#[test]
fn edges_of_collections() {
    check(cases::COLLECTIONS.iter().copied());
}

#[test]
fn edges_of_scalars_records_and_functions() {
    check(cases::SCALARS.iter().copied());
}

#[test]
fn edges_of_files_and_the_environment() {
    check(cases::FILES.iter().copied());
}
