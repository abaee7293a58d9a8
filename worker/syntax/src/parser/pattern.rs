//! Patterns.

use super::operand::number_kind;
use super::{Context, Parse, Parser, teach};
use crate::Diag;
use crate::ast::{Expr, ExprKind, FieldPattern, Ident, Pattern, PatternKind, RestPattern, Span, TypeName};
use crate::lex::{Number, Tok, Token};
use crate::vocab;

/// A pattern that binds a name; `_` binds nothing.
pub(super) fn bind(name: &str, span: Span) -> Pattern {
    let kind = if name == "_" { PatternKind::Wildcard } else { PatternKind::Bind(name.into()) };
    Pattern { kind, span }
}

impl Parser<'_> {
    /// The pattern of `let`, `for` and lambda parameters: a name, `_`, a list or a record.
    pub(super) fn binding_pattern(&mut self) -> Parse<Pattern> {
        let token = self.peek()?;
        match token.kind {
            Tok::Op("[" | "{") => self.pattern(),
            _ => {
                let name = self.expect_binding_name("a name, `_`, `[...]` or `{...}`")?;
                Ok(bind(&name.name, name.span))
            }
        }
    }

    pub(super) fn pattern(&mut self) -> Parse<Pattern> {
        let token = self.peek()?;
        match token.kind {
            Tok::Ident => self.word_pattern(token),
            Tok::Op("-") => {
                self.take(token);
                self.number_pattern(token.start, true)
            }
            Tok::Number(_) => self.number_pattern(token.start, false),
            Tok::Op("[") => self.list_pattern(),
            Tok::Op("{") => self.record_pattern(),
            Tok::Regex | Tok::DateTime | Tok::Quote(_) => {
                let literal = self.operand()?;
                let span = literal.span;
                let kind = match literal.kind {
                    ExprKind::Regex(text) => PatternKind::Regex(text),
                    ExprKind::Interp(_) => return Err(holes_in_pattern(span).into()),
                    _ => PatternKind::Literal(Box::new(literal)),
                };
                Ok(Pattern { kind, span })
            }
            _ => Err(self.unexpected("a pattern")),
        }
    }

    fn word_pattern(&mut self, token: Token) -> Parse<Pattern> {
        let word = self.text(token);
        if matches!(word, "null" | "true" | "false") {
            let literal = self.operand()?;
            return Ok(Pattern { span: literal.span, kind: PatternKind::Literal(Box::new(literal)) });
        }
        let name = self.expect_binding_name("a pattern")?;
        let next = self.peek()?;
        if next.kind != Tok::Ident || vocab::is_keyword(self.text(next)) {
            return Ok(bind(word, name.span));
        }
        let Some(ty) = TypeName::from_text(word) else {
            return Err(teach::unknown_type(&name).into());
        };
        let binder = self.take_ident(next);
        let span = name.span.to(binder.span);
        let binder = (&*binder.name != "_").then_some(binder);
        Ok(Pattern { kind: PatternKind::Type { ty, binder }, span })
    }

    fn number_pattern(&mut self, start: usize, negative: bool) -> Parse<Pattern> {
        let number = self.pattern_number(negative)?;
        if let Number::Int(first) = number {
            let inclusive = match self.peek()?.kind {
                Tok::Op("..") => Some(false),
                Tok::Op("..=") => Some(true),
                _ => None,
            };
            if let Some(inclusive) = inclusive {
                return self.range_pattern(start, first, inclusive);
            }
        }
        let span = self.span_from(start);
        let literal = Expr::new(number_kind(number), span);
        Ok(Pattern { kind: PatternKind::Literal(Box::new(literal)), span })
    }

    fn range_pattern(&mut self, start: usize, first: i64, inclusive: bool) -> Parse<Pattern> {
        self.expect_op(if inclusive { "..=" } else { ".." })?;
        let negative = self.eat_op("-").is_some();
        let at = self.next_start();
        let Number::Int(end) = self.pattern_number(negative)? else {
            return Err(Diag::new(at..self.pos, "the ends of a range pattern are ints").into());
        };
        Ok(Pattern { kind: PatternKind::Range { start: first, end, inclusive }, span: self.span_from(start) })
    }

    fn pattern_number(&mut self, negative: bool) -> Parse<Number> {
        let token = self.peek()?;
        let Tok::Number(number) = token.kind else {
            return Err(self.unexpected("a number"));
        };
        self.take(token);
        match number {
            _ if !negative => Ok(number),
            Number::Int(value) => Ok(Number::Int(-value)),
            Number::Float(value) => Ok(Number::Float(-value)),
            Number::Duration(nanos) => Ok(Number::Duration(-nanos)),
            Number::Size(_) | Number::Time(..) => {
                Err(Diag::new(token.start..token.end, "sizes and times of day have no sign").into())
            }
        }
    }

    fn list_pattern(&mut self) -> Parse<Pattern> {
        let open = self.expect_op("[")?;
        let cx = self.pattern_context();
        let (items, rest) = self.nested(|p| p.within(cx, Self::list_pattern_inside))?;
        Ok(Pattern { kind: PatternKind::List { items, rest }, span: self.span_from(open.start as usize) })
    }

    fn list_pattern_inside(&mut self) -> Parse<(Vec<Pattern>, Option<RestPattern>)> {
        let mut items = Vec::new();
        loop {
            if self.eat_op("]").is_some() {
                return Ok((items, None));
            }
            if let Some(dots) = self.eat_op("...") {
                let name = self.expect_binding_name("a name or `_` after `...`")?;
                let span = dots.to(name.span);
                self.eat_op(",");
                if self.eat_op("]").is_none() {
                    return Err(Diag::new(span.range(), format!("`...{}` must be last", name.name))
                        .hint("the rest takes what the other patterns leave")
                        .into());
                }
                let name = (&*name.name != "_").then_some(name);
                return Ok((items, Some(RestPattern { name, span })));
            }
            items.push(self.pattern()?);
            if self.eat_op(",").is_none() && !self.at_op("]") {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn record_pattern(&mut self) -> Parse<Pattern> {
        let open = self.expect_op("{")?;
        let cx = self.pattern_context();
        let fields = self.nested(|p| {
            p.within(cx, |p| {
                let mut fields = Vec::new();
                while p.eat_op("}").is_none() {
                    fields.push(p.field_pattern()?);
                    if p.eat_op(",").is_none() && !p.at_op("}") {
                        return Err(p.unexpected("`,` or `}`"));
                    }
                }
                Ok(fields)
            })
        })?;
        Ok(Pattern { kind: PatternKind::Record(fields), span: self.span_from(open.start as usize) })
    }

    fn field_pattern(&mut self) -> Parse<FieldPattern> {
        let name: Ident = self.expect_ident("the name of a field")?;
        let pattern = if self.eat_op(":").is_some() { Some(self.pattern()?) } else { None };
        if pattern.is_none() && vocab::is_keyword(&name.name) {
            return Err(Diag::new(name.span.range(), format!("`{}` is reserved and cannot be bound", name.name))
                .hint(format!("bind it to another name: `{}: value`", name.name))
                .into());
        }
        let span = self.span_from(name.span.start as usize);
        Ok(FieldPattern { name, pattern, span })
    }

    fn pattern_context(&self) -> Context {
        Context { item: false, ..self.bracketed() }
    }
}

fn holes_in_pattern(span: Span) -> Diag {
    Diag::new(span.range(), "a string pattern cannot have holes").hint("compare in a guard: `s if s == \"...\" => ...`")
}
