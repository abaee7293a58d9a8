//! What may follow an operand: fields, methods, indexes, calls.

use std::sync::Arc;

use super::{Context, Parse, Parser};
use crate::Diag;
use crate::ast::{Args, Expr, ExprKind, Lambda, LambdaKind, NamedArg, Span};
use crate::lex::{self, Tok};

impl Parser<'_> {
    /// Reads the accesses and calls after an operand.
    pub(super) fn postfix(&mut self, operand: Expr) -> Parse<Expr> {
        let start = operand.span.start as usize;
        let mut expr = operand;
        loop {
            let kind = if let Some(optional) = self.eat_dot(&expr) {
                self.link()?;
                self.access(expr, optional)?
            } else if self.touches(b'[', &expr) {
                self.link()?;
                let index = self.index()?;
                ExprKind::Index { recv: Box::new(expr), index: Box::new(index) }
            } else if self.touches(b'(', &expr) {
                self.link()?;
                let args = self.args(false)?;
                ExprKind::Call { callee: Box::new(expr), args }
            } else {
                return Ok(expr);
            };
            expr = Expr::new(kind, self.span_from(start));
        }
    }

    /// Whether a `.NAME` or `?.NAME` on the next line continues what was read.
    pub(super) fn continues_on_next_line(&mut self) -> bool {
        let same_line = self.skip(self.pos, false);
        let at = self.skip(self.pos, true);
        at > same_line && self.dot_len(at).is_some()
    }

    /// The length of `.` or `?.` if a name directly follows.
    fn dot_len(&self, at: usize) -> Option<usize> {
        let len = if self.byte(at) == b'.' {
            1
        } else if self.rest(at).starts_with("?.") {
            2
        } else {
            return None;
        };
        lex::is_ident_start(self.byte(at + len)).then_some(len)
    }

    /// Takes `.` or `?.`; the answer is whether it is optional.
    fn eat_dot(&mut self, expr: &Expr) -> Option<bool> {
        let negated = matches!(&expr.kind, ExprKind::Var(name) if &**name == "not");
        let at = self.skip(self.pos, true);
        let here = at == self.pos;
        let len = self.dot_len(at)?;
        if negated && !here {
            return None;
        }
        self.pos = at + len;
        Some(len == 2)
    }

    /// An opening bracket directly after what was read; after the implicit item there is none.
    fn touches(&self, byte: u8, expr: &Expr) -> bool {
        self.byte(self.pos) == byte && !matches!(expr.kind, ExprKind::Item)
    }

    fn access(&mut self, recv: Expr, optional: bool) -> Parse<ExprKind> {
        let name = self.expect_ident("a field or method name")?;
        let recv = Box::new(recv);
        if self.byte(self.pos) == b'(' {
            let args = self.args(&*name.name == "feed")?;
            return Ok(ExprKind::Method { recv, name, args, optional });
        }
        if self.at_trailing_block() {
            let block = self.trailing_block()?;
            let span = block.span;
            let args = Args { pos: vec![block], named: Vec::new(), span };
            return Ok(ExprKind::Method { recv, name, args, optional });
        }
        Ok(ExprKind::Field { recv, name, optional })
    }

    fn index(&mut self) -> Parse<Expr> {
        self.expect_op("[")?;
        let cx = self.bracketed();
        self.nested(|p| {
            p.within(cx, |p| {
                let index = p.expr()?;
                p.expect_op("]")?;
                Ok(index)
            })
        })
    }

    /// `( ... )` with a trailing block; with `feed` a positional argument may be a command.
    fn args(&mut self, feed: bool) -> Parse<Args> {
        let open = self.expect_op("(")?;
        let cx = self.bracketed();
        let mut args = self.nested(|p| p.within(cx, |p| p.args_inside(feed)))?;
        if self.at_trailing_block() {
            args.pos.push(self.trailing_block()?);
        }
        args.span = self.span_from(open.start as usize);
        Ok(args)
    }

    fn args_inside(&mut self, feed: bool) -> Parse<Args> {
        let mut args = Args::default();
        loop {
            if self.eat_op(")").is_some() {
                return Ok(args);
            }
            match self.named_arg()? {
                Some(named) => args.named.push(named),
                None => args.pos.push(self.positional(feed)?),
            }
            if self.eat_op(",").is_none() && !self.at_op(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }

    fn named_arg(&mut self) -> Parse<Option<NamedArg>> {
        let Ok(token) = self.peek() else { return Ok(None) };
        if token.kind != Tok::Ident {
            return Ok(None);
        }
        let colon = self.skip(token.end, true);
        if self.byte(colon) != b':' {
            return Ok(None);
        }
        let name = self.take_ident(token);
        self.pos = colon + 1;
        let cx = Context { item: false, ..self.cx };
        let value = self.within(cx, Self::expr)?;
        let span = name.span.to(value.span);
        Ok(Some(NamedArg { name, value, span }))
    }

    /// A positional argument; if it uses the implicit item, all of it becomes a lambda.
    fn positional(&mut self, feed: bool) -> Parse<Expr> {
        let at = self.next_start();
        if feed && self.command_starts(at) {
            return self.within(Context { item: false, ..self.cx }, Self::command_expr);
        }
        let outer = std::mem::replace(&mut self.item_used, false);
        let result = self.within(Context { item: true, ..self.cx }, Self::expr);
        let used = std::mem::replace(&mut self.item_used, outer);
        let body = result?;
        if !used {
            return Ok(body);
        }
        let span = body.span;
        let lambda = Lambda { kind: LambdaKind::Item, params: Vec::new(), body };
        Ok(Expr::new(ExprKind::Lambda(Arc::new(lambda)), span))
    }

    /// Whether a `{` on this line is a trailing block.
    fn at_trailing_block(&mut self) -> bool {
        let at = self.skip(self.pos, false);
        !self.cx.head && self.byte(at) == b'{'
    }

    pub(super) fn trailing_block(&mut self) -> Parse<Expr> {
        let block = self.block(false)?;
        let span = block.span;
        let body = Expr::new(ExprKind::Block(block), span);
        let lambda = Lambda { kind: LambdaKind::Thunk, params: Vec::new(), body };
        Ok(Expr::new(ExprKind::Lambda(Arc::new(lambda)), span))
    }

    /// A leading `.` as an operand: the item of the positional argument around it.
    pub(super) fn item(&mut self, at: usize) -> Parse<Expr> {
        if self.dot_len(at).is_none() {
            return Err(self.unexpected("an expression"));
        }
        if !self.cx.item {
            return Err(no_receiver(self.src, at));
        }
        self.item_used = true;
        self.pos = at;
        Ok(Expr::new(ExprKind::Item, Span::new(at, at)))
    }

    /// `it` for the request of a session that starts with `.NAME`.
    pub(super) fn continued_result(&mut self, at: usize) -> Option<Expr> {
        self.dot_len(at)?;
        self.pos = at;
        Some(Expr::new(ExprKind::Var("it".into()), Span::new(at, at)))
    }
}

fn no_receiver(src: &str, at: usize) -> super::Reject {
    let name_end = lex::ident_end(src, at + src[at..].find('.').map_or(1, |dot| dot + 1));
    Diag::new(at..name_end, "leading `.` has no receiver here")
        .hint("name the receiver: `x => x.field`, or put the line directly after the expression it continues")
        .into()
}
