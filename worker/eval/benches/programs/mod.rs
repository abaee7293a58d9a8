//! The work that `against_python.py` does in Python too: the same names, the same results.

/// What the programs work on, made once: `n` items of each kind.
pub(crate) fn data(n: u32) -> String {
    format!(
        "let n = {n}
        let calls = n / 100
        let ints = (0..n).map(i => i * 7919 % 1000003)
        let words = ints.map(i => \"w{{i}}\")
        let rows = ints.map(i => {{id: i, group: i % 10, name: \"n{{i % 1000}}\"}}).to_table()
        let text = json.stringify(rows.take(n / 4))
        let parsed = json.parse(text)
        fn add(a, b) {{ a + b }}
        fn fib(k) {{ if k < 2 {{ k }} else {{ fib(k - 1) + fib(k - 2) }} }}
        fn total(n) {{
            var s = 0
            var i = 0
            while i < n {{
                if i % 3 == 0 {{ s += i }}
                i += 1
            }}
            s
        }}"
    )
}

/// Name and source; the value is what Python's function of that name returns.
pub(crate) const PROGRAMS: &[(&str, &str)] = &[
    ("while loop", "var s = 0\nvar i = 0\nwhile i < n { s += i; i += 1 }\ns"),
    ("for loop", "var s = 0\nfor i in 0..n { s += i }\ns"),
    ("loop in a function", "total(n)"),
    ("calls of a function", "var s = 0\nfor i in 0..calls { s = add(s, i) }\ns"),
    ("recursive calls", "fib(19)"),
    ("chain over ints", "ints.map(x => x * 2).where(x => x % 3 == 0).map(x => x + 1).sum()"),
    ("chain over texts", "words.where(.len() > 5).map(.upper()).len()"),
    ("fold", "ints.reduce(0, (acc, x) => acc + x)"),
    ("table filter", "rows.where(.id > 500000).len()"),
    ("table filter of two fields", "rows.where(.group == 3 && .id > 500000).len()"),
    ("table column", "rows.map(.id).sum()"),
    ("rows made", "rows.map({id: .id, double: .id * 2}).len()"),
    ("sort by a field", "rows.sort_by(.id).len()"),
    ("group by a field", "rows.group_by(.group).len()"),
    ("json read", "json.parse(text).len()"),
    ("json written", "json.stringify(parsed).len()"),
];
