//! The command mode: words, flags, patterns, and arguments of several pieces.

use super::{Context, Parse, Parser, Reject, teach};
use crate::Diag;
use crate::ast::{Arg, ArgKind, Expr, ExprKind, FlagValue, JoinedKind, Name, Piece, PieceKind, Span};
use crate::lex;

/// Whether a bare word ends before the byte at `at`.
pub(super) fn ends_word(src: &str, at: usize) -> bool {
    match src.as_bytes()[at] {
        b' ' | b'\t' | b'\r' | b'\n' | b'(' | b')' | b'{' | b'}' | b'"' | b'\'' | b';' | b'&' | b'<' | b'>' | b'|' => {
            true
        }
        b'\\' => lex::join_len(src, at) > 0,
        _ => false,
    }
}

impl Parser<'_> {
    /// The argument that starts at `at`.
    pub(super) fn argument(&mut self, at: usize) -> Parse<Arg> {
        self.pos = at;
        let pieces = self.pieces()?;
        if pieces.is_empty() {
            return Err(self.unexpected_word());
        }
        if self.byte(self.pos) == b'{' {
            return Err(teach::no_brace_expansion(self.src, at, self.pos).into());
        }
        Ok(classify(pieces))
    }

    /// The pieces from here that touch each other.
    fn pieces(&mut self) -> Parse<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        loop {
            let start = self.pos;
            if start >= self.src.len() {
                return Ok(pieces);
            }
            let kind = match self.byte(start) {
                b'"' | b'\'' => PieceKind::Quoted(Box::new(self.outside_call(|p| p.string_at(start))?)),
                b'(' => PieceKind::Group(Box::new(self.group_piece(pieces.last())?)),
                _ if ends_word(self.src, start) => return Ok(pieces),
                _ => PieceKind::Bare(self.bare_word(pieces.is_empty())?),
            };
            pieces.push(Piece { kind, span: self.span_from(start) });
        }
    }

    /// A run of bare characters; `first` when an argument starts with it.
    pub(super) fn bare_word(&mut self, first: bool) -> Parse<Name> {
        let start = self.pos;
        let end = (start..self.src.len()).find(|&at| ends_word(self.src, at)).unwrap_or(self.src.len());
        let word = &self.src[start..end];
        if let Some(offset) = word.find(['$', '`']) {
            return Err(teach::bad_character(self.src, start + offset).into());
        }
        if first {
            self.word_start(word, start)?;
        }
        self.pos = end;
        Ok(word.into())
    }

    fn word_start(&self, word: &str, start: usize) -> Parse<()> {
        let at = Span::new(start, start + 1).range();
        if word.starts_with('[') && !word.contains(']') {
            return Err(Diag::new(at, "`[` cannot start a command argument")
                .hint("quote the word, or put a list in ( ): `cmd ([a, b])`")
                .into());
        }
        if word.starts_with(']') {
            return Err(Diag::new(at, "unexpected `]`").hint("quote it: ']'").into());
        }
        if word.starts_with('~') && word != "~" && !word.starts_with("~/") {
            return Err(Diag::new(start..start + word.len(), "no ~user expansion")
                .hint(format!("`~` is only your own home; write the path, or quote the word: '{word}'"))
                .into());
        }
        Ok(())
    }

    /// `( ... )` among words.
    fn group_piece(&mut self, before: Option<&Piece>) -> Parse<Expr> {
        let open = self.pos;
        let inside = self.skip(open + 1, true);
        self.pos = open + 1;
        let cx = Context { newlines: true, ..Context::default() };
        let outer = std::mem::replace(&mut self.item_used, false);
        let result = self.nested(|p| p.within(cx, Self::group_inside));
        self.item_used = outer;
        match (result, before) {
            (Err(reject), Some(Piece { kind: PieceKind::Bare(word), .. })) if !reject.fatal && names_method(word) => {
                Err(self.method_on_words(word, open, inside))
            }
            (result, _) => result,
        }
    }

    /// `docker ps.len()`: a method call on a command without parentheses.
    fn method_on_words(&self, word: &str, open: usize, inside: usize) -> Reject {
        let line_start = self.src[..open].rfind(['\n', ';', '(', '{']).map_or(0, |at| at + 1);
        let dot = open - word.len() + word.rfind('.').unwrap_or(0);
        let close = lex::balanced_end(self.src, open).unwrap_or(open + 1);
        let (command, call) = (self.src[line_start..dot].trim(), &self.src[dot..close]);
        let wrapped = format!("({command}){call}");
        if self.byte(inside) == b'.' {
            return Diag::new(inside..inside + 1, "leading `.` has no receiver here")
                .hint(format!("wrap the command in parentheses: `{wrapped}`"))
                .into();
        }
        Diag::new(dot..close, "to call a method on a command, wrap the command in parentheses")
            .hint(format!("`{wrapped}`"))
            .into()
    }

    /// Reads something that has no part in the implicit item of a call around it.
    pub(super) fn outside_call<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let cx = Context { item: false, ..self.cx };
        self.within(cx, read)
    }
}

