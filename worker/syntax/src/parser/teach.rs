//! Texts for habits of other shells and languages. The message says what is wrong, the hint what to write instead.

use crate::Diag;
use crate::ast::{Ident, TypeName};
use crate::lex::{self, Token};
use crate::vocab;

/// A character that starts no token.
pub(crate) fn bad_character(src: &str, at: usize) -> Diag {
    let rest = &src[at..];
    let ch = rest.chars().next().unwrap_or(' ');
    let here = at..at + ch.len_utf8();
    match ch {
        '$' => sigil(src, at),
        '`' => Diag::new(here, "backtick is not shoal syntax")
            .hint("`(cmd ...)` runs a command; shell text goes in `sh { }`"),
        '&' if rest.starts_with("&>") => stream_merge(src, at),
        '&' => Diag::new(here, "`&` is not an operator")
            .hint("logical and is `&&`; `&` at the end of a command runs it in the background"),
        '\\' => {
            Diag::new(here, "unexpected character `\\`").hint("a backslash joins lines only at the very end of a line")
        }
        '~' => Diag::new(here, "unexpected character `~`").hint("a home directory as a value is `path(\"~/...\")`"),
        '@' => Diag::new(here, "unexpected character `@`").hint("quote it: \"@\""),
        _ => Diag::new(here, format!("unexpected character `{ch}`")).hint("names are ASCII; other text goes in quotes"),
    }
}

fn sigil(src: &str, at: usize) -> Diag {
    let rest = &src[at + 1..];
    if rest.starts_with('(') {
        return Diag::new(at..at + 2, "no sigil: `$( )` is not Shoal")
            .hint("`let v = (cmd)` keeps a command's outcome; among words write `(cmd)`");
    }
    let name_at = at + 1 + usize::from(rest.starts_with('{'));
    let end = lex::ident_end(src, name_at);
    let name = &src[name_at..end];
    let close = usize::from(rest.starts_with('{') && src[end..].starts_with('}'));
    let hint = match (name, src[name_at..].chars().next()) {
        ("", Some('?')) => "the status is a field: `let r = (cmd)`, then `r.status`, `r.ok`".to_owned(),
        ("", Some('@' | '*' | '#' | '0'..='9')) => "the arguments of a script are the list `args`".to_owned(),
        ("", Some('$')) => "the number of this process is `os.pid()`".to_owned(),
        ("", _) => "variables have no sigil: write the name; among words write `(name)`".to_owned(),
        (name, _) => format!("write `{name}`, among words `({name})`; a variable of the environment is `env.{name}`"),
    };
    Diag::new(at..end + close, "no sigil: variables are written without `$`").hint(hint)
}

pub(crate) fn no_pipe(start: usize, end: usize) -> Diag {
    Diag::new(start..end, "no pipe operator").hint(
        "chain methods: `(ls).where(.size > 1kb)`; give text to a program: `(a).feed(b)`; or write `sh { a | b }`",
    )
}

pub(crate) fn stream_merge(src: &str, at: usize) -> Diag {
    let len = src[at..].bytes().take_while(|b| matches!(b, b'&' | b'>')).count();
    Diag::new(at..at + len, "no stream-merging redirect")
        .hint("`(cmd).stdout` and `(cmd).stderr` are separate values; to merge them write `sh { cmd > f 2>&1 }`")
}

pub(crate) fn fd_redirect(src: &str, at: usize) -> Diag {
    let len = src[at..].bytes().take_while(|b| b.is_ascii_digit() || matches!(b, b'>' | b'<' | b'&')).count();
    Diag::new(at..at + len, "no fd-numbered redirects")
        .hint("`(cmd).stderr` is the error output; `(cmd).stderr.save(\"f\")` keeps it in a file")
}

