//! Limits that no program may cross or crash on.

use crate::acceptance::check;

#[test]
fn ten_thousand_nested_calls_over_every_route() {
    check(&[
        ("fn down(n: int) { if n == 0 { 0 } else { down(n - 1) } }\ndown(9000)", "0"),
        ("fn down(n) { if n == 1 { 0 } else { down(n - 1) } }\ndown(10000)", "0"),
        ("fn down(n) { if n == 1 { 0 } else { down(n - 1) } }\ndown(10001)", "! recursion_limit"),
        ("fn f() { f() }\nf()", "! recursion_limit"),
        ("fn f() { f }\nf", "! recursion_limit"),
        ("let f = null\nvar g = null\ng = () => g()\ng()", "! recursion_limit"),
        ("fn f() { [1].map(x => f()) }\nf()", "! recursion_limit"),
        ("fn f() { [1].each { f() } }\nf()", "! recursion_limit"),
        ("fn f() { [2, 1].sort_by(x => f()) }\nf()", "! recursion_limit"),
        ("fn f() { {a: 1}.map_values(x => f()) }\nf()", "! recursion_limit"),
        ("fn f() { retry(1) { f() } }\nf()", "! recursion_limit"),
        ("fn f() { [1].stream().map(x => f()).collect() }\nf()", "! recursion_limit"),
        ("alias a = b\nfn b() { a }\nb", "! recursion_limit"),
        ("let r = {f: x => x}\nfn g(r) { r.f(r) }\nlet q = {f: r => g(r)}\ng(q)", "! recursion_limit"),
        ("fn f() { f() catch e { raise(e) } }\nf()", "! recursion_limit"),
        ("fn f(n) { try { f(n + 1) } catch e { e.code } }\nf(0)", "\"recursion_limit\""),
        ("fn f() { \"{f()}\" }\nf()", "! recursion_limit"),
        ("fn f() { with env: {A: \"1\"} { f() } }\nf()", "! recursion_limit"),
    ]);
}

#[test]
fn calls_by_name_mean_what_the_name_means_when_they_run() {
    check(&[
        // Declared anew between two calls, here and from within a function that calls it.
        ("fn f() { 1 }\nlet g = () => f()\nvar all = [g(), g()]\nfn f() { 2 }\nall += [g(), g()]\nall", "[1, 1, 2, 2]"),
        (
            "save(\"s.shl\", 'fn f() { 2 }')\nfn f() { 1 }\nfn g() { let a = f()\nsource s.shl\n[a, f()] }\n[g(), g()]",
            "[[1, 2], [2, 2]]",
        ),
        ("var f = x => x\nlet a = [f(1), f(1)]\nf = x => x + 1\n[a, f(1), f(1)]", "[[1, 1], 2, 2]"),
        // Called in ways that take turns: by name, as a value, from a builtin, with arguments by name or left out.
        (
            "fn f(a, b = 10) { if a > 3 { a + b } else { f(a + 1, b) } }\nlet g = f\n\
             [f(1), g(1), f(b: 1, 2), f(1, 2), [1, 2].map(x => f(x, 0)), [1].map(f)]",
            "[14, 14, 5, 6, [4, 4], [14]]",
        ),
        (
            "fn even(n) { if n == 0 { true } else { odd(n - 1) } }\nfn odd(n) { if n == 0 { false } else { even(n - 1) } }\n\
             [even(9000), odd(9001), even(7)]",
            "[true, true, false]",
        ),
        ("fn f(n: int, half: float) -> str { \"{n} {half}\" }\n[f(1, 2), f(3, 0.5)]", "[\"1 2\", \"3 0.5\"]"),
        ("fn f(n: int) { n }\nlet a = f(1)\nf(\"x\")", "! arg_error argument `n`: expected int, found str"),
        ("fn f(n) { n }\nlet a = [f(1), f(2)]\nf(1, 2)", "! arg_error expected 1 argument, got 2"),
        ("fn f(n) -> int { n }\nlet a = [f(1), f(2)]\nf(\"x\")", "! type_error f returned str, expected int"),
    ]);
}

#[test]
fn a_call_by_name_that_fails_leaves_its_callers_as_they_were() {
    check(&[
        (
            "fn f(n) { if n == 0 { raise(\"end\") } else { 1 + f(n - 1) } }\n\
             fn g(n) { let a = n * 2\nlet b = f(n) catch e { a }\na + b }\n[g(3), g(4), g(0)]",
            "[12, 16, 0]",
        ),
        (
            "fn f(n) { for i in 0..9 { with env: {A: \"{n}\"} { if i == n { return env.A } } } }\n\
             [f(2), f(3), env.A, f(10)]",
            "[\"2\", \"3\", null, null]",
        ),
        (
            "fn f(n) { var all = []\nfor i in 0..n { let k = i\nall += [() => k + f(i).len()] }\nall }\nf(4).map(g => g())",
            "[0, 2, 4, 6]",
        ),
        (
            "fn f(n) { if n > 2 { 1 / 0 } else { f(n + 1) } }\nlet e = try { f(0) } catch e { e }\n[e.code, f(0) catch 7]",
            "[\"div_zero\", 7]",
        ),
    ]);
}

#[test]
fn deep_values_are_refused_when_built() {
    check(&[
        ("var v = []\nfor i in 0..2000 { v = [v] }\n1", "! too_large nested deeper"),
        ("var v = {}\nfor i in 0..990 { v = {v} }\n1", "1"),
    ]);
}
