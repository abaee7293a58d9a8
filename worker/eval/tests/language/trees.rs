//! Functions that are evaluated as trees, beside the same functions with a variable of their own, which have none.

use proptest::prelude::*;

use crate::support::TestHost;
use crate::verdict::run;

/// Expressions over a parameter `x`, as source. All parentheses are written.
fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => Just("x".to_owned()),
        1 => Just("x.a".to_owned()),
        1 => Just("x.r.b".to_owned()),
        2 => prop::sample::select(vec!["0", "1", "2", "-3", "9223372036854775807", "1.5"]).prop_map(String::from),
        1 => prop::sample::select(vec!["\"a\"", "\"Ab c\"", "true", "null", "k", "[1]"]).prop_map(String::from),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = vec!["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||"];
        prop_oneof![
            6 => (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            2 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(c, a, b)| format!("(if {c} {{ {a} }} else {{ {b} }})")),
            2 => (inner.clone(), prop::sample::select(vec!["len", "upper", "trim", "abs", "keys", "sum", "str"]))
                .prop_map(|(a, method)| format!("({a}).{method}()")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}).starts_with({b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{p: {a}, q: {b}}}")),
            1 => inner.clone().prop_map(|a| format!("\"v{{{}}}\"", a.replace('"', "'"))),
            2 => inner.clone().prop_map(|a| format!("down({a})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("pick({a}, {b})")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("grown({a}, {b})")),
        ]
    })
}

/// A program that calls a function of this body by name and for items, with what fails told by its code.
fn program(items: &[&str], body: &str, is_tree: bool) -> String {
    // With a variable of its own it has no tree.
    let body = if is_tree { body.to_owned() } else { format!("let own = 0; {body}") };
    let items = items.join(", ");
    format!(
        "let k = 7
        fn down(n) {{ if n < 1 {{ n }} else {{ down(n - 1) }} }}
        fn pick(a, b) {{ if a == b {{ a }} else {{ b }} }}
        fn grown(text, n) {{ if n < 1 {{ text }} else {{ grown(text, n - 1) + text }} }}
        fn f(x) {{ {body} }}
        let xs = [{items}]
        let ints = (0..9)
        let each = xs.map(x => (f(x) catch e {{ e.code }}))
        let all = (xs.map(x => {{ {body} }}) catch e {{ e.code }})
        let ints = (ints.map(x => {{ {body} }}) catch e {{ e.code }})
        let kept = (xs.where(x => {{ {body} }}) catch e {{ e.code }})
        let one = (xs.reduce(0, (acc, x) => {{ {body} }}) catch e {{ e.code }})
        [each, all, ints, kept, one]"
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_gives_what_the_usual_way_gives(
        body in expressions(),
        items in prop::collection::vec(
            prop::sample::select(vec![
                "1", "0", "-2", "40", "\"a\"", "\"\"", "\"Ab c\"", "true", "null", "2.5", "[1, 2]", "{a: 1}",
                "{a: \"t\", r: {b: 3}}", "{r: {b: 3}, a: 5}", "{len: y => y, a: null}", "3kb", "9223372036854775807",
            ]),
            1..5,
        ),
    ) {
        let host = TestHost::new();
        let (tree, usual) = (run(&host, &program(&items, &body, true)), run(&host, &program(&items, &body, false)));
        prop_assert_eq!(tree, usual, "{}", program(&items, &body, true));
    }
}

#[test]
fn calls_inside_each_other_do_not_double_their_work() {
    let host = TestHost::new();
    let programs = [
        // Each would take 2^100 evaluations if an argument or an operand were evaluated once for each type it may be of.
        "fn id(t) { t }\nfn f(n) { if n == 0 { \"a\" } else { id(f(n - 1)) } }\nf(100).len()",
        "fn f(n) { if n == 0 { \"a\" } else { f(n - 1) + \"b\" } }\nf(100).len()",
        "fn id(t) { t }\nfn f(n) { if n == 0 { \"a\" } else { id(f(n - 1) + \"b\") } }\nf(100).len()",
        "fn f(n) { if n == 0 { \"a\" } else { f(n - 1).upper() + \"b\" } }\nf(100).len()",
        "fn f(n) { if n == 0 { true } else { !f(n - 1) } }\nif f(100) { 1 } else { 0 }",
    ];
    let results = programs.map(|source| run(&host, source));
    let wanted = ["1", "101", "101", "101", "1"].map(|text| crate::verdict::Verdict::Value(text.to_owned()));
    assert_eq!(results, wanted);
}
