//! Behaviour of programs as a table: a source, and its inline value, `! code text`, or `!parse text`.

use crate::support::TestHost;
use crate::verdict::{Verdict, run};

/// Checks rows in an empty directory with `f.txt` (a file) and `sub/` (a directory).
pub(crate) fn check(rows: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (source, wanted) in rows {
        let host = TestHost::new();
        host.fixture("f.txt", b"one\ntwo\n");
        host.fixture("sub/", b"");
        let verdict = run(&host, source);
        let cwd = host.cwd().path().display().into_owned();
        if !holds(wanted, &verdict, &cwd) {
            wrong.push(format!("{source}\n    wanted {wanted}\n    found  {verdict:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn holds(wanted: &str, verdict: &Verdict, cwd: &str) -> bool {
    let wanted = wanted.replace("CWD", cwd);
    match (wanted.strip_prefix("!parse"), wanted.strip_prefix("! "), verdict) {
        (Some(text), _, Verdict::Parse(found)) => found.contains(text.trim()),
        (None, Some(wanted), Verdict::Error(code, found)) => {
            let (wanted_code, text) = wanted.split_once(' ').unwrap_or((wanted, ""));
            code == wanted_code && found.contains(text.trim())
        }
        (None, None, Verdict::Value(found)) => *found == wanted,
        _ => false,
    }
}

#[test]
fn positions_decide_whether_a_failure_raises() {
    check(&[
        ("(sh { printf a; exit 3 }).stdout().len()", "1"),
        ("(sh { printf ab >&2; exit 3 }).stderr().str()", "\"ab\""),
        ("let probe = (^false)\n{ probe, answer: 42 }", "{probe: outcome(status: 1, ok: false), answer: 42}"),
        ("^false\n42", "! cmd_failed exited with status 1"),
        ("fn f() { ^false }\nf()\n\"late\"", "! cmd_failed"),
        ("let ok = true\nif ok { ^false }\n1", "! cmd_failed"),
        ("^false || ^true\n1", "1"),
        ("try { ^false } catch e { e.status }", "1"),
        ("^false\ncatch \"saved\"", "\"saved\""),
        ("let r = (^false)\nr\nr.status", "1"),
        ("let r = (^false) catch { \"x\" }\nr", "\"x\""),
        ("(^false)", "! cmd_failed"),
        ("^true && ^false", "! cmd_failed"),
        ("[1].feed(^grep nope)", "! cmd_failed"),
        ("(1 / 0) catch null", "null"),
        ("raise(\"bad input\") catch e { e.msg }", "\"bad input\""),
        ("raise(\"app_down\", \"no answer\") catch e { e.code }", "\"app_down\""),
        ("let e = (raise(\"x_y\", \"m\", hint: \"h\") catch e { e })\nraise(e) catch f { f.hint }", "\"h\""),
    ]);
}

#[test]
fn handlers_nest() {
    check(&[
        ("try { let x = (raise(\"a\") catch 1)\nraise(\"z_z\", \"q\") } catch e { e.code }", "\"z_z\""),
        ("try { try { raise(\"a\") } catch e { raise(\"b_c\", \"x\") } } catch e { e.code }", "\"b_c\""),
        ("try { [1].map(x => (raise(\"a\") catch 1))\nraise(\"z_z\", \"q\") } catch e { e.code }", "\"z_z\""),
        (
            "fn f(n) { try { f(n - 1) } catch e { if n > 2 { \"at {n}\" } else { raise(e) } } }\nf(9) catch e { e.code }",
            "\"at 3\"",
        ),
        (
            "var n = 0\nfor i in 0..3 { try { for j in 0..3 { try { raise(\"a\") } catch e { n += 1\ncontinue } } } catch e { n = 100 } }\nn",
            "9",
        ),
        (
            "fn f() { for i in 0..3 { try { return i } catch e { 9 } } }\nlet x = f()\ntry { raise(\"q\") } catch e { x }",
            "0",
        ),
        (
            "try { with cwd: \"sub\" { try { raise(\"a\") } catch e { 1 / 0 } } } catch e { [e.code, pwd.name == \"sub\"] }",
            "[\"div_zero\", false]",
        ),
    ]);
}

#[test]
fn functions_bind_arguments() {
    check(&[
        ("fn g(a, b) { a - b }\ng(a: 1, 2)", "-1"),
        ("fn g(a, b) { a - b }\ng(b: 1, 2)", "1"),
        ("fn h(n: int, tag: str?) { tag ?? n }\nh(3)", "3"),
        ("fn h(n: int) { n }\nh(5.5)", "! arg_error expected int, found float"),
        ("fn b(a: int, b: int = a + 1) { b }\nb(4)", "5"),
        ("fn b(a: int, b: int = a + 1) { b }\nb(4, 9)", "9"),
        ("fn r(...xs: int) { xs }\nr(1, 2)", "[1, 2]"),
        ("fn r(...xs: list<int>) { xs }\nr 1 2", "[1, 2]"),
        ("fn f(xs: list<int>) { xs }\nf([\"1\", 2])", "[1, 2]"),
        ("fn f(xs: list<int>) { xs }\nf(xs: [\"1\"])", "[1]"),
        ("fn f(xs: list<int>) { xs }\nf ([\"1\", \"2\"])", "[1, 2]"),
        ("fn f(xs: list<int>) { xs }\nf([\"many\"])", "! arg_error expected int, found \"many\""),
        ("fn f(xs: list<str>) { xs }\nf([\"1\"])", "[\"1\"]"),
        ("fn f(xs: list<duration>) { xs }\nf([\"2m\"])", "[2m]"),
        ("fn f(x: int) { x }\nf(\"1\")", "! arg_error expected int, found str"),
        ("fn f(a, b) { a }\nf(1)", "! arg_error missing argument `b`"),
        ("fn f(a, b) { a }\nf(1, 2, 3)", "! arg_error expected 2 arguments, got 3"),
        ("fn f(a) { a }\nf(b: 1)", "! arg_error unknown argument `b`"),
        ("fn f(a) { a }\nf(1, a: 2)", "! arg_error"),
        ("fn f(n: int) -> str { n }\nf(1)", "! type_error f returned int, expected str"),
        ("fn dep(env: str, replicas: int = 1) { \"{env}{replicas}\" }\ndep staging --replicas 3", "\"staging3\""),
        ("fn dep(env: str, replicas: int = 1) { \"{env}{replicas}\" }\ndep staging --replicas=4", "\"staging4\""),
        ("fn v(a: bool) { a }\nv --a", "true"),
        ("fn v(a: int) { a }\nv --a", "! arg_error --a requires a value"),
        ("fn v(a: int) { a }\nv -5", "-5"),
        ("fn v(a: int) { a }\nv x", "! arg_error \"x\""),
        ("fn v(a: int) { a }\nv --b", "! arg_error unknown argument `b`"),
        ("fn t(f) { f() }\nt { 5 }", "5"),
        ("alias e = echo a\n(e b).out", "\"a b\""),
        ("fn f(n) { match n { 1 => { return \"early\" }, _ => 0 }\n\"late\" }\nf(1)", "\"early\""),
        ("fn fact(n) { if n < 2 { 1 } else { n * fact(n - 1) } }\nfact(20)", "2432902008176640000"),
        ("fn outer() { fn a(n) { if n == 0 { 0 } else { b(n - 1) } }\nfn b(n) { a(n) }\na(5) }\nouter()", "0"),
        ("5(1)", "! type_error int is not callable"),
        ("(x => x + 1)(5)", "6"),
        ("fn adder(n) { m => m + n }\nadder(1)(2)", "3"),
    ]);
}

#[test]
fn variables_are_shared_cells() {
    check(&[
        ("var n = 0\nfor i in 1..9 { match i { 4 => { break }, _ => { n += i } } }\nn", "6"),
        ("fn counter() { var n = 0\n() => { n += 1\nn } }\nlet c = counter()\nc()\nc()\nc()", "3"),
        ("let fs = [1, 2, 3].map(x => () => x)\nfs.map(f => f())", "[1, 2, 3]"),
        ("var fs = []\nfor i in 0..3 { fs += [() => i] }\nfs.map(f => f())", "[0, 1, 2]"),
        ("var x = 1\nlet f = () => x\nx = 2\nf()", "2"),
        ("let x = 1\nx = 2", "! type_error declare it with var"),
        ("y = 2", "! type_error declare it with var"),
        ("if true { var a = 1\nlet f = () => { a += 1 }\nf()\na }", "2"),
        ("let x = 1\nif true { let f = () => x\nlet x = 2\nf() }", "2"),
        ("let x = 1\nlet x = x + 1\nx", "2"),
        ("var xs = []\nvar i = 0\nwhile i < 5 { i += 1\nif i == 3 { continue }\nxs += [i] }\nxs", "[1, 2, 4, 5]"),
        ("let [a, ...rest] = [1, 2, 3]\nrest", "[2, 3]"),
        ("let {a, b: [c, d]} = {a: 1, b: [2, 3]}\n[a, c, d]", "[1, 2, 3]"),
        ("let [a, b] = [1]", "! type_error does not match the pattern"),
        ("[[\"k\", 1]].map(([k, v]) => \"{k}={v}\")", "[\"k=1\"]"),
        ("let n: int = \"x\"", "! type_error n: expected int, found str"),
        ("return 1", "! custom return"),
        ("break", "! custom break"),
        ("var n = 0\nfor i in 0..5 { n += 1 + { if i == 2 { break }\n0 } }\nn", "2"),
    ]);
}

#[test]
fn commands_and_their_words() {
    check(&[
        ("(printf '%s|' --foo-bar --x=1 --y=\"a b\").out", "\"--foo-bar|--x=1|--y=a b|\""),
        ("(printf '%s|' ([1, 2]) a\"b\"c).out", "\"1|2|abc|\""),
        ("printf '%s' *.nothing", "! no_matches quote"),
        ("(echo a *.nothing -n b).out", "\"a -n b\""),
        ("(echo *.txt).out", "\"f.txt\""),
        ("echo {1..3}", "! arg_error no brace expansion"),
        ("let y = sort", "! undefined_var (^sort)"),
        ("echo x > g.txt && true\ncat(\"g.txt\").lines", "[\"x\"]"),
        ("cat < f.txt", "! arg_error takes no stdin"),
        ("(^cat < f.txt).out", "\"one\\ntwo\""),
        ("(A=5 sh { echo $A }) catch 1", "!parse"),
        ("(A=5 ^printenv A).out", "\"5\""),
        ("env.SURELY_UNSET ?? \"dflt\"", "\"dflt\""),
        ("env.X = \"1\"\n(^printenv X).out", "\"1\""),
        ("with env: {X: \"2\"} { (^printenv X).text }", "\"2\""),
        ("fn f() { env.X = \"1\" }\nf()", "! custom with env:"),
        ("fn f() { cd sub }\nf()", "! custom top level"),
        ("with cwd: path(\"sub\") { pwd.name }", "\"sub\""),
        ("with cwd: \"nope\" { 1 }", "! not_found"),
        ("with cwd: \"f.txt\" { 1 }", "! not_dir"),
        ("cd sub\npwd.name", "\"sub\""),
        ("frobnicate_it", "! not_found command not found: frobnicate_it"),
        ("retry 3 { }", "! not_found is a function"),
        ("lss", "! not_found did you mean 'ls'"),
        ("printf x (5kb)", "! type_error choose a unit"),
        ("let p = \"f.txt\"\n(wc -l (p)).out.words()[0]", "\"2\""),
        ("ls --frob", "! arg_error unknown flag"),
        ("(sh { exit 3 }).status", "3"),
        ("(sh { kill -9 $$ }).signal", "\"SIGKILL\""),
        ("(sh { echo \"[1]\" }).text", "\"[1]\""),
        ("(sh { echo \"[1]\" }).out[0]", "1"),
        ("(sh { cat; tty }).ok", "false"),
        ("sh { echo out; echo err >&2; exit 3 }", "! cmd_failed status 3"),
    ]);
}

#[test]
fn feeding_connects_programs() {
    check(&[
        ("(yes).feed(head -1).out", "\"y\""),
        ("(yes).feed(head -1).stages.map(.ok)", "[true, true]"),
        ("let r = (sh { echo a; exit 3 }).feed(cat)\n[r.status, r.stdout.str()]", "[3, \"a\\n\"]"),
        ("let r = (sh { echo a; exit 3 }).feed(cat)\nr.stages.map(.status)", "[3, 0]"),
        ("every(10ms).map(x => \"t\").feed(head -2).out", "\"t\\nt\""),
        ("[\"b\", \"a\"].feed(sort).out", "\"a\\nb\""),
        ("{a: 1}.feed(cat).out.a", "1"),
        ("path(\"x\").feed(cat)", "! type_error a name, not"),
        ("null.feed(cat)", "! type_error"),
        ("(x => x).feed(cat)", "! feed_error"),
        ("(echo hi).feed(cat).out", "\"hi\""),
        ("\"x\".feed(\"y\")", "! type_error the command itself"),
        ("python3 {\n   import json\n   print(json.dumps({\"a\": 1}))\n}.out.a", "1"),
    ]);
}

#[test]
fn dispatch_finds_methods_or_says_why_not() {
    check(&[
        ("7.trim()", "! type_error `.trim` does not work on int"),
        ("{k: 1}.last()", "! type_error `.last` does not work on record"),
        ("[1].length()", "! field_missing did you mean .len()?"),
        ("[1].revers()", "! field_missing did you mean .reverse()?"),
        ("[1].push(2)", "! field_missing list + [item]"),
        ("\"abc\".upper", "\"ABC\""),
        ("[\"a\"].map(.len)", "[1]"),
        ("{a: 1}.b", "! field_missing"),
        ("[1].sum(.a)", "! arg_error sum takes no arguments"),
        ("let m = {f: x => x + 1}\nm.f(2)", "3"),
        ("[4, 9].map(math.sqrt)", "[2, 3]"),
        ("\"val:blake3:00\".len()", "! not_found journal/CAS"),
        ("(ls .).where(.type == 'file' && .size >= 0b).map(.name)", "[\"f.txt\"]"),
        ("if (ls .).is_empty() { \"none\" } else { \"some\" }", "\"some\""),
        ("for f in (ls) { echo (f.name) }", "null"),
        ("ls.map(.name)", "[\"f.txt\", \"sub\"]"),
        ("glob(\"*.txt\").map(.name)", "[\"f.txt\"]"),
        ("if 1 { 2 }", "! type_error no truthiness"),
        ("null?.a", "null"),
        ("null?.a(raise(\"x\"))", "null"),
        ("{a: 2}?.a", "2"),
    ]);
}

#[test]
fn exit_passes_every_handler() {
    check(&[
        ("fn f() { exit 4\n echo late }\nf()\n1", "null"),
        ("try { exit 1 } catch { 2 }\n3", "null"),
        ("[1].map(x => exit(2))\n3", "null"),
        ("(spawn { exit 2 }).await()", "null"),
    ]);
}

#[test]
fn tasks_run_beside() {
    check(&[
        ("let t = spawn { 1 + 1 }\nt.await()", "2"),
        (
            "let t = spawn { raise(\"x\") }\n[t.await() catch e { e.code }, t.await() catch e { e.code }]",
            "[\"raised\", \"raised\"]",
        ),
        ("let t = spawn { sleep 10s }\nt.cancel()\nt.await()", "! cancelled"),
        ("let t = spawn { (^false) }\nt.await().status", "1"),
        ("let t = spawn { ^false }\nt.await()", "! cmd_failed"),
        ("parallel(() => 1, () => 2)", "[1, 2]"),
        ("parallel(() => 1, () => raise(\"no\"), settle: true).map(\"{.}\") catch 1", "!parse"),
        ("parallel(() => 1, () => raise(\"no\"))", "! raised no"),
        ("var n = 0\nparallel(() => { n += 1 }, () => { n += 1 })\nn", "2"),
        ("let t = spawn { 5 }\nt.await()\njobs.map(.state)", "[\"done\"]"),
        ("spawn { break }", "task(1)"),
        ("(spawn { break }).await()", "! custom break"),
    ]);
}

#[test]
fn files_of_programs() {
    check(&[
        (
            "\"export let a = 1\\nexport fn f(x) \\{ x + a \\}\\nlet b = 2\".save(\"m.shl\")\nuse ./m\n[m.f(2), m.keys()]",
            "[3, [\"a\", \"f\"]]",
        ),
        ("save(\"m.shl\", 'export let a = 1; export fn f(x) { x + a }; let b = 2')\nuse ./m\nm.f(2)", "3"),
        ("save(\"m.shl\", 'export var n = 0; export fn inc() { n += 1 }')\nuse ./m as q\nq.inc()\nq.inc()", "2"),
        ("use ./nope", "! not_found"),
        ("save(\"a.shl\", 'use ./b'); save(\"b.shl\", 'use ./a')\nuse ./a", "! custom ->"),
        ("save(\"m.shl\", 'let = 1')\nuse ./m", "! parse_error"),
        ("save(\"s.shl\", 'let x = 5; fn g() { x }')\nsource s.shl\ng()", "5"),
        ("save(\"s.shl\", 'let x = 5; fn g() { x }')\nfn f() { let x = 1\nsource s.shl\nx }\n[f(), g()]", "[1, 5]"),
        ("save(\"s.shl\", 'args')\n./s.shl a b", "[\"a\", \"b\"]"),
        ("save(\"s.shl\", 'let x = 5; x')\nrun ./s.shl\nx", "! not_found"),
        ("save(\"s.sh\", 'echo \"$1\"')\n(run s.sh hi).out", "\"hi\""),
        ("run ./nothing.zzz", "! runner_not_found"),
        ("run ./nothing.sh", "! not_found"),
        ("run(\"printf\", \"%s\", 5).out", "\"5\""),
    ]);
}
