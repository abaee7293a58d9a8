//! Errors of evaluation that teach: message or hint name what to write instead.

use crate::acceptance::check;

#[test]
fn fields_are_not_called() {
    check(&[
        ("t\"2026-07-09\".year()", "! field_missing write `.year` without parentheses"),
        ("5m.ago()", "! field_missing write `.ago` without parentheses"),
        ("(1..5).start()", "! field_missing write `.start` without parentheses"),
        ("(echo a).status()", "! field_missing write `.status` without parentheses"),
        ("(1/0 catch e e).code()", "! field_missing write `.code` without parentheses"),
        ("{f: 5}.f()", "! field_missing write `.f` without parentheses"),
        ("(echo a).nope()", "! field_missing unknown method `.nope` on str"),
    ]);
}

#[test]
fn habits_of_other_languages_are_answered() {
    check(&[
        ("\"a\".strip()", "! field_missing did you mean .trim()?"),
        ("\"a\".to_lowercase()", "! field_missing did you mean .lower()?"),
        ("[1].includes(1)", "! field_missing did you mean .contains()?"),
        ("{a: 1}.entries()", "! field_missing did you mean .items()?"),
        ("5.to_string()", "! field_missing \"{x}\""),
        ("\"f.txt\".read()", "! field_missing path(x).read"),
        ("local x=1", "! not_found let name = value"),
        ("import os", "! not_found use ./file"),
        ("throw \"x\"", "! not_found raise("),
        ("throw(\"x\")", "! undefined_var raise("),
        ("greet() { echo hi }", "! undefined_var fn greet() {"),
        ("None", "! not_found write `null`"),
        ("let x = None", "! undefined_var write `null`"),
        ("fn f() {a: 1}\nf()", "! not_found ({a: 1})"),
        ("(A= sh -c 'x')", "! not_found NAME=\"\""),
        ("(spawn { 1 }).str()", "! type_error interpolation"),
        ("channel(\"c\").str()", "! type_error interpolation"),
    ]);
}
