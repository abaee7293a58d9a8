//! Strings as expressions: text, holes, raw programs.

use std::ops::Range;

use super::{Parse, Parser, Reject};
use crate::ast::{Expr, ExprKind, InterpPart, Name};
use crate::lex::{self, Form, Part};
use crate::{Diag, Note};

impl Parser<'_> {
    /// The string literal that is next.
    pub(super) fn string_expr(&mut self) -> Parse<Expr> {
        let at = self.next_start();
        self.string_at(at)
    }

    /// The string literal whose quotes are at `at`.
    pub(super) fn string_at(&mut self, at: usize) -> Parse<Expr> {
        let form = Form::at(self.src, at);
        let literal = lex::scan(self.src, at)?;
        let mut parts: Vec<InterpPart> = Vec::new();
        let mut text = String::new();
        for part in literal.parts {
            match part {
                Part::Text(range) if form.interpolates() => {
                    self.note_sigils(range.clone());
                    text.push_str(&lex::unescape(self.src, range)?);
                }
                Part::Text(range) => text.push_str(&self.src[range]),
                Part::Hole(range) => {
                    if !text.is_empty() {
                        parts.push(InterpPart::Lit(std::mem::take(&mut text).into()));
                    }
                    parts.push(InterpPart::Hole(self.hole(range)?));
                }
            }
        }
        self.pos = literal.end;
        let kind = if parts.is_empty() {
            ExprKind::Str(text.into())
        } else {
            if !text.is_empty() {
                parts.push(InterpPart::Lit(text.into()));
            }
            ExprKind::Interp(parts)
        };
        Ok(Expr::new(kind, self.span_from(at)))
    }

    /// A hole is read like the inside of `( )`, but a lone name is always an expression.
    fn hole(&mut self, range: Range<usize>) -> Parse<Expr> {
        let whole = self.src;
        self.src = &whole[..range.end];
        self.pos = range.start;
        let cx = self.bracketed();
        let result = self.nested(|p| p.within(cx, Self::hole_inside));
        self.src = whole;
        result.map_err(|reject| self.explain_hole(reject, range))
    }

    fn hole_inside(&mut self) -> Parse<Expr> {
        let start = self.next_start();
        let name_end = lex::ident_end(self.src, start);
        let lone = name_end > start && self.skip(name_end, true) == self.src.len();
        let expr = if lone { self.expr()? } else { self.command_or_expr()? };
        let end = self.next_start();
        if end < self.src.len() {
            return Err(self.unexpected("`}`, one expression or command in a hole"));
        }
        Ok(expr)
    }

    /// Text that starts like JSON was probably not meant to have a hole.
    fn explain_hole(&self, mut reject: Reject, hole: Range<usize>) -> Reject {
        let text = self.src[hole].trim_start_matches(['{', '[', ' ', '\n', '\t']);
        if !reject.fatal && (text.is_empty() || (text.starts_with('"') && text.contains([':', ',']))) {
            reject.diag.hint = Some("`{` starts a hole; for text with braces use single quotes: '...'".to_owned());
        } else if !reject.fatal && reject.diag.hint.is_none() {
            reject.diag.hint = Some("a hole holds one expression; write \\{ for a brace".to_owned());
        }
        reject.diag.partial = false;
        reject
    }

    fn note_sigils(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while let Some(offset) = self.src[at..range.end].find('$') {
            at += offset + 1;
            let end = lex::ident_end(&self.src[..range.end], at);
            if end > at {
                let name = &self.src[at..end];
                let text = format!("`${name}` is plain text here: write {{{name}}}");
                self.notes.push(Note { at: at - 1..end, text });
            }
        }
    }

    /// The program of an interpreter as a raw string: `sh'''...'''`.
    pub(super) fn raw_program(&mut self, at: usize) -> Parse<String> {
        let literal = self.string_at(at)?;
        let text: Name = match literal.kind {
            ExprKind::Str(text) => text,
            _ => return Err(Diag::new(at..self.pos, "a raw program has no holes").into()),
        };
        Ok(text.trim().to_owned())
    }

    /// The program in the braces of an interpreter's block, dedented if it starts on a line of its own.
    pub(super) fn program_text(&self, range: Range<usize>) -> String {
        let text = &self.src[range.clone()];
        let lead = text.len() - text.trim_start_matches([' ', '\t', '\r']).len();
        if !text[lead..].starts_with('\n') {
            return text.trim().to_owned();
        }
        let parts = lex::dedent(self.src, vec![Part::Text(range.start + lead..range.end)]);
        let dedented: String = parts
            .into_iter()
            .map(|part| match part {
                Part::Text(range) | Part::Hole(range) => &self.src[range],
            })
            .collect();
        dedented.trim().to_owned()
    }
}