/// Redirects of other shells, at a `<` or `>`.
pub(crate) fn foreign_redirect(src: &str, at: usize) -> Option<Diag> {
    let rest = &src[at..];
    let diag = if rest.starts_with("<<<") {
        Diag::new(at..at + 3, "no here-strings").hint("`\"x\".feed(cmd)` gives text to a command")
    } else if rest.starts_with("<<") {
        Diag::new(at..at + 2, "no heredocs")
            .hint("`value.feed(cmd)` gives text to a command, for example a \"\"\"...\"\"\" string; or use an interpreter block")
    } else if rest.starts_with("<(") || rest.starts_with(">(") {
        Diag::new(at..at + 2, "no process substitution")
            .hint("use the value `(cmd).out`, or `.feed(cmd)`; for a computed file name leave a blank: `< (name)`")
    } else if rest.starts_with(">&") || rest.starts_with(">>&") {
        stream_merge(src, at)
    } else {
        return None;
    };
    Some(diag)
}

/// Braces among words, at `brace`, in the argument that starts at `start`.
pub(crate) fn no_brace_expansion(src: &str, start: usize, brace: usize) -> Diag {
    let close = lex::brace_end(src, brace).filter(|end| !src[brace..*end].contains('\n'));
    let inside = close.map_or("", |end| &src[brace + 1..end - 1]);
    let words: Vec<&str> = inside.split(',').map(str::trim).collect();
    let hint = if words.len() > 1 && words.iter().all(|word| lex::is_name(word)) {
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        format!("a list in ( ) spreads to arguments: `([{}])`; or quote the word", quoted.join(", "))
    } else {
        "a list in ( ) spreads to arguments: `([\"a\", \"b\"])`; text with braces goes in quotes".to_owned()
    };
    Diag::new(start..close.unwrap_or(brace + 1), "no brace expansion").hint(hint)
}

/// `{a,b}` after a command: no block, whatever its names stand for.
pub(crate) fn brace_list(src: &str, brace: usize) -> Option<Diag> {
    let inside = src[brace..].strip_prefix('{')?.split('}').next()?;
    let is_list = inside.contains(',') && !inside.contains(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '{'));
    is_list.then(|| no_brace_expansion(src, brace, brace))
}

pub(crate) fn words_after_ampersand(src: &str, at: usize) -> Diag {
    let end = src[at..].find(char::is_whitespace).map_or(src.len(), |len| at + len);
    Diag::new(at..end, "expected newline or `;` between statements")
        .hint("`&` ends a command and runs it in the background; quote a word that has `&` in it")
}

/// `it` and `out` outside a session.
pub(crate) fn transcript(word: &str, token: Token) -> Diag {
    let what = if word == "it" { "the last result" } else { "the transcript" };
    Diag::new(token.start..token.end, format!("`{word}` ({what}) is REPL-only"))
        .hint(format!("bind it first: `let {word} = ...`; the item of a method is `x => x...` or `.field`"))
}

pub(crate) fn unknown_type(name: &Ident) -> Diag {
    let all = TypeName::ALL.iter().map(|name| name.as_str());
    let hint = match vocab::nearest(&name.name, all.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("types: {}", all.collect::<Vec<_>>().join(" ")),
    };
    Diag::new(name.span.range(), format!("unknown type `{}`", name.name)).hint(hint)
}

pub(crate) fn open_lang_block(src: &str, tool: &str, open: usize) -> Diag {
    Diag::new(open..src.len(), format!("unbalanced braces in the `{tool}` block"))
        .hint(format!("quotes and braces must pair up; text that does not goes in {tool}'''...'''"))
}

/// `[ -f x ]` and `[[ ... ]]` where a condition or statement starts.
pub(crate) fn test_brackets(src: &str, at: usize) -> Diag {
    let line_end = src[at..].find('\n').map_or(src.len(), |len| at + len);
    let end = src[at..line_end].rfind(']').map_or(line_end, |len| at + len + 1);
    Diag::new(at..end, "no test brackets")
        .hint("a condition is an expression: `path(\"x\").is_file`, `path(\"x\").exists`, `a == b`")
}

/// `x=(1 2)`
pub(crate) fn array_syntax(src: &str, name: &Ident, open: usize) -> Diag {
    let end = lex::balanced_end(src, open).unwrap_or(open + 1);
    let items: Vec<&str> = src[open + 1..(end - 1).max(open + 1)].split_whitespace().collect();
    Diag::new(open..end, "no array syntax").hint(format!("`{} = [{}]`", name.name, items.join(", ")))
}

