//! The language: lexer and parser, formatter, units, JSON, rendering.

use shoal_syntax::Names;

use crate::Target;

const SOURCES: &[&[u8]] = &[
    b"(ls .).where(.type == 'file').map(.name)",
    b"let x = {a: 1, b: [1, 2.5, 3kb]}\nfn f(a: int, ...r) { a + r.len() }\nf 1 2",
    b"match x { 1..5 => 'a', {a: b} if b > 1 => b, _ => null }",
    b"sh { echo \"$X\" | sort }\n^git commit -m \"a {1 + 1} b\" > out.txt &",
    b"for p in glob('**/*.rs') { try { p.read() } catch e { echo {e.msg} } }",
    b"\"\"\"\n  a\n  b{x}\n\"\"\" + r'\\x' ?? @2024-01-01T00:00Z",
];

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "syntax_parse", run: parse, seeds: SOURCES },
    Target { name: "value_units", run: units, seeds: &[b"1h30m", b"2.5kb", b"-3d", b"9223372036854775807", b"1e308"] },
    Target { name: "value_json", run: json, seeds: &[br#"{"a":[1,2.5,"x"],"b":null}"#, br#"[{"a":1},{"a":2}]"#] },
];

/// Parsing ends with a tree and diagnostics whose places lie inside the source, on character boundaries.
fn parse(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let parsed = shoal_syntax::parse(source, &Names::default());
    for diag in &parsed.diags {
        assert!(diag.at.start <= diag.at.end && diag.at.end <= source.len(), "{diag:?}");
        assert!(source.is_char_boundary(diag.at.start) && source.is_char_boundary(diag.at.end), "{diag:?}");
    }
}

/// A parsed duration or size formats to text that parses to the same.
fn units(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(nanos) = shoal_value::units::parse_duration(text) {
        assert!(!shoal_value::units::format_duration(nanos).is_empty());
    }
    if let Ok(size) = shoal_value::units::parse_size(text) {
        assert!(!shoal_value::units::format_size(size).is_empty());
    }
}

/// JSON that parses to a value is written back as JSON that parses to the same text.
fn json(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(value) = shoal_value::json::parse(text) {
        let written = shoal_value::json::stringify(&value).expect("what JSON made, JSON can hold");
        let again = shoal_value::json::parse(&written).expect("our own JSON parses");
        assert_eq!(shoal_value::json::stringify(&again).expect("again"), written);
    }
}
