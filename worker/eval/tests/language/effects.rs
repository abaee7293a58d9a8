//! Derived effects: what plans say, and that what cannot be told is opaque.

use crate::acceptance::check;

/// A row: a program for `plan { ... }` and the list of its effects, `CWD` for the working directory.
fn effects(rows: &[(&str, &str)]) {
    let rows: Vec<(String, String)> =
        rows.iter().map(|(source, wanted)| (format!("(plan {{ {source} }}).effects"), (*wanted).to_owned())).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|(source, wanted)| (source.as_str(), wanted.as_str())).collect();
    check(&rows);
}

#[test]
fn effects_of_files() {
    effects(&[
        ("1 + 1", "[]"),
        ("\"x\".save(\"g.txt\")", "[\"write CWD/g.txt\"]"),
        ("cat f.txt", "[\"read CWD/f.txt\"]"),
        ("ls", "[\"read CWD\"]"),
        ("cp f.txt g.txt", "[\"read CWD/f.txt\", \"write CWD/g.txt\"]"),
        ("mv f.txt sub/../g.txt", "[\"read CWD/f.txt\", \"write CWD/g.txt\", \"delete CWD/f.txt\"]"),
        ("rm *.txt", "[\"read CWD\", \"delete CWD/f.txt\"]"),
        ("rm /a/b", "[\"delete /a/b\"]"),
        ("echo hi > out.txt", "[\"write CWD/out.txt\"]"),
        ("cd sub; rm x", "[\"change session\", \"delete CWD/sub/x\"]"),
        ("if true { cd sub }; rm x", "[\"change session\", \"delete *\"]"),
        ("let p = path(\"a\").join(\"b\"); p.read", "[\"read CWD/a/b\"]"),
        ("with cwd: \"sub\" { touch a }", "[\"read CWD/sub\", \"write CWD/sub/a\"]"),
        ("for f in glob(\"sub/*\") { f.name }", "[\"read CWD/sub\"]"),
        ("plan { rm x }", "[]"),
        ("rm --help", "[]"),
        ("use ./nope", "[\"read CWD/nope\", \"opaque (effects unknown)\"]"),
    ]);
}

#[test]
fn effects_of_the_session_and_the_clock() {
    effects(&[
        ("now", "[\"clock\"]"),
        ("env.HOME", "[\"read env HOME\"]"),
        ("env.X = \"1\"", "[\"write env X\"]"),
        ("env.keys()", "[\"read env *\"]"),
        ("A=1 echo x", "[\"write env A\"]"),
        ("undo", "[\"read journal\", \"write *\", \"delete *\"]"),
        ("undo 3 --root=sub", "[\"read journal\", \"write CWD/sub\", \"delete CWD/sub\"]"),
        ("undo --root=\"sub\"", "[\"read journal\", \"write CWD/sub\", \"delete CWD/sub\"]"),
        ("undo --root=sub --root=b", "[\"read journal\", \"write *\", \"delete *\"]"),
        ("alias u = undo --root=sub\nu --root=b", "[\"read journal\", \"write *\", \"delete *\"]"),
        ("undo(root: \"sub\")", "[\"read journal\", \"write CWD/sub\", \"delete CWD/sub\"]"),
        ("let r = [\"a\", \"b\"].first(); undo --root=(r)", "[\"read journal\", \"write *\", \"delete *\"]"),
        ("which ls", "[\"read env PATH\"]"),
    ]);
}