pub(crate) fn block_word(word: &str, start: usize) -> Diag {
    Diag::new(start..start + word.len(), format!("blocks are braces, there is no `{word}`"))
        .hint("`if c { } else if d { }`, `for x in xs { }`, `match v { a => b }`")
}

pub(crate) fn foreign_fn(src: &str, start: usize, name: &str) -> Diag {
    let end = src[start..].find(['\n', '{']).map_or(src.len(), |len| start + len);
    Diag::new(start..end, "functions are declared with fn").hint(format!("`fn {name}() {{ ... }}`"))
}

/// `for x in 1 2 3`, with the first item read up to `end`.
pub(crate) fn word_list(src: &str, start: usize, end: usize) -> Option<Diag> {
    let line = src[end..].split(['\n', ';', '{']).next().unwrap_or("");
    let first = src[start..end].trim();
    let more: Vec<&str> = line.split_whitespace().collect();
    let is_item = |word: &str| word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '"' | '\''));
    if more.is_empty() || vocab::BLOCK_WORDS.contains(&more[0]) || !is_item(first) || !more.iter().all(|w| is_item(w)) {
        return None;
    }
    let at = end + line.len() - line.trim_start().len();
    let items = [&[first], &*more].concat().join(", ");
    let diag = Diag::new(at..end + line.trim_end().len(), "expected `{`: words in a row are no list");
    Some(diag.hint(format!("`for x in [{items}] {{ }}`")))
}

/// `env.NAME += value`
pub(crate) fn compound_env(name: &str, op: &str, token: Token) -> Diag {
    let sign = op.trim_end_matches('=');
    Diag::new(token.start..token.end, "a variable of the environment is assigned with `=` only")
        .hint(format!("`env.{name} = env.{name} {sign} ...`; its value is text, or null if it is not set"))
}

/// `alias ll='ls -l'`
pub(crate) fn quoted_alias(src: &str, name: &str, open: usize, quote: u8) -> Diag {
    let rest = &src[open + 1..];
    let len = rest.find([char::from(quote), '\n']).unwrap_or(rest.len());
    Diag::new(open..open + 1 + len, "expected a command, found a string")
        .hint(format!("an alias is written without quotes: `alias {name} = {}`", &rest[..len]))
}

/// `. FILE`
pub(crate) fn dot_command(src: &str, at: usize) -> Option<Diag> {
    let rest = src[at..].strip_prefix(". ")?;
    let file = rest.split_whitespace().next()?;
    let hint = format!("Shoal code is run with `source {file}`, shell code with `sh {{ . {file}; ... }}`");
    Some(Diag::new(at..at + 1, "expected an expression, found `.`").hint(hint))
}

pub(crate) fn ternary(src: &str, at: usize) -> Diag {
    let line_end = src[at..].find('\n').map_or(src.len(), |len| at + len);
    let rest = src[at + 1..line_end].trim();
    if rest.is_empty() || rest.starts_with([')', '}', ']', ',', ';', '.']) {
        return Diag::new(at..at + 1, "no ternary operator and no postfix `?`")
            .hint("errors pass on by themselves; handle one with `expr catch e { ... }`");
    }
    Diag::new(at..at + 1, "no ternary operator").hint("`if x { a } else { b }`")
}

/// `for f in *.txt`
pub(crate) fn bare_glob(src: &str, at: usize) -> Option<Diag> {
    let word = src[at..].split(|c: char| c.is_whitespace() || matches!(c, '{' | ';')).next()?;
    let is_glob = word.starts_with('*') && !word[1..].starts_with(' ') && word.len() > 1;
    let text = "expected an expression, found a pattern of files";
    is_glob.then(|| Diag::new(at..at + word.len(), text).hint(format!("`for f in glob(\"{word}\") {{ }}`")))
}

/// The form of a `match`.
pub(crate) const MATCH_FORM: &str = "`match v { \"a\" => x; _ => y }`";

/// `x++`, `x--`
pub(crate) fn increment(name: &str, start: usize, end: usize, up: bool) -> Diag {
    let (what, op) = if up { ("increment", "+=") } else { ("decrement", "-=") };
    let message = if up { "no increment operator".to_owned() } else { format!("no increment operator or {what}") };
    Diag::new(start..end, message).hint(format!("`{name} {op} 1`"))
}
