//! Completion: which names fit at a place, and what kind of text is wanted there.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::lex::{self, Tok, Token};
use crate::{Names, vocab};

/// Names that fit at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Keywords, builtin names, the host's names and those declared before the place that start with what is written
    /// there; sorted, each once.
    pub candidates: Vec<String>,
    /// The text a candidate replaces.
    pub replaces: Range<usize>,
    /// What the place takes, so that the host can add what only it knows.
    pub wanted: Wanted,
}

/// What a place takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// A statement starts: programs of the search path fit.
    Command,
    /// A word of a command: file names fit.
    Word,
    /// A word that is a path already: file names below its last `/` fit.
    Path,
    /// A flag of a command.
    Flag,
    /// A field or method of the value before the dot.
    Member,
    /// A name in an expression.
    Name,
}

/// Completes at `cursor`, a byte offset that is brought into the text and to a character boundary.
pub fn complete(src: &str, cursor: usize, names: &Names) -> Completion {
    let mut cursor = cursor.min(src.len());
    while !src.is_char_boundary(cursor) {
        cursor -= 1;
    }
    let before = &src[..cursor];
    let start = before
        .rfind(|ch: char| !ch.is_ascii_alphanumeric() && ch != '_')
        .map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let prefix = &before[start..];
    let mut all: BTreeSet<&str> = BTreeSet::new();
    for words in [vocab::KEYWORDS, vocab::COMMANDS, vocab::FUNCTIONS, vocab::NAMESPACES] {
        all.extend(words);
    }
    all.extend(names.value.iter().chain(&names.command).map(|name| &**name));
    if names.session {
        all.extend(["it", "out"]);
    }
    all.extend(declared(&before[..start]));
    let candidates = all.into_iter().filter(|name| name.starts_with(prefix)).map(str::to_owned).collect();
    Completion { candidates, replaces: start..cursor, wanted: wanted(before, start, names) }
}

/// Names that stand after `let`, `var`, `fn` or `alias`, in any scope.
fn declared(before: &str) -> Vec<&str> {
    let tokens = tokens(before);
    let text = |token: &Token| &before[token.start..token.end];
    let mut names = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if token.kind != Tok::Ident || !matches!(text(token), "let" | "var" | "fn" | "alias") {
            continue;
        }
        match tokens.get(i + 1).map(|next| next.kind) {
            Some(Tok::Ident) => names.push(text(&tokens[i + 1])),
            Some(Tok::Op("[" | "{")) => {
                let pattern = tokens[i + 1..].iter().take_while(|token| token.kind != Tok::Op("="));
                names.extend(pattern.filter(|token| token.kind == Tok::Ident).map(text));
            }
            _ => {}
        }
    }
    names
}

/// The tokens of a text that may be broken anywhere; what is no token is passed over.
fn tokens(src: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at = lex::skip_blank(src, at, false, |_, _| {});
        let end = match lex::token(src, at) {
            Ok(Token { kind: Tok::Eof, .. }) => return tokens,
            Ok(token) => {
                tokens.push(token);
                match token.kind {
                    Tok::Quote(_) => lex::scan(src, at).map_or(token.end, |literal| literal.end),
                    _ => token.end,
                }
            }
            Err(_) => at + src[at..].chars().next().map_or(1, char::len_utf8),
        };
        at = end;
    }
}

fn wanted(before: &str, start: usize, names: &Names) -> Wanted {
    let word_start =
        before.rfind(|ch: char| ch.is_ascii_whitespace() || "(){};&|<>\"'".contains(ch)).map_or(0, |at| at + 1);
    let word = &before[word_start.min(start)..];
    let statement = before[..word_start.min(start)].rfind(['\n', ';', '{', '(', '|', '&']).map_or(0, |at| at + 1);
    let head = before[statement..word_start.min(start)].trim_start();
    let path = word.starts_with('~') || word.contains('/');
    if head.is_empty() {
        return match () {
            () if path => Wanted::Path,
            () if before[..start].ends_with('.') => Wanted::Member,
            () => Wanted::Command,
        };
    }
    if !is_command(head, names) {
        return if before[..start].ends_with('.') { Wanted::Member } else { Wanted::Name };
    }
    match () {
        () if word.starts_with('-') => Wanted::Flag,
        () if path => Wanted::Path,
        () => Wanted::Word,
    }
}

/// Whether the line so far reads as a command with words.
fn is_command(head: &str, names: &Names) -> bool {
    let word = &head[..lex::ident_end(head, 0)];
    let expression = vocab::is_keyword(word) || vocab::VALUE_NAMES.contains(&word) || names.value.contains(word);
    if head.starts_with(['^', '/', '~']) || head.starts_with("./") || head.starts_with("../") {
        return true;
    }
    let after = head[word.len()..].trim_start();
    let operator = after.starts_with('=') || ["+=", "-=", "*=", "/="].iter().any(|op| after.starts_with(op));
    !word.is_empty() && !expression && !operator && head[word.len()..].starts_with(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(src: &str, wanted: Wanted, some: &[&str]) {
        let names = Names::session(["deploys".into()].into(), ["build".into()].into());
        let completion = complete(src, src.len(), &names);
        assert_eq!(completion.wanted, wanted, "{src:?}");
        for name in some {
            assert!(completion.candidates.iter().any(|candidate| candidate == name), "{src:?}: {completion:?}");
        }
        assert!(completion.candidates.is_sorted());
    }

    #[test]
    fn the_place_decides_what_is_wanted() {
        check("", Wanted::Command, &["let", "ls", "deploys", "build", "it"]);
        check("bui", Wanted::Command, &["build"]);
        check("ls sr", Wanted::Word, &[]);
        check("ls ./sr", Wanted::Path, &[]);
        check("ls --al", Wanted::Flag, &[]);
        check("let zebra = 1\nlet y = zeb", Wanted::Name, &["zebra"]);
        check("let [zoo, zip] = xs\nz", Wanted::Command, &["zip", "zoo"]);
        check("deploys.fi", Wanted::Member, &[]);
        check("(ls).wh", Wanted::Member, &["while"]);
    }

    #[test]
    fn any_cursor_is_brought_into_the_text() {
        assert_eq!(complete("é", 1, &Names::script()).replaces, 0..0);
        assert_eq!(complete("le", 99, &Names::script()).candidates, ["let"]);
    }
}
