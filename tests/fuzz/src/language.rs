//! The language: lexer and parser, formatter, units, JSON, rendering.

use shoal_syntax::Names;
use shoal_value::{render, select};

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
    Target { name: "syntax_tokens", run: tokens, seeds: SOURCES },
    Target { name: "syntax_format", run: formatted, seeds: SOURCES },
    Target {
        name: "value_parts",
        run: parts,
        seeds: &[
            b"a[0].b\n{\"a\":[{\"b\":[1,2,3]}]}",
            b"x[-1]\n{\"x\":[[1],\"text\"]}",
            b"['odd key']\n{\"odd key\":[{\"a\":1}]}",
        ],
    },
    Target {
        name: "value_render",
        run: rendered,
        seeds: &[
            br#"{"$":"list","v":[{"$":"int","v":1},{"$":"str","v":"\u001b[31mx\u0000"},{"$":"null"}]}"#,
            br#"{"$":"table","v":{"cols":{"a":[{"$":"int","v":1}],"b":[{"$":"str","v":"x"}]},"n":1}}"#,
            br#"{"$":"record","v":{"size":{"$":"size","v":1500},"d":{"$":"duration","v":1500000000}}}"#,
        ],
    },
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

/// The names, the words and the completion at every place of any source come without a panic, with and without a session.
fn tokens(bytes: &[u8]) {
    let parsed = shoal_syntax::parse_bytes(bytes, &Names::default());
    shoal_syntax::describe(&parsed.program);
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let names = Names { session: true, ..Names::script() };
    shoal_syntax::parse(source, &names);
    for cursor in [0, source.len() / 2, source.len()] {
        shoal_syntax::complete(source, source.floor_char_boundary(cursor), &names);
    }
}

/// A formatted source parses to the same tree, and formats to itself.
fn formatted(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let names = Names::default();
    let parsed = shoal_syntax::parse(source, &names);
    let Ok(text) = shoal_syntax::format(source, &names) else { return };
    let again = shoal_syntax::parse(&text, &names);
    assert!(again.diags.is_empty(), "{source:?} became {text:?}: {:?}", again.diags);
    assert_eq!(without_places(&parsed.program), without_places(&again.program), "{source:?} became {text:?}");
    assert_eq!(shoal_syntax::format(&text, &names).as_ref(), Ok(&text), "{source:?} became {text:?}");
}

/// The tree as JSON without the places of its nodes.
fn without_places(program: &shoal_syntax::ast::Program) -> serde_json::Value {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Object(members) => {
                members.remove("span");
                members.values_mut().for_each(strip);
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut tree = shoal_syntax::tree_json::to_json(program);
    strip(&mut tree);
    tree
}

/// A path picks a part or says why not, and a slice of a list is what slicing its items gives. The first line is the path,
/// the rest the value as JSON.
fn parts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((path, json)) = text.split_once('\n') else { return };
    let Ok(value) = shoal_value::json::parse(json) else { return };
    let Ok(part) = select::select(&value, path, &NoStore) else { return };
    if let shoal_value::Value::List(list) = &part {
        let (start, end) = (list.len() as u64 / 3, list.len() as u64);
        let sliced = select::slice(&part, start, end, &NoStore).expect("a list has slices");
        let expected = list.iter().skip(list.len() / 3).cloned().collect();
        let expected = shoal_value::Value::list(expected).expect("parts are no deeper than the whole");
        assert!(shoal_value::equal::equal(&sliced, &expected).expect("lists compare"), "{path} {json}");
    }
}

struct NoStore;

impl select::Store for NoStore {
    fn read(&self, _hash: &str, _start: u64, _end: u64) -> Option<Vec<u8>> {
        None
    }
}

/// Any value that can be read from the wire renders within the budget, without control characters, and is written as it
/// was read.
fn rendered(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(value) = shoal_value::wire::from_wire(text) else { return };
    let (inline, _) = render::inline_within(&value, 200);
    assert!(inline.len() <= 200 + 64, "{} bytes", inline.len());
    let block = render::block_within(&value, &render::Style::default(), None);
    assert!(!block.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{block:?}");
    if let Some(written) = shoal_value::wire::to_wire(&value, 1 << 20) {
        let again = shoal_value::wire::from_wire(&written).expect("what is written can be read");
        assert_eq!(shoal_value::wire::to_wire(&again, 1 << 20).as_ref(), Some(&written));
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