/// Whether the word ends in `.NAME`.
fn names_method(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(_, name)| lex::is_name(name))
}

/// The kind of an argument follows from its first bare piece.
fn classify(pieces: Vec<Piece>) -> Arg {
    let span = pieces[0].span.to(pieces[pieces.len() - 1].span);
    let kind = match &pieces[0].kind {
        PieceKind::Bare(word) if word.starts_with('-') => {
            let word = word.clone();
            flag(&word, pieces)
        }
        _ => plain(pieces),
    };
    Arg { kind, span }
}

fn flag(word: &str, pieces: Vec<Piece>) -> ArgKind {
    let single = pieces.len() == 1;
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, _)) => (name, true),
            None => (long, false),
        };
        if is_flag_name(name) && (single || value) {
            return long_flag(name, value, pieces);
        }
        if word == "--" && single {
            return ArgKind::DashDash;
        }
    } else if word == "-" && single {
        return ArgKind::Dash;
    } else if single && word[1..].bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return ArgKind::ShortFlags { letters: word[1..].into(), raw: word.into() };
    }
    match plain(pieces) {
        ArgKind::Joined { pieces, kind: JoinedKind::Word } => ArgKind::Joined { pieces, kind: JoinedKind::Flag },
        kind => kind,
    }
}

fn is_flag_name(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn long_flag(name: &str, has_value: bool, mut pieces: Vec<Piece>) -> ArgKind {
    let name: Name = name.into();
    if !has_value {
        return ArgKind::LongFlag { raw: format!("--{name}").into(), name, value: FlagValue::None };
    }
    let first = pieces.remove(0);
    let text = match &first.kind {
        PieceKind::Bare(word) => &word[name.len() + 3..],
        _ => "",
    };
    if !text.is_empty() {
        let start = first.span.end as usize - text.len();
        let span = Span::new(start, first.span.end as usize);
        pieces.insert(0, Piece { kind: PieceKind::Bare(text.into()), span });
    }
    let value = if pieces.is_empty() { FlagValue::Next } else { FlagValue::Given(Box::new(data(pieces))) };
    ArgKind::LongFlag { raw: format!("--{name}=").into(), name, value }
}

/// An argument that is never a flag, glob or path: the value of a flag or of an environment prefix.
pub(super) fn data(mut pieces: Vec<Piece>) -> Arg {
    let span = pieces[0].span.to(pieces[pieces.len() - 1].span);
    let kind = if pieces.len() == 1 {
        match pieces.remove(0).kind {
            PieceKind::Bare(word) => ArgKind::Word(word),
            PieceKind::Quoted(expr) => ArgKind::Quoted(expr),
            PieceKind::Group(expr) => ArgKind::Group(expr),
        }
    } else {
        ArgKind::Joined { pieces, kind: JoinedKind::Word }
    };
    Arg { kind, span }
}

fn plain(pieces: Vec<Piece>) -> ArgKind {
    let bare = |piece: &Piece| match &piece.kind {
        PieceKind::Bare(word) => Some(word.clone()),
        _ => None,
    };
    let Some(first) = bare(&pieces[0]) else { return data(pieces).kind };
    let words: Vec<Name> = pieces.iter().filter_map(bare).collect();
    let single = pieces.len() == 1;
    if words.iter().any(|word| has_wildcard(word)) && !words.iter().any(|word| word.contains("://")) {
        return if single { ArgKind::Glob(first) } else { ArgKind::Joined { pieces, kind: JoinedKind::Glob } };
    }
    if is_path(&first) {
        return if single { ArgKind::Path(first) } else { ArgKind::Joined { pieces, kind: JoinedKind::Path } };
    }
    if single { ArgKind::Word(first) } else { ArgKind::Joined { pieces, kind: JoinedKind::Word } }
}

fn has_wildcard(word: &str) -> bool {
    word.contains(['*', '?']) || word.split_once('[').is_some_and(|(_, rest)| rest.contains(']'))
}

fn is_path(word: &str) -> bool {
    word == "~" || ["~/", "./", "../", "/"].iter().any(|start| word.starts_with(start))
}

/// The text of an argument that is one bare word.
pub(super) fn lone_word(arg: &Arg) -> Option<&Name> {
    match &arg.kind {
        ArgKind::Word(word) => Some(word),
        _ => None,
    }
}

/// A group as the value of an argument.
pub(super) fn group_arg(expr: Expr) -> Arg {
    let span = expr.span;
    Arg { kind: ArgKind::Group(Box::new(expr)), span }
}

/// The value of `NAME=` in an environment prefix.
pub(super) fn empty_value(at: usize) -> Arg {
    let span = Span::new(at, at);
    Arg { kind: ArgKind::Quoted(Box::new(Expr::new(ExprKind::Str("".into()), span))), span }
}

impl Parser<'_> {
    /// The value of an environment prefix, from here.
    pub(super) fn env_value(&mut self) -> Parse<Arg> {
        let at = self.pos;
        let pieces = self.pieces()?;
        Ok(if pieces.is_empty() { empty_value(at) } else { data(pieces) })
    }
}
