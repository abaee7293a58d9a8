//! The programs of the benches against Python, on few items: each gives what Python's gives.

#[path = "../../benches/programs/mod.rs"]
mod programs;

use crate::acceptance::check;

/// What `against_python.py` computes for a thousand items.
const RESULTS: &[(&str, &str)] = &[
    ("while loop", "499500"),
    ("for loop", "499500"),
    ("loop in a function", "166833"),
    ("calls of a function", "45"),
    ("recursive calls", "4181"),
    ("chain over ints", "329681188"),
    ("chain over texts", "989"),
    ("fold", "494530117"),
    ("table filter", "494"),
    ("table filter of two fields", "47"),
    ("table column", "494530117"),
    ("rows made", "1000"),
    ("sort by a field", "1000"),
    ("group by a field", "10"),
    ("json read", "250"),
    ("json written", "9438"),
];

#[test]
fn the_programs_give_what_python_gives() {
    let data = programs::data(1000);
    assert_eq!(programs::PROGRAMS.len(), RESULTS.len());
    let rows: Vec<(String, &str)> = programs::PROGRAMS
        .iter()
        .zip(RESULTS)
        .map(|((name, source), (of, result))| {
            assert_eq!(name, of);
            (format!("{data}\n{source}"), *result)
        })
        .collect();
    check(&rows.iter().map(|(source, result)| (source.as_str(), *result)).collect::<Vec<_>>());
}
