//! Diagnostics that teach: the message contains the search words, the hint what to write instead.

use shoal_syntax::{Diag, Names, parse};

/// Source, part of the message, part of the hint.
type Row = (&'static str, &'static str, &'static str);

#[track_caller]
fn only(src: &str) -> Diag {
    let parsed = parse(src, &Names::script());
    let [diag] = parsed.diags.as_slice() else { panic!("{src:?}: {:?}", parsed.diags) };
    assert!(diag.at.end <= src.len() && diag.at.start <= diag.at.end, "{src:?}: {diag:?}");
    assert!(src.is_char_boundary(diag.at.start) && src.is_char_boundary(diag.at.end), "{src:?}: {diag:?}");
    diag.clone()
}

#[track_caller]
fn check(rows: &[Row]) {
    let mut wrong = Vec::new();
    for (src, what, hint) in rows {
        let diag = only(src);
        if !diag.message().contains(what) || !diag.hint.as_deref().unwrap_or("").contains(hint) {
            wrong.push(format!("{src:?}: {diag}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn signs_of_other_shells() {
    check(&[
        ("ls | wc", "no pipe operator", ".feed("),
        ("1 | 2", "no pipe operator", "sh {"),
        ("let a = [1 | 2]", "no pipe operator", ""),
        ("ls || wc | sort", "no pipe operator", ""),
        ("$HOME", "no sigil", "env.HOME"),
        ("ls $DIR", "no sigil", "`DIR`"),
        ("ls ${DIR}/x", "no sigil", "`DIR`"),
        ("let x = $(ls)", "no sigil", "let v = (cmd)"),
        ("`pwd`", "backtick is not shoal syntax", "(cmd ...)"),
        ("echo `pwd`", "backtick is not shoal syntax", "sh {"),
        ("cat << EOF", "no heredocs", "feed(cmd)"),
        ("cat <<< x", "no here-strings", "\"x\".feed(cmd)"),
        ("ls 2> f", "no fd-numbered redirects", "(cmd).stderr"),
        ("ls 2>&1", "no fd-numbered redirects", "(cmd).stderr"),
        ("ls &> f", "no stream-merging redirect", "(cmd).stdout"),
        ("ls &>> f", "no stream-merging redirect", "sh {"),
        ("ls >&2", "no stream-merging redirect", "(cmd).stderr"),
        ("ls >& f", "no stream-merging redirect", ""),
        ("diff <(ls) b", "no process substitution", "(cmd).out"),
        ("tee >(cat)", "no process substitution", ".feed"),
        ("true & false", "not an operator", "&&"),
        ("cmd [a, b]", "`[` cannot start a command argument", "( )"),
        ("cmd ]", "unexpected `]`", ""),
        ("ls ~bob", "no ~user expansion", ""),
        ("~bob/x", "no ~user expansion", ""),
        ("echo a{b}", "no brace expansion", "( )"),
        ("a{b}", "no brace expansion", "( )"),
        ("git stash drop stash@{0}", "no brace expansion", "quote"),
        ("cp {a,b} d", "no brace expansion", "([\"a\", \"b\"])"),
        ("export X=1", "set a variable with env.", "env.X = \"1\""),
        ("x=(1 2)", "no array syntax", "x = [1, 2]"),
        ("env.X += \"a\"", "assigned with `=` only", "env.X = env.X + "),
        ("export X", "after `export`", "env.NAME = "),
        ("]", "unexpected `]`", ""),
        ("echo $?", "no sigil", "r.status"),
        ("echo $1", "no sigil", "args"),
        ("echo $$", "no sigil", "os.pid()"),
    ]);
}

#[test]
fn words_of_other_languages() {
    check(&[
        ("if [ -f x ] { 1 }", "no test brackets", "path(\"x\").is_file"),
        ("[ -f x ]", "no test brackets", "=="),
        ("if [[ $x == y ]] { 1 }", "no test brackets", ""),
        ("[[ -d y ]]", "no test brackets", ""),
        ("if true; then\necho x\nfi", "blocks are braces", "if c { }"),
        ("for x in xs; do\necho x\ndone", "blocks are braces", "for x in xs { }"),
        ("esac", "blocks are braces", ""),
        ("if grep -q x f { 1 }", "expected `{`", "if (cmd word)"),
        ("for f in ls *.rs { echo (f) }", "leading `.`", "`(ls *.rs)`"),
        ("!grep -q x f", "expected newline or `;`", "`!(grep -q x f)`"),
        ("let f = x -> x", "expected newline or `;`", "x => x + 1"),
        ("let f = |x| x", "no pipe operator", "x => x + 1"),
        ("return 1 if x", "expected newline or `;`", "line of its own"),
        ("fn f(x) = x", "expected `{`", ""),
        ("1h30", "unknown unit", "kib"),
        ("[[1, 2], [3 4]]", "expected `,` or `]`", ""),
        ("r.a += 3", "only a name", ""),
        ("def f() { 1 }", "functions are declared with fn", "fn f()"),
        ("function f { 1 }", "functions are declared with fn", "fn f()"),
        ("let y = x ? 1 : 2", "no ternary operator", "if x { a } else { b }"),
        ("let x = 1\nx ? 1 : 2", "no ternary operator", ""),
        ("var x = 1\nx++", "no increment operator", "x += 1"),
        ("x--", "no increment operator", "x -= 1"),
        ("let y = x++", "no increment operator", ""),
        ("xs.where(.a and .b)", "expected `,` or `)`", "&&"),
        ("[1].where(.a or .b)", "expected `,` or `)`", "||"),
        ("[1].where(not .a)", "expected `,` or `)`", "!"),
        ("1 < 2 < 3", "do not chain", "&&"),
        ("1 == 2 in x", "do not chain", "&&"),
        ("if true { 1 } elif false { 2 }", "blocks are braces", "else if d { }"),
        ("if true { 1 } elseif false { 2 }", "blocks are braces", "else if d { }"),
        ("if true: 1", "expected `{`", "in braces"),
        ("func f() { 1 }", "functions are declared with fn", "fn f()"),
        ("case v in", "no `case`", "match v {"),
        ("match 5 of\n1", "expected `{`", "match v {"),
        ("match 5 { 5 => return 1 }", "expected an expression", "{ return }"),
        ("x := 5", "no `:=`", "let x = ..."),
        ("1 === 1", "expected an expression", "`==`"),
        ("\"a\" =~ \"b\"", "expected newline or `;`", ".contains("),
        ("let s = \"a\" ++ \"b\"", "no increment operator", "joins strings"),
        ("f\"{x}\"", "one plain word", "no prefix"),
        ("for (x in xs) { 1 }", "no parentheses", "for x in xs { }"),
        ("for i, x in xs { 1 }", "expected `in`", "enumerate()"),
        ("for i = 0; i < 3 { 1 }", "expected `in`", "0..3"),
        ("for f in *.txt { 1 }", "a pattern of files", "glob(\"*.txt\")"),
        ("try { 1 } catch (e) { 2 }", "no parentheses", "catch e {"),
    ]);
}

#[test]
fn commands_and_expressions() {
    check(&[
        ("docker ps.len()", "wrap the command in parentheses", "(docker ps).len()"),
        ("docker ps.where(.up)", "leading `.` has no receiver here", "wrap the command in parentheses"),
        ("let x = git status", "expected newline or `;` between statements", "wrap the command in parentheses"),
        ("let f = x => x\nf 5", "expected newline or `;` between statements", "f(5)"),
        ("let x = 1\nx and 2", "expected newline or `;` between statements", "&&"),
        ("let x = 1\nx or 2", "expected newline or `;` between statements", "||"),
        ("let x = 1\nx ./y", "expected newline or `;` between statements", "^x"),
        ("foo.sh x", "expected newline or `;` between statements", "^foo.sh x"),
        (".x", "leading `.` has no receiver here", ""),
        ("let a = .x", "leading `.` has no receiver here", ""),
        ("f(a: .x)", "leading `.` has no receiver here", ""),
        ("[1].map(x => .y)", "leading `.` has no receiver here", ""),
        ("[1].map(spawn { .y })", "leading `.` has no receiver here", ""),
        ("[1].map((echo (.y)))", "leading `.` has no receiver here", ""),
        ("it", "REPL-only", ""),
        ("1 + out", "REPL-only", ""),
        ("(it)", "REPL-only", ""),
        ("true && it", "REPL-only", ""),
        ("it.x", "REPL-only", ""),
        ("r.a = 3", "only a name or `env.NAME` can be assigned", ".set("),
        ("if x\n{ 1 }", "same line", ""),
        ("1 2", "expected newline or `;` between statements", ""),
        ("{ 1", "expected `}`", ""),
        ("1 }", "unexpected `}`", ""),
        (")", "expected an expression", ""),
        ("with foo: 1 { }", "`with` has no `foo`", "cwd:"),
        ("try { 1 }", "expected `catch`", "try {"),
    ]);
}

#[test]
fn literals() {
    check(&[
        (r#""a \q""#, "unknown escape", "\\u{HEX}"),
        ("\"a\nb\"", "unterminated string (newline)", "triple"),
        ("'a\nb", "unterminated string (newline)", "\\n"),
        ("\"abc", "unterminated string", ""),
        ("'''abc", "unterminated string", ""),
        ("\"a{b\"", "unterminated interpolation", "'...'"),
        (r#""{"a": 1}""#, "expected", "single quotes"),
        (r#""{}""#, "expected an expression", "single quotes"),
        (r#""{1; 2}""#, "one expression", ""),
        ("sh { echo", "unbalanced braces", "'''"),
        ("match 5 { | 1 => 2 }", "unexpected `|` at the start of a match arm", ""),
        ("let [...a, b] = xs", "must be last", ""),
        ("fn f(...a, b) { }", "must be last", ""),
        ("1 @ 2", "unexpected character", ""),
        ("let x = @", "unexpected character", ""),
        ("let é = 1", "unexpected character", ""),
        ("9223372036854775808", "out of range", ""),
        ("10:99", "out of range", ""),
        ("5KB", "unknown unit", "kib"),
        ("5xyz", "unknown unit", "ms"),
        ("fn f(x: strng) { }", "unknown type", "did you mean `str`?"),
        ("match x { 1 => 2, int a | str b => 3 }", "same names", ""),
        ("re\"abc", "unterminated string", ""),
    ]);
}

#[test]
fn deep_nesting_is_refused_and_shallower_is_not() {
    for (open, close) in
        [("(", ")"), ("[", "]"), ("{a: ", "}"), ("-", ""), ("!", ""), ("{", "}"), ("x => ", ""), ("if true { ", " }")]
    {
        for (levels, fine) in [(450, true), (501, false), (100_000, false)] {
            let src = format!("let v = {}1{}", open.repeat(levels), close.repeat(levels));
            let diags = parse(&src, &Names::script()).diags;
            match fine {
                true => assert_eq!(diags, [], "{levels} of {open:?}"),
                false => {
                    assert!(diags[0].message().contains("nested too deeply"), "{levels} of {open:?}: {}", diags[0])
                }
            }
        }
    }
    for link in [" + 1", ".a", "()", "[0]", " catch 1", " && x"] {
        let chain = |links: usize| parse(&format!("let v = 1{}", link.repeat(links)), &Names::script()).diags;
        assert_eq!(chain(450), [], "{link:?}");
        assert!(chain(100_000)[0].message().contains("nested too deeply"), "{link:?}");
    }
}

#[test]
fn wide_sources_are_not_deep() {
    let names = Names::script();
    let items = vec!["a.b.c + d.e catch 1"; 2_000].join(", ");
    assert_eq!(parse(&format!("[{items}]"), &names).diags, []);
    assert_eq!(parse(&"let x = a.b + 1\n".repeat(2_000), &names).diags, []);
}

#[test]
fn mistakes_of_several_lines_are_all_reported() {
    let diags = parse("ls | wc\nlet x = 1 | 2\nx + 1\n$y\n", &Names::script()).diags;
    let places: Vec<usize> = diags.iter().map(|diag| diag.at.start).collect();
    assert_eq!(places, [3, 18, 28], "{diags:?}");
}

#[test]
fn an_open_text_is_partial() {
    for src in ["if true {", "(1 +", "[1, 2", "\"\"\"abc", "sh { x", "let x =", "f(", "match x {\n 1 => 2\n", "1 +"] {
        assert!(only(src).partial, "{src:?}: {}", only(src));
    }
    let open = only("1 +");
    assert_eq!((open.at, open.hint), (3..3, None));
    for src in ["1 2", "ls | wc", ")", "let = 1"] {
        assert!(!only(src).partial, "{src:?}");
    }
}

#[test]
fn notes_are_no_errors() {
    let note = |src: &str| {
        let parsed = parse(src, &Names::script());
        assert_eq!(parsed.diags, [], "{src}");
        parsed.notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    assert_eq!(note("let x = 1\necho x"), ["`x` is a variable: write (x)"]);
    assert_eq!(note("let p = 1\napply p"), ["`p` is a variable: write (p)"]);
    assert_eq!(note("let x = 1\necho \"x\" (x) y"), [""; 0]);
    assert_eq!(note("\"a $x b\""), ["`$x` is plain text here: write {x}"]);
    assert_eq!(note("'a $x b'; \"5$\""), [""; 0]);
}

#[test]
fn a_source_over_the_limit_is_too_large() {
    let src = " ".repeat(shoal_syntax::MAX_SOURCE + 1);
    let parsed = parse(&src, &Names::script());
    assert_eq!(parsed.diags[0].code, shoal_syntax::TOO_LARGE);
}

#[test]
fn bytes_that_are_no_text_are_a_mistake() {
    let parsed = shoal_syntax::parse_bytes(b"1 + \xff", &Names::script());
    assert_eq!(parsed.diags[0].at, 4..5);
    assert!(parsed.diags[0].message().contains("not UTF-8"));
    assert_eq!(shoal_syntax::parse_bytes(b"1", &Names::script()), parse("1", &Names::script()));
}
