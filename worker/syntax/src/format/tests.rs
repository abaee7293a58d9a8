use super::*;

#[track_caller]
fn check(src: &str, expected: &str) {
    let parsed = parse(src, &Names::script());
    assert_eq!(parsed.diags, [], "{src}");
    let text = print(src, &parsed);
    assert_eq!(text, expected);
    let again = parse(&text, &Names::script());
    assert_eq!(again.diags, [], "{text}");
    assert_eq!(shape(&again), shape(&parsed), "{text}");
    assert_eq!(print(&text, &again), text);
}

#[test]
fn blanks_and_lines_are_made_anew() {
    check("let   x=1 ;var y : int=2", "let x = 1\nvar y: int = 2\n");
    check("ls   -a   --x=(1 +2)  >  f", "ls -a --x=(1 +2) > f\n");
    check("if x==1{ls}else if y{2}else{3;4}", "if x == 1 { ls } else if y { 2 } else {\n    3\n    4\n}\n");
    check("fn f(a:int=1,...r:list<int>)->int?{a}", "fn f(a: int = 1, ...r: list<int>) -> int? { a }\n");
    check("for [k,v] in r.items(){echo (k)}", "for [k,v] in r.items() { echo (k) }\n");
    check("xs.map(.a+1,k:2).each{ n+=1 }", "xs.map(.a + 1, k: 2).each { n += 1 }\n");
    check("match x{1|2=>\"a\";_=>{}}", "match x { 1 | 2 => \"a\", _ => {} }\n");
    check("A=1   ^make -j4 &", "A=1 ^make -j4 &\n");
    check("let f = (a,b)=>{a:a}", "let f = (a, b) => {a: a}\n");
    check("assert x \"m\"", "assert x, \"m\"\n");
    check("let r = {a,}", "let r = {a,}\n");
}

#[test]
fn what_was_broken_stays_broken() {
    check("[1,2]\n.map(.a)\n  .sum()", "[1, 2]\n    .map(.a)\n    .sum()\n");
    check("let r = {\na: 1,\nb: [\n1,2]}", "let r = {\n    a: 1,\n    b: [\n        1,\n        2,\n    ],\n}\n");
    check("let x = a +\nb", "let x = a +\n    b\n");
    check("^false\ncatch \"x\"", "^false\ncatch \"x\"\n");
    check("(ls . \n -a)", "(ls . -a)\n");
}

#[test]
fn comments_are_kept() {
    check("# a\n\n\nlet x = 1 # b\n# c", "# a\n\nlet x = 1 # b\n# c\n");
    check(
        "fn f() { # why\n  # first\n  ls # second\n  # last\n}",
        "fn f() { # why\n    # first\n    ls # second\n    # last\n}\n",
    );
    check("# doc\nfn f() { 1 }", "# doc\nfn f() { 1 }\n");
    check("# no doc\n\nfn f() { 1 }", "# no doc\n\nfn f() { 1 }\n");
    check("let x = [ # one\n 1,\n]", "let x = [ # one\n 1,\n]\n");
    check("match x {\n # c\n 1 => 2 # d\n}", "match x {\n    # c\n    1 => 2 # d\n}\n");
}

#[test]
fn text_over_lines_is_left_alone() {
    check("let s = \"\"\"\n  a\n    {x}\n  \"\"\"", "let s = \"\"\"\n  a\n    {x}\n  \"\"\"\n");
    check("sh {\n  echo   hi\n}.out", "sh {\n  echo   hi\n}.out\n");
}

#[test]
fn a_source_that_does_not_parse_is_an_error() {
    let diags = format("let = 1", &Names::script()).unwrap_err();
    assert_eq!(diags.len(), 1);
}

/// Statements that combine into programs which mostly parse.
const STATEMENTS: &[&str] = &[
    "let x=1",
    "var r={a:1,b}",
    "ls -a  *.rs > f",
    "# c",
    "",
    "1 # d",
    "if x{ls}else{2}",
    "match x{1|2=>3;_=>{}}",
    "match x {\n# e\nint n if n>1=>n # f\n}",
    "xs.map(.a+1).each{ y }",
    "  .where(.b)\n.len()",
    "catch e { e.msg }",
    "^false",
    "a && b c || d",
    "let g=(a,[b,c])=>{a:b}",
    "sh { a | b }.out",
    "\"\"\"\n  a {x}\n\"\"\"",
    "A=1 B='x' cmd &",
    "plan cp a b",
    "alias q=git -C (x)",
    "use ./m as k",
    "return",
    "return 1..=2",
    "x += [1,\n2, # g\n]",
    "(ls\n-a)",
    "f(1,a:2){3}",
    "assert x 'm'",
    "env.A='b'",
    "let y = a+\nb",
    "x?.b[1]",
    "-x.y",
    "!z;;",
    "export let w=5kb",
    "spawn{1}",
    "f(\n.a,\nb: x=>y,\n)",
];

/// What can stand around statements.
const AROUND: &[(&str, &str)] = &[
    ("if true {", "}"),
    ("fn f(a:int=1)->int { # h\n", "}"),
    ("xs.map(x=>{", "})"),
    ("with cwd:\"x\",env:{A:1} {\n", "\n}"),
    ("try {", "} catch _ { 1 }"),
    ("for [k,v] in r{\n", "\n}"),
    ("while x{", "\n}.a"),
    ("match x { 1 => {", "} }"),
    ("plan {", "}"),
    ("let v = if x { ", "\n}\nelse { 2 }"),
];

mod unguarded {
    use proptest::prelude::*;

    use super::*;

    fn program() -> impl Strategy<Value = String> {
        let statement = prop::sample::select(STATEMENTS).prop_map(str::to_owned);
        let nested = statement.prop_recursive(3, 12, 4, |inner| {
            let around = prop::sample::select(AROUND);
            (around, prop::collection::vec(inner, 0..4))
                .prop_map(|((open, close), inner)| format!("{open}{}\n{close}", inner.join("\n")))
        });
        prop::collection::vec(nested, 1..5).prop_map(|statements| statements.join("\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 600, max_global_rejects: 20_000, failure_persistence: None, ..ProptestConfig::default()
        })]

        #[test]
        fn printing_keeps_the_tree(src in program()) {
            let parsed = parse(&src, &Names::script());
            prop_assume!(parsed.diags.is_empty());
            let text = print(&src, &parsed);
            let again = parse(&text, &Names::script());
            prop_assert_eq!(&again.diags, &[], "{}", text);
            prop_assert_eq!(shape(&again), shape(&parsed), "{}", text);
            prop_assert_eq!(again.comments.len(), parsed.comments.len());
            prop_assert_eq!(print(&text, &again), text);
        }
    }
}
