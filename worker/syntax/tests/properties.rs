//! What holds for every text.

use proptest::prelude::*;
use shoal_syntax::{Names, Wanted, complete, describe, format, parse, tree_json};

/// Pieces that programs are made of, so that random texts reach deep into the grammar.
const PIECES: &[&str] = &[
    "let x = ",
    "var y: int = ",
    "fn f(a, b: str = \"d\") ",
    "if x ",
    "else ",
    "match x ",
    "for a in ",
    "while ",
    "try ",
    "catch e ",
    "with cwd: ",
    "spawn ",
    "return ",
    "x",
    "ls -a",
    "^git log",
    "echo ",
    "sh { x }",
    "=> ",
    "{ ",
    " }",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ".name",
    ".m(",
    "?.",
    ", ",
    ": ",
    "; ",
    "\n",
    " + ",
    " - ",
    " && ",
    " || ",
    " | ",
    " & ",
    " == ",
    " < ",
    " > ",
    " ?? ",
    "..",
    "...",
    "..=",
    "!",
    "-",
    "1",
    "2.5",
    "5kb",
    "1h30m",
    "10:30",
    "0x1f",
    "\"s\"",
    "\"a {x} b\"",
    "'raw'",
    "\"\"\"\n  a\n\"\"\"",
    "re\"x\"",
    "t\"2026-01-01\"",
    "*.rs",
    "--flag=",
    "-x",
    "~/a",
    "./b",
    "# c\n",
    "\\\n",
    "\\",
    "$x",
    "`",
    "é",
    "\"",
    "'",
    "null",
    "true",
    " in ",
    "_",
    "int n ",
    "import ",
    "use ./m as k",
    "alias g = git",
    "export ",
    "env.A = ",
    "A=1 ",
    "plan ",
    "assert ",
    "it",
    "=",
    "+= 1",
];

fn program() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![3 => program(), 1 => any::<String>(), 1 => "[ -~\n]{0,60}"]
}

fn without_places(mut value: serde_json::Value) -> serde_json::Value {
    fn forget(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(members) => {
                members.retain(|name, _| name != "span");
                members.values_mut().for_each(forget);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(forget),
            _ => {}
        }
    }
    forget(&mut value);
    value
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn parsing_gives_a_tree_or_places_of_mistakes(src in any_text(), session in any::<bool>()) {
        let names = Names { session, ..Names::script() };
        let parsed = parse(&src, &names);
        for diag in &parsed.diags {
            prop_assert!(src.get(diag.at.clone()).is_some(), "{diag:?}");
            prop_assert!(!diag.message().is_empty());
        }
        for span in &parsed.comments {
            prop_assert!(src.get(span.range()).is_some_and(|text| text.starts_with('#')));
        }
        prop_assert_eq!(parse(&src, &names), parsed);
    }

    #[test]
    fn the_json_form_reads_back(src in any_text()) {
        let json = tree_json::to_json(&parse(&src, &Names::script()).program);
        let program = tree_json::from_json(&json).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(tree_json::to_json(&program), json);
    }

    #[test]
    fn formatting_keeps_the_tree_and_settles(src in any_text()) {
        let names = Names::script();
        let parsed = parse(&src, &names);
        match format(&src, &names) {
            Err(diags) => prop_assert_eq!(diags, parsed.diags),
            Ok(text) => {
                let again = parse(&text, &names);
                prop_assert_eq!(&again.diags, &[]);
                let (one, other) = (tree_json::to_json(&parsed.program), tree_json::to_json(&again.program));
                prop_assert_eq!(without_places(one), without_places(other));
                prop_assert_eq!(again.comments.len(), parsed.comments.len());
                prop_assert_eq!(format(&text, &names), Ok(text));
            }
        }
    }

    #[test]
    fn any_place_can_be_completed_and_any_tree_described(src in any_text(), cursor in 0_usize..200) {
        let completion = complete(&src, cursor, &Names::script());
        prop_assert!(src.get(completion.replaces.clone()).is_some());
        prop_assert!(completion.candidates.is_sorted());
        prop_assert!(completion.wanted != Wanted::Flag || !src.is_empty());
        let description = describe(&parse(&src, &Names::script()).program);
        prop_assert!(description.head.is_none_or(|head| src.contains(&*head)));
    }
}
