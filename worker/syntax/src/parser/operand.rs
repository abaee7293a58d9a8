//! Operands: literals, names, groups, lists, records, blocks.

use super::{Parse, Parser, teach};
use crate::Diag;
use crate::ast::{Expr, ExprKind, Ident, Name, RecordField};
use crate::lex::{self, Number, Tok, Token};
use crate::vocab;

impl Parser<'_> {
    pub(super) fn operand(&mut self) -> Parse<Expr> {
        let token = self.peek()?;
        match token.kind {
            Tok::Number(number) => {
                let span = self.take(token);
                Ok(Expr::new(number_kind(number), span))
            }
            Tok::Quote(_) => self.string_expr(),
            Tok::Regex => Ok(self.tagged(token, 2, ExprKind::Regex)),
            Tok::DateTime => Ok(self.tagged(token, 1, ExprKind::DateTime)),
            Tok::Ident => self.word_operand(token),
            Tok::Op("(") => self.group(),
            Tok::Op("[") => self.list(),
            Tok::Op("{") => self.brace(),
            Tok::Op("." | "?.") => self.item(token.start),
            Tok::Op("|") => Err(teach::no_pipe(token.start, token.end).hint("a lambda is written `x => x + 1`").into()),
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// `re"..."`, `t"..."`: what stands between the quotes.
    fn tagged(&mut self, token: Token, tag: usize, kind: impl FnOnce(Name) -> ExprKind) -> Expr {
        let text = &self.src[token.start + tag + 1..token.end - 1];
        let span = self.take(token);
        Expr::new(kind(text.into()), span)
    }

    fn word_operand(&mut self, token: Token) -> Parse<Expr> {
        let word = self.text(token);
        let literal = match word {
            "null" => Some(ExprKind::Null),
            "true" => Some(ExprKind::Bool(true)),
            "false" => Some(ExprKind::Bool(false)),
            _ => None,
        };
        if let Some(kind) = literal {
            let span = self.take(token);
            return Ok(Expr::new(kind, span));
        }
        match word {
            "if" => self.if_expr(),
            "match" => self.match_expr(),
            "try" => self.try_expr(),
            "with" => self.with_expr(),
            "spawn" => self.spawn_expr(),
            _ if vocab::is_keyword(word) => Err(self.unexpected("an expression")),
            _ if self.is_lang_block(word, token.end) => self.lang_block(token),
            _ => self.variable(token),
        }
    }

    fn variable(&mut self, token: Token) -> Parse<Expr> {
        let word = self.text(token);
        if self.scopes.is_missing_transcript(word) {
            return Err(teach::transcript(word, token).into());
        }
        let span = self.take(token);
        Ok(Expr::new(ExprKind::Var(word.into()), span))
    }

    fn lang_block(&mut self, token: Token) -> Parse<Expr> {
        let tool = self.text(token);
        self.take(token);
        let text = if self.byte(token.end) == b'\'' {
            self.raw_program(token.end)?
        } else {
            let open = self.next_start();
            let Some(end) = lex::brace_end(self.src, open) else {
                return Err(teach::open_lang_block(self.src, tool, open).into());
            };
            self.pos = end;
            self.program_text(open + 1..end - 1)
        };
        let kind = ExprKind::LangBlock { tool: tool.into(), text: text.into() };
        Ok(Expr::new(kind, self.span_from(token.start)))
    }

    /// `( ... )`: holds a command if one starts inside.
    fn group(&mut self) -> Parse<Expr> {
        let open = self.expect_op("(")?;
        let cx = self.bracketed();
        let inner = self.nested(|p| p.within(cx, Self::group_inside))?;
        let span = self.span_from(open.start as usize);
        Ok(Expr::new(ExprKind::Group(Box::new(inner)), span))
    }

    /// The inside of a group and its `)`.
    pub(super) fn group_inside(&mut self) -> Parse<Expr> {
        if self.at_op(")") {
            return Err(self.unexpected("an expression or a command"));
        }
        let at = self.next_start();
        let bracket = self.test_bracket(at);
        match self.command_or_expr() {
            Err(reject) if bracket && !reject.fatal => Err(teach::test_brackets(self.src, at).into()),
            Err(reject) => Err(reject),
            Ok(inner) => {
                self.expect_op(")")?;
                Ok(inner)
            }
        }
    }

    fn list(&mut self) -> Parse<Expr> {
        let open = self.expect_op("[")?;
        let cx = self.bracketed();
        let items = self.nested(|p| {
            p.within(cx, |p| {
                let mut items = Vec::new();
                while p.eat_op("]").is_none() {
                    items.push(p.expr()?);
                    if p.eat_op(",").is_none() && !p.at_op("]") {
                        return Err(p.unexpected("`,` or `]`"));
                    }
                }
                Ok(items)
            })
        })?;
        Ok(Expr::new(ExprKind::List(items), self.span_from(open.start as usize)))
    }

    /// `{` where an expression may start: a record or a block.
    fn brace(&mut self) -> Parse<Expr> {
        let open = self.next_start();
        if self.is_record(open) {
            return self.record();
        }
        let block = self.block(self.cx.item)?;
        let span = block.span;
        Ok(Expr::new(ExprKind::Block(block), span))
    }

    /// Whether the `{` at `open` is followed by `}`, by a key and `:`, or by a name and `,`.
    fn is_record(&mut self, open: usize) -> bool {
        let at = self.skip(open + 1, true);
        let end = match self.byte(at) {
            b'}' => return true,
            b'"' | b'\'' => match lex::scan(self.src, at) {
                Ok(literal) => literal.end,
                Err(_) => return false,
            },
            _ => lex::ident_end(self.src, at),
        };
        let next = self.skip(end, true);
        let name = end > at && !matches!(self.byte(at), b'"' | b'\'');
        end > at && (self.byte(next) == b':' || (name && self.byte(next) == b','))
    }

    fn record(&mut self) -> Parse<Expr> {
        let open = self.expect_op("{")?;
        let cx = self.bracketed();
        let fields = self.nested(|p| {
            p.within(cx, |p| {
                let mut fields = Vec::new();
                while p.eat_op("}").is_none() {
                    fields.push(p.record_field()?);
                    if p.eat_op(",").is_none() && !p.at_op("}") {
                        return Err(p.unexpected("`,` or `}`"));
                    }
                }
                Ok(fields)
            })
        })?;
        Ok(Expr::new(ExprKind::Record(fields), self.span_from(open.start as usize)))
    }

    fn record_field(&mut self) -> Parse<RecordField> {
        let token = self.peek()?;
        let name = match token.kind {
            Tok::Ident => {
                let colon = self.skip(token.end, true);
                if self.byte(colon) != b':' {
                    return self.shorthand(token);
                }
                self.take_ident(token)
            }
            Tok::Quote(_) => self.string_key()?,
            _ => return Err(self.unexpected("a key or `}`")),
        };
        self.expect_op(":")?;
        let value = self.expr()?;
        let span = name.span.to(value.span);
        Ok(RecordField { name, value, shorthand: false, span })
    }

    fn shorthand(&mut self, token: Token) -> Parse<RecordField> {
        let word = self.text(token);
        if vocab::is_keyword(word) {
            return Err(self.unexpected("a name, or a key with `:`"));
        }
        let value = self.variable(token)?;
        let name = Ident { name: word.into(), span: value.span };
        Ok(RecordField { span: value.span, name, value, shorthand: true })
    }

    fn string_key(&mut self) -> Parse<Ident> {
        let key = self.string_expr()?;
        match key.kind {
            ExprKind::Str(name) => Ok(Ident { name, span: key.span }),
            _ => Err(Diag::new(key.span.range(), "a key cannot have holes")
                .hint("build the record with `.set(key, value)`, or quote the key with '...'")
                .into()),
        }
    }
}

pub(super) fn number_kind(number: Number) -> ExprKind {
    match number {
        Number::Int(value) => ExprKind::Int(value),
        Number::Float(value) => ExprKind::Float(value),
        Number::Size(bytes) => ExprKind::Size(bytes),
        Number::Duration(nanos) => ExprKind::Duration(nanos),
        Number::Time(hour, minute, second) => ExprKind::Time { hour, minute, second },
    }
}
