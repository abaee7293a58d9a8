//! The parser: recursive descent over tokens that are asked for one by one, in the mode the place calls for.
//!
//! A rule returns its node or a [`Reject`] with the diagnostic; rejects travel up to the statement, where the parser
//! takes up again at the next line. Nothing is decided by running something, only by the text and by [`Scopes`].

mod command;
mod construct;
mod dispatch;
mod expr;
mod foreign;
mod names;
mod operand;
mod pattern;
mod postfix;
mod recover;
mod stmt;
mod string;
pub(crate) mod teach;
mod words;

use std::collections::BTreeMap;

use crate::ast::{Ident, Program, Span};
use crate::lex::{self, Tok, Token};
use crate::nesting::with_stack;
use crate::{Diag, MAX_NESTING, Names, Note, Parsed};
use names::Scopes;

/// Why a rule did not apply.
pub(crate) struct Reject {
    pub(crate) diag: Box<Diag>,
    /// No other reading of the text and no further text is worth trying.
    pub(crate) fatal: bool,
}

impl From<Diag> for Reject {
    fn from(diag: Diag) -> Self {
        Self { diag: Box::new(diag), fatal: false }
    }
}

pub(crate) type Parse<T> = Result<T, Reject>;

/// What the place of an expression allows.
#[derive(Debug, Clone, Copy, Default)]
struct Context {
    /// Inside brackets: a newline is blank.
    newlines: bool,
    /// At the top level of a construct's head: `{` opens the construct's block.
    head: bool,
    /// At the top level of a match guard: `=>` is the arm's arrow.
    guard: bool,
    /// In a positional call argument: a leading `.` is the item.
    item: bool,
}

pub(crate) struct Parser<'s> {
    /// The source up to the end of what is read: all of it, or up to the end of a hole.
    src: &'s str,
    /// End of the last token that was taken.
    pos: usize,
    cx: Context,
    /// Whether a leading `.` was read since the innermost positional argument began.
    item_used: bool,
    scopes: Scopes<'s>,
    depth: usize,
    /// Greatest depth of the tree below the operand that is being read; operator chains nest without recursion.
    peak: usize,
    notes: Vec<Note>,
    comments: BTreeMap<usize, usize>,
}

/// Reads a whole source.
pub(crate) fn program(src: &str, names: &Names) -> Parsed {
    let mut parser = Parser::new(src, names);
    let (stmts, diags) = parser.statements_of_program();
    let comments = parser.comments.iter().map(|(&start, &end)| Span::new(start, end)).collect();
    let mut notes = parser.notes;
    notes.sort_by_key(|note| note.at.start);
    notes.dedup();
    Parsed { program: Program { stmts, span: Span::new(0, src.len()) }, diags, notes, comments }
}

impl<'s> Parser<'s> {
    fn new(src: &'s str, names: &'s Names) -> Self {
        Self {
            src,
            pos: 0,
            cx: Context::default(),
            item_used: false,
            scopes: Scopes::new(names),
            depth: 0,
            peak: 0,
            notes: Vec::new(),
            comments: BTreeMap::new(),
        }
    }

    // Tokens

    /// The start of the next token; newlines are skipped inside brackets.
    fn next_start(&mut self) -> usize {
        self.skip(self.pos, self.cx.newlines)
    }

    fn skip(&mut self, at: usize, newlines: bool) -> usize {
        let comments = &mut self.comments;
        lex::skip_blank(self.src, at, newlines, |start, end| {
            comments.insert(start, end);
        })
    }

    fn peek(&mut self) -> Parse<Token> {
        let at = self.next_start();
        lex::token(self.src, at)
    }

    /// The token after blanks and newlines, wherever we are.
    fn peek_over_newlines(&mut self) -> Parse<Token> {
        let at = self.skip(self.pos, true);
        lex::token(self.src, at)
    }

    fn take(&mut self, token: Token) -> Span {
        self.pos = token.end;
        Span::new(token.start, token.end)
    }

