//! Deep and hostile sources: everything that walks a tree works at the nesting limit on a small stack, and reading does
//! not take more time than the length of the source allows.

use shoal_syntax::{MAX_NESTING, Names, format, parse, tree_json};

/// Constructs that nest, and how many levels of nesting one of them takes.
const CONSTRUCTS: &[(&str, &str, usize)] = &[
    ("(", ")", 1),
    ("[", "]", 1),
    ("{a: ", "}", 1),
    ("{ let a = ", "}", 1),
    ("f(", ")", 1),
    ("x => ", "", 1),
    ("\"{", "}\"", 1),
    ("-", "", 1),
    ("1 ?? (", ")", 2),
    ("1 catch e ", "", 1),
    ("match 1 { _ => ", "}", 1),
    ("if true { 1 } else { ", "}", 2),
    ("try { 1 } catch e { ", "}", 1),
    ("spawn { ", "}", 1),
    ("with cwd: \"x\" { ", "}", 1),
    ("xs.map(.a + ", ")", 2),
    ("(echo (", "))", 2),
    ("(plan (", "))", 3),
    ("(echo a { ", "})", 2),
];

fn deep(open: &str, close: &str, levels: usize) -> String {
    format!("let v = {}null{}", open.repeat(levels), close.repeat(levels))
}

#[test]
fn trees_at_the_limit_can_be_walked() {
    for (open, close, weight) in CONSTRUCTS {
        let src = deep(open, close, (MAX_NESTING - 20) / weight);
        let parsed = parse(&src, &Names::script());
        assert_eq!(parsed.diags, [], "{open}");
        let copy = parsed.clone();
        assert_eq!(copy, parsed);
        assert!(format!("{:?}", parsed.program).len() > src.len());
        let json = tree_json::to_json(&parsed.program);
        assert!(tree_json::from_json(&json).is_ok(), "{open}");
        assert!(format(&src, &Names::script()).is_ok(), "{open}");
    }
}

#[test]
fn hostile_sources_end() {
    let names = Names::script();
    for piece in [
        "(",
        "[",
        "{",
        "\"{",
        "'",
        "-",
        "x => ",
        "a.b",
        "f(",
        "((a, b) ",
        "([{a: ",
        "{ x: ",
        "match x { ",
        "1 + ",
        "A=1 ",
        "x (",
        "\"\"\"{",
        "sh {",
        "# \n",
        "else ",
        "}",
        ")",
        "\\\n",
        "a=b",
        "$",
        "if x { ",
        "catch ",
        "\u{e9}",
        "<",
        "`",
    ] {
        let src = piece.repeat(400_000 / piece.len());
        let parsed = parse(&src, &names);
        assert!(parsed.diags.len() <= 20, "{piece:?}");
    }
}
