//! Trees of programs, written as `(kind members...)` without places, empty lists, nulls and falses.

use std::collections::HashSet;

use serde_json::Value;
use shoal_syntax::ast::Name;
use shoal_syntax::{Names, parse, tree_json};

fn brief(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let parts: Vec<String> = members
                .iter()
                .filter(|(name, value)| *name != "span" && !is_empty(value))
                .map(|(name, value)| match value {
                    Value::Bool(true) => name.clone(),
                    _ => brief(value),
                })
                .collect();
            format!("({})", parts.join(" "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(brief).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.iter().all(|(name, value)| name == "span" || is_empty(value)),
        _ => false,
    }
}

#[track_caller]
fn tree_with(src: &str, names: &Names) -> String {
    let parsed = parse(src, names);
    assert_eq!(parsed.diags, [], "{src}");
    let json = tree_json::to_json(&parsed.program);
    let stmts = json["stmts"].as_array().unwrap();
    let text: Vec<String> = stmts
        .iter()
        .map(|stmt| match stmt.get("expr") {
            Some(expr) if stmt["kind"] == "expr" => brief(expr),
            _ => brief(stmt),
        })
        .collect();
    text.join("\n")
}

#[track_caller]
fn check(rows: &[(&str, &str)]) {
    for (src, expected) in rows {
        assert_eq!(tree_with(src, &Names::script()), *expected, "{src}");
    }
}

/// Both texts give the same tree.
#[track_caller]
fn same(rows: &[(&str, &str)]) {
    for (one, other) in rows {
        assert_eq!(tree_with(one, &Names::script()), tree_with(other, &Names::script()), "{one}\n{other}");
    }
}

#[test]
fn operators_bind_by_the_table() {
    check(&[
        ("1 + 2 * 3", "(binary add (int 1) (binary mul (int 2) (int 3)))"),
        ("1 - 2 - 3", "(binary sub (binary sub (int 1) (int 2)) (int 3))"),
        ("-2.abs()", "(unary neg (method_call (int 2) abs))"),
        ("!a.b(1)", "(unary not (method_call (var a) b ([(int 1)])))"),
        ("1..2 + 3", "(range (int 1) (binary add (int 2) (int 3)))"),
        ("(1) ?? (2) || (3)", "(binary coalesce (int 1) (binary or (int 2) (int 3)))"),
        ("1 + 2 catch 5 + 1", "(catch (binary add (int 1) (int 2)) (binary add (int 5) (int 1)))"),
        ("(1 < 2) == true", "(binary eq (binary lt (int 1) (int 2)) (bool value))"),
        ("(1 in [1])", "(binary in (int 1) (list [(int 1)]))"),
        ("let x = 1 +\n 2", "(let (bind x) (binary add (int 1) (int 2)))"),
    ]);
}

#[test]
fn a_statement_is_a_command_or_an_expression() {
    check(&[
        ("ls", "(cmd (ls))"),
        ("./run.sh x", "(cmd (./run.sh [(word x)]))"),
        ("~", "(cmd (~))"),
        ("^ls", "(cmd (ls forced))"),
        ("let ls = 5\nls", "(let (bind ls) (int 5))\n(var ls)"),
        ("now - 1h", "(binary sub (var now) (duration 3600000000000))"),
        ("^now", "(cmd (now forced))"),
        ("pwd == x", "(cmd (pwd [(word ==) (word x)]))"),
        ("not x", "(cmd (not [(word x)]))"),
        ("x=5", "(assign (var x) set (int 5))"),
        ("x=5 + 3", "(assign (var x) set (binary add (int 5) (int 3)))"),
        ("CC=gcc make", "(cmd (make [(CC (word gcc))]))"),
        ("A=1 B=\"x y\" c", "(cmd (c [(A (word 1)) (B (str (str x y)))]))"),
        ("env.PATH = \"x\"", "(assign (field (var env) PATH) set (str x))"),
        ("math", "(var math)"),
        ("http GET url", "(cmd (http [(word GET) (word url)]))"),
        ("json.parse('1')", "(method_call (var json) parse ([(str 1)]))"),
        ("fn f() { 1 }\nf 1", "(fn (f ([(expr (int 1))])))\n(cmd (f [(word 1)]))"),
        ("assert 1 == 1 \"m\"", "(fn_call assert ([(binary eq (int 1) (int 1)) (str m)]))"),
        ("assert(true)", "(fn_call assert ([(bool value)]))"),
        ("let x = ls", "(let (bind x) (var ls))"),
        ("(ls)", "(cmd (ls))"),
        ("true && git push", "(binary and (bool value) (cmd (git [(word push)])))"),
        ("a && b || c", "(binary or (binary and (cmd (a)) (cmd (b))) (cmd (c)))"),
        ("\"{ls}\"", "(str_interp [(expr (var ls))])"),
        ("\"{ls .}\"", "(str_interp [(expr (cmd (ls [(word .)])))])"),
    ]);
}

#[test]
fn a_session_gives_names_and_continues_its_result() {
    let set = |names: &[&str]| names.iter().map(|name| Name::from(*name)).collect::<HashSet<Name>>();
    let names = Names::session(set(&["x"]), set(&["deploy"]));
    assert_eq!(tree_with("x + 1", &names), "(binary add (var x) (int 1))");
    assert_eq!(tree_with("deploy x", &names), "(cmd (deploy [(word x)]))");
    assert_eq!(tree_with(".name", &names), "(field (var it) name)");
    assert_eq!(tree_with(".len() + 1", &names), "(binary add (method_call (var it) len) (int 1))");
    assert_eq!(tree_with("it + out[1]", &names), "(binary add (var it) (index (var out) (int 1)))");
}

#[test]
fn words() {
    check(&[
        ("x --a --b=c --d= e", "(cmd (x [(flag_long a) (flag_long b (word c)) (flag_long d (word )) (word e)]))"),
        ("x --b=\"q\" --z=(5)", "(cmd (x [(flag_long b (str (str q))) (flag_long z (expr (int 5)))]))"),
        ("x -abc - -- -1.5", "(cmd (x [(flag_short abc) (dash) (dash_dash) (word -1.5)]))"),
        ("x *.rs --i=*.rs http://h/x?a=1", "(cmd (x [(glob *.rs) (flag_long i (word *.rs)) (word http://h/x?a=1)]))"),
        ("x [ab].txt \"*\" '-x'", "(cmd (x [(glob [ab].txt) (str (str *)) (str (str -x))]))"),
        ("x ~ ~/a ./b ../c /d ver#2", "(cmd (x [(path ~) (path ~/a) (path ./b) (path ../c) (path /d) (word ver#2)]))"),
        ("x a\"b\"c", "(cmd (x [(joined [(word a) (str (str b)) (word c)] word)]))"),
        (
            "x *\"a b\" \"a\"*",
            "(cmd (x [(joined [(word *) (str (str a b))] glob) (joined [(str (str a)) (word *)] word)]))",
        ),
        ("x out/(1).txt (1)", "(cmd (x [(joined [(word out/) (expr (int 1)) (word .txt)] word) (expr (int 1))]))"),
        ("make CC=gcc > f 2", "(cmd (make [(word CC=gcc) (word 2)] [(out (word f))]))"),
        ("x 2 > f >> g < h", "(cmd (x [(word 2)] [(out (word f)) (append (word g)) (in (word h))]))"),
        ("x a\\ b", "(cmd (x [(word a\\) (word b)]))"),
        ("x a \\\n b", "(cmd (x [(word a) (word b)]))"),
        ("x &", "(cmd (x background))"),
        ("x catch 5", "(cmd (x [(word catch) (word 5)]))"),
        ("plan cp a b", "(cmd (plan [(expr (cmd (cp [(word a) (word b)])))]))"),
        ("plan { 1 }", "(cmd (plan ([(expr (int 1))])))"),
        ("alias g = git -C (x)", "(alias g (git [(flag_short C) (expr (cmd (x)))]))"),
        ("use ./lib/a as b", "(use ./lib/a b (path ./lib/a))"),
    ]);
}

#[test]
fn calls_and_the_implicit_item() {
    check(&[
        ("f(1, a: 2, 3)", "(fn_call f ([(int 1) (int 3)] [(a (int 2))]))"),
        ("f(1)(2)", "(call (fn_call f ([(int 1)])) ([(int 2)]))"),
        ("xs.map(.n)", "(method_call (var xs) map ([(lambda [(item)] (field (var item implicit) n) implicit)]))"),
        ("f(1) { 2 }", "(fn_call f ([(int 1) (lambda (block ([(expr (int 2))])) thunk)]))"),
        ("xs.each { 1 }", "(method_call (var xs) each ([(lambda (block ([(expr (int 1))])) thunk)]))"),
        ("xs.feed(sort -r)", "(method_call (var xs) feed ([(cmd (sort [(flag_short r)]))]))"),
        ("a?.b?.c()", "(method_call (field (var a) b optional) c optional)"),
        ("x[1].y", "(field (index (var x) (int 1)) y)"),
        ("(x => x + 1)(5)", "(call (lambda [(x)] (binary add (var x) (int 1))) ([(int 5)]))"),
        ("let f = ([k, v], n: int) => k", "(let (bind f) (lambda [( (list [(bind k) (bind v)])) (n (int))] (var k)))"),
    ]);
    let item = |arg: &str| tree_with(&format!("xs.m({arg})"), &Names::script()).matches("implicit)").count();
    for (arg, lambdas) in [(".a > 0 && .b", 1), ("-.n", 1), ("{n: .a}", 1), ("\"{.a}\"", 1), ("(.a)", 1), ("[.a]", 1)] {
        assert!(tree_with(&format!("xs.m({arg})"), &Names::script()).ends_with("implicit)]))"), "{arg}");
        assert!(item(arg) >= lambdas, "{arg}");
    }
    let nested = tree_with("xs.where(.tags.any(.hot))", &Names::script());
    assert_eq!(nested.matches("[(item)]").count(), 2, "{nested}");
    for arg in ["if .a { .b } else { .c }", "match .a { 1 => .b }", "try { .a } catch e { .b }", "with cwd: .a { .b }"]
    {
        assert!(tree_with(&format!("xs.m({arg})"), &Names::script()).contains("[(item)]"), "{arg}");
    }
}

#[test]
fn braces() {
    check(&[
        ("{ probe, answer: 42 }", "(record [(probe (var probe)) (answer (int 42))])"),
        ("{}", "(record)"),
        ("{ x }", "(block ([(expr (cmd (x)))]))"),
        ("{'a b': 1, if: 2}", "(record [(a b (int 1)) (if (int 2))])"),
        ("let f = () => {}", "(let (bind f) (lambda (block)))"),
        ("let f = x => { a: x }", "(let (bind f) (lambda [(x)] (record [(a (var x))])))"),
        ("if r.ok { 1 }", "(if (field (var r) ok) ([(expr (int 1))]))"),
        ("for f in g(\"x\") { 1 }", "(for (bind f) (fn_call g ([(str x)])) ([(expr (int 1))]))"),
        ("match {a: 1} { _ => 1 }", "(match (record [(a (int 1))]) [([(wildcard)] (int 1))])"),
        ("with cwd: path(\"x\") { 1 }", "(with (fn_call path ([(str x)])) ([(expr (int 1))]))"),
        ("if x && y z { 1 }", "(if (binary and (var x) (cmd (y [(word z)]))) ([(expr (int 1))]))"),
        (
            "if a { 1 }\nelse if b { 2 }\nelse { 3 }",
            "(if (var a) ([(expr (int 1))]) (if (var b) ([(expr (int 2))]) (block ([(expr (int 3))]))))",
        ),
    ]);
}

#[test]
fn patterns() {
    check(&[
        (
            "match v { int n => n; str _ => 1; error => 2 }",
            "(match (var v) [([(type (int) n)] (var n)) ([(type (str))] (int 1)) ([(bind error)] (int 2))])",
        ),
        (
            "match v { -1..=-2 => 1, -2.5 => 2, re\"x\" => 3 }",
            "(match (var v) [([(range -1 -2 inclusive)] (int 1)) ([(lit (float -2.5))] (int 2)) ([(lit (regex x))] (int 3))])",
        ),
        ("match v { {a, b: [x, ..._]} => 1 }", "(match (var v) [([(record [(a) (b (list [(bind x)] _))])] (int 1))])"),
        ("match v { n if n > limit => n }", "(match (var v) [([(bind n)] (binary gt (var n) (var limit)) (var n))])"),
        ("let [a, ...rest] = xs", "(let (list [(bind a)] rest) (var xs))"),
    ]);
}

#[test]
fn catch_binds_a_name_only_before_a_handler() {
    check(&[
        ("let a = x catch null", "(let (bind a) (catch (var x) (null)))"),
        ("let a = x catch y", "(let (bind a) (catch (var x) (var y)))"),
        ("let a = x catch f(1)", "(let (bind a) (catch (var x) (fn_call f ([(int 1)]))))"),
        ("let a = x catch e \"s\"", "(let (bind a) (catch (var x) e (str s)))"),
        ("let a = x catch e { e.msg }", "(let (bind a) (catch (var x) e (block ([(expr (field (var e) msg))]))))"),
        ("let a = x catch e (e)", "(let (bind a) (catch (var x) e (var e)))"),
        ("^false\ncatch \"s\"", "(catch (cmd (false forced)) (str s))"),
        ("try { 1 } catch _ { 2 }", "(try ([(expr (int 1))]) ([(expr (int 2))]))"),
    ]);
}

#[test]
fn lines_continue_where_the_rules_say() {
    same(&[
        ("[1, 2]\n  # c\n\n  .map(.a)\n  .sum()", "[1, 2].map(.a).sum()"),
        ("ls .\n  .len()", "(ls .).len()"),
        ("(ls\n .\n -a)", "(ls . -a)"),
        ("(ls\n .len())", "((ls).len())"),
        ("f(\n1,\n2,\n)", "f(1, 2)"),
        (";;1;;", "1"),
        ("x\n./y", "x; ./y"),
        ("1\n(2)", "1; (2)"),
        ("1\n[2]", "1; [2]"),
        ("let f = x =>\n x", "let f = x => x"),
        ("#!/usr/bin/env shoal\n1 # c", "1"),
        ("{ a,\n b: 1\n}", "{a, b: 1}"),
        ("{ a: 1 }\n{ b: 1 }", "{ a: 1 }; { b: 1 }"),
    ]);
}

#[test]
fn interpreter_blocks_hold_raw_text() {
    check(&[
        ("sh { echo \"}\" '{' }", "(lang_block sh echo \"}\" '{')"),
        ("sh'''a { b'''.out", "(field (lang_block sh a { b) out)"),
        ("python3 {\n    a\n      b\n}", "(lang_block python3 a\n  b)"),
        ("sh -c 'x'", "(cmd (sh [(flag_short c) (str (str x))]))"),
    ]);
}

#[test]
fn functions_keep_types_and_the_comment_above() {
    check(&[
        (
            "# Adds.\n#  Twice.\nfn f(a: int, b: list<str>? = null, ...c) -> int? { a }",
            "(fn (f [(a (int)) (b (list [(str)] optional) (null))] (c) (int optional) ([(expr (var a))]) Adds.\n Twice.))",
        ),
        ("# far\n\nexport fn f() { }", "(fn (f exported))"),
        ("export let x: float = 1", "(let (bind x) (float) (int 1) exported)"),
    ]);
}

#[test]
fn places_are_bytes_of_the_whole_source() {
    let src = "\"é {x + 1}\"";
    let json = tree_json::to_json(&parse(src, &Names::script()).program);
    let hole = &json["stmts"][0]["expr"]["parts"][1]["expr"]["span"];
    let span = hole["start"].as_u64().unwrap() as usize..hole["end"].as_u64().unwrap() as usize;
    assert_eq!(&src[span], "x + 1");
}
