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
fn deep_values_are_refused_when_built() {
    check(&[
        ("var v = []\nfor i in 0..2000 { v = [v] }\n1", "! too_large nested deeper"),
        ("var v = {}\nfor i in 0..990 { v = {v} }\n1", "1"),
    ]);
}