#[test]
fn fields_and_streams_of_data_run_nothing() {
    effects(&[
        ("(ls).where(.type == \"file\").map(.name)", "[\"read CWD\"]"),
        ("cat(\"f.txt\").out.lines().map(.trim())", "[\"read CWD/f.txt\", \"read *\"]"),
        ("json.parse(cat(\"f.txt\").out).a.b", "[\"read CWD/f.txt\"]"),
        ("json.parse(\"[]\").map(.size)", "[\"read *\"]"),
        ("try { 1 } catch e { [e.msg, e.stderr, e.span.line] }", "[]"),
        ("[{a: 1}].group_by(.a).map(.values.len())", "[]"),
        ("(which git).path", "[\"read env PATH\"]"),
        ("channel(\"a\").events().take(1).map(.payload).collect().len()", "[]"),
        ("channel(\"a\").emit(1)", "[\"change session\"]"),
        ("channel(\"a\").latest()", "[]"),
        ("on(\"a\", e => rm(\"x\"))", "[\"delete CWD/x\"]"),
        ("every(1s).map(t => 1).take(2).sum()", "[\"clock\"]"),
        ("[path(\"a\")].stream().first().read()", "[\"read *\"]"),
        ("[x => rm(\"q\")].stream().collect()[0]()", "[\"opaque (effects unknown)\"]"),
        ("[1].stream().map(x => rm(\"q\")).collect()", "[\"delete CWD/q\"]"),
        ("fn k(p: path) { p.read() }; k(\"f.txt\")", "[\"read CWD/f.txt\"]"),
        ("fn k(p: path) { p.read() }; k(\"f\" + \".txt\")", "[\"read CWD/f.txt\"]"),
    ]);
}

#[test]
fn closures_are_analysed_where_they_are_called() {
    effects(&[
        ("[1].map(x => \"a\".save(\"g\"))", "[\"write CWD/g\"]"),
        ("let f = () => rm(\"x\"); 1", "[]"),
        ("let f = () => rm(\"x\"); f()", "[\"delete CWD/x\"]"),
        ("fn f(p: str) { rm (p) }; f(\"a\")", "[\"delete CWD/a\"]"),
        ("fn f(n) { if n > 0 { f(n - 1) }; touch(\"t\") }; f(3)", "[\"write CWD/t\"]"),
        ("[\"a\"].where(.len() > 1).map(.upper())", "[]"),
        ("retry(3) { touch t }", "[\"write CWD/t\"]"),
        ("parallel(() => touch(\"a\"), () => touch(\"b\"))", "[\"write CWD/a\", \"write CWD/b\"]"),
        ("spawn { touch t }", "[\"write CWD/t\"]"),
        ("alias w = touch a; w b", "[\"write CWD/a\", \"write CWD/b\"]"),
        ("var n = 0; for i in 1..3 { n += i }; n.str()", "[]"),
    ]);
}

#[test]
fn what_cannot_be_told_is_opaque() {
    let opaque = "[\"opaque (effects unknown)\"]";
    effects(&[
        ("frob(1)", opaque),
        ("frob", "[\"opaque (effects unknown)\"]"),
        ("^true", opaque),
        ("sh { true }", opaque),
        ("[1].feed(cat)", opaque),
        ("fn f(g) { g() }; f(5)", opaque),
        ("fn f(x) { x.anything() }; f(json.parse(\"1\"))", opaque),
        ("var f = () => 1; f()", opaque),
        ("run ./x.py", "[\"read *\", \"opaque (effects unknown)\"]"),
        ("let r = {g: x => x}; r.g(1)", opaque),
    ]);
}

#[test]
fn plans_are_used_once_and_drift() {
    check(&[
        ("let p = (plan { \"x\".save(\"g.txt\") })\napply (p)\ncat(\"g.txt\").text", "\"x\""),
        ("let p = (plan { 1 })\napply (p)\napply (p)", "! not_found"),
        ("let p = (plan { 1 })\ncd sub\napply (p)", "! plan_drifted the working directory"),
        ("let p = (plan { 1 })\nenv.Q = \"1\"\napply (p)", "! plan_drifted the environment"),
        ("var k = \"a\"\nlet p = (plan { k.save(\"g\") })\nk = \"b\"\napply (p)", "! plan_drifted a binding"),
        ("let p = (plan { rm *.txt })\ntouch z.txt\napply (p)", "! plan_drifted its effects"),
        ("apply nothing", "! not_found"),
        ("(plan { ^true }).reversible", "\"irreversible\""),
        ("(plan ls).reversible", "\"reversible\""),
        ("(plan { touch a }).source", "\"{ touch a }\""),
        ("explain(\"touch a\").effects", "[\"write CWD/a\"]"),
        ("explain(\"let = \")", "! parse_error"),
    ]);
}