    fn text(&self, token: Token) -> &'s str {
        &self.src[token.start..token.end]
    }

    /// Whether the next token is this operator; what is no token is not.
    fn at_op(&mut self, op: &str) -> bool {
        matches!(self.peek(), Ok(Token { kind: Tok::Op(found), .. }) if found == op)
    }

    /// Takes the operator if it is next.
    fn eat_op(&mut self, op: &str) -> Option<Span> {
        match self.peek() {
            Ok(token) if matches!(token.kind, Tok::Op(found) if found == op) => Some(self.take(token)),
            _ => None,
        }
    }

    /// Whether the next token is this word.
    fn at_word(&mut self, word: &str) -> bool {
        matches!(self.peek(), Ok(token) if token.kind == Tok::Ident && self.text(token) == word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            let at = self.next_start();
            self.pos = at + word.len();
        }
        found
    }

    /// Takes the operator or says what was expected instead of what is there.
    fn expect_op(&mut self, op: &str) -> Parse<Span> {
        match self.eat_op(op) {
            Some(span) => Ok(span),
            None => Err(self.unexpected(&format!("`{op}`"))),
        }
    }

    fn expect_ident(&mut self, what: &str) -> Parse<Ident> {
        let token = self.peek()?;
        if token.kind != Tok::Ident {
            return Err(self.unexpected(what));
        }
        Ok(self.take_ident(token))
    }

    /// A name that a declaration may bind: no reserved word.
    fn expect_binding_name(&mut self, what: &str) -> Parse<Ident> {
        let token = self.peek()?;
        if token.kind == Tok::Ident && crate::vocab::is_keyword(self.text(token)) {
            let word = self.text(token);
            return Err(Diag::new(
                token.start..token.end,
                format!("expected {what}, found the reserved word `{word}`"),
            )
            .hint("choose another name")
            .into());
        }
        self.expect_ident(what)
    }

    fn take_ident(&mut self, token: Token) -> Ident {
        Ident { name: self.text(token).into(), span: self.take(token) }
    }

    fn byte(&self, at: usize) -> u8 {
        self.src.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn rest(&self, at: usize) -> &'s str {
        self.src.get(at..).unwrap_or("")
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.pos)
    }

    // Context and nesting

    fn within<T>(&mut self, cx: Context, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.cx, cx);
        let result = read(self);
        self.cx = outer;
        result
    }

    /// The context inside brackets.
    fn bracketed(&self) -> Context {
        Context { newlines: true, head: false, guard: false, item: self.cx.item }
    }

    /// One level of brackets, block or expression deeper.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.depth += 1;
        self.peak = self.peak.max(self.depth);
        let result = if self.depth > MAX_NESTING { Err(self.too_deep()) } else { with_stack(|| read(self)) };
        self.depth -= 1;
        result
    }

    /// Reads a chain of operators, whose links push its first operand deeper.
    fn chain<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.peak, self.depth);
        let result = read(self);
        self.peak = self.peak.max(outer);
        result
    }

    /// One more link around what the chain has read so far.
    fn link(&mut self) -> Parse<()> {
        self.peak += 1;
        if self.peak > MAX_NESTING { Err(self.too_deep()) } else { Ok(()) }
    }

    fn too_deep(&mut self) -> Reject {
        let at = self.next_start();
        let diag = Diag::new(at..at, format!("nested too deeply: the limit is {MAX_NESTING} levels"))
            .hint("give parts names with `let`, or split the program into functions");
        Reject { diag: Box::new(diag), fatal: true }
    }

    /// Reads something that may not be there: puts everything back if it is not.
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let (pos, item_used, notes) = (self.pos, self.item_used, self.notes.len());
        let scopes = self.scopes.mark();
        let result = read(self);
        if result.is_err() {
            self.pos = pos;
            self.item_used = item_used;
            self.notes.truncate(notes);
            self.scopes.reset(scopes);
        }
        result
    }
}
