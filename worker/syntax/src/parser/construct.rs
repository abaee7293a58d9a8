//! `if`, `match`, `try`, `with`, `spawn`.

use super::names::Bound;
use super::{Context, Parse, Parser, teach};
use crate::Diag;
use crate::ast::{Expr, ExprKind, Ident, MatchArm, Name, Pattern};
use crate::lex::Tok;
use crate::vocab;

impl Parser<'_> {
    pub(super) fn if_expr(&mut self) -> Parse<Expr> {
        let start = self.next_start();
        self.eat_word("if");
        let cond = Box::new(self.head_expr()?);
        let then = self.block(self.cx.item)?;
        let otherwise = match self.eat_else() {
            true => Some(Box::new(self.nested(Self::else_branch)?)),
            false => None,
        };
        Ok(Expr::new(ExprKind::If { cond, then, otherwise }, self.span_from(start)))
    }

    /// Takes `else` on this line or at the start of the next one.
    fn eat_else(&mut self) -> bool {
        match self.peek_over_newlines() {
            Ok(token) if token.kind == Tok::Ident && self.text(token) == "else" => {
                self.take(token);
                true
            }
            _ => false,
        }
    }

    fn else_branch(&mut self) -> Parse<Expr> {
        if self.at_word("if") {
            return self.if_expr();
        }
        let block = self.block(self.cx.item)?;
        let span = block.span;
        Ok(Expr::new(ExprKind::Block(block), span))
    }

    pub(super) fn match_expr(&mut self) -> Parse<Expr> {
        let start = self.next_start();
        self.eat_word("match");
        let scrutinee = Box::new(self.head_expr()?);
        if !self.at_op("{") {
            let mut reject = self.missing_block();
            if self.at_word("with") || self.at_word("of") || self.at_word("in") {
                reject.diag.hint = Some(teach::MATCH_FORM.to_owned());
            }
            return Err(reject);
        }
        self.expect_op("{")?;
        let cx = Context { item: self.cx.item, ..Context::default() };
        let arms = self.nested(|p| p.within(cx, Self::arms))?;
        Ok(Expr::new(ExprKind::Match { scrutinee, arms }, self.span_from(start)))
    }

    fn arms(&mut self) -> Parse<Vec<MatchArm>> {
        let mut arms = Vec::new();
        loop {
            self.skip_terminators();
            if self.eat_op("}").is_some() {
                return Ok(arms);
            }
            arms.push(self.arm()?);
            if self.eat_op(",").is_some() {
                continue;
            }
            let token = self.peek()?;
            if !matches!(token.kind, Tok::Newline | Tok::Semi | Tok::Op("}")) {
                return Err(self.unexpected("a newline, `;`, `,` or `}` after the arm"));
            }
        }
    }

    fn arm(&mut self) -> Parse<MatchArm> {
        let start = self.next_start();
        if self.at_op("|") {
            return Err(Diag::new(start..start + 1, "unexpected `|` at the start of a match arm")
                .hint("write `|` only between patterns: `1 | 2 => ...`")
                .into());
        }
        self.scopes.open();
        let arm = self.arm_in_scope(start);
        self.scopes.close();
        arm
    }

    fn arm_in_scope(&mut self, start: usize) -> Parse<MatchArm> {
        let mut patterns = vec![self.pattern()?];
        while self.eat_op("|").is_some() {
            self.pos = self.skip(self.pos, true);
            patterns.push(self.pattern()?);
        }
        same_names(&patterns)?;
        if let Some(pattern) = patterns.first() {
            self.scopes.declare_pattern(pattern);
        }
        let guard = match self.eat_word("if") {
            true => {
                let cx = Context { guard: true, ..self.cx };
                Some(self.within(cx, Self::expr)?)
            }
            false => None,
        };
        self.expect_op("=>")?;
        self.pos = self.skip(self.pos, true);
        let body = self.body()?;
        Ok(MatchArm { patterns, guard, body, span: self.span_from(start) })
    }

    pub(super) fn try_expr(&mut self) -> Parse<Expr> {
        let start = self.next_start();
        self.eat_word("try");
        let body = self.block(self.cx.item)?;
        match self.peek_over_newlines() {
            Ok(token) if token.kind == Tok::Ident && self.text(token) == "catch" => self.take(token),
            _ => {
                return Err(match self.unexpected("`catch` after the block of `try`") {
                    reject if reject.diag.hint.is_some() => reject,
                    mut reject => {
                        reject.diag.hint = Some("`try { ... } catch e { ... }`".to_owned());
                        reject
                    }
                });
            }
        };
        if self.at_op("(") {
            let at = self.next_start();
            let text = "the name after `catch` has no parentheses";
            return Err(Diag::new(at..at + 1, text).hint("`try { ... } catch e { ... }`").into());
        }
        let binder = self.try_binder()?;
        self.scopes.open();
        if let Some(binder) = &binder {
            self.scopes.declare(&binder.name, Bound::Value);
        }
        let handler = self.block_in_scope(self.cx.item);
        self.scopes.close();
        let kind = ExprKind::Try { body, binder, handler: handler? };
        Ok(Expr::new(kind, self.span_from(start)))
    }

    /// The name after `catch`; `_` is none.
    fn try_binder(&mut self) -> Parse<Option<Ident>> {
        let token = self.peek()?;
        if token.kind != Tok::Ident || vocab::is_keyword(self.text(token)) {
            return Ok(None);
        }
        let ident = self.take_ident(token);
        Ok((&*ident.name != "_").then_some(ident))
    }

    pub(super) fn with_expr(&mut self) -> Parse<Expr> {
        let start = self.next_start();
        self.eat_word("with");
        let (mut cwd, mut env, mut reef) = (None, None, None);
        loop {
            let name = self.expect_ident("`cwd:`, `env:` or `reef:`")?;
            let place = match &*name.name {
                "cwd" => &mut cwd,
                "env" => &mut env,
                "reef" => &mut reef,
                other => {
                    return Err(Diag::new(name.span.range(), format!("`with` has no `{other}`"))
                        .hint("it takes `cwd:`, `env:` and `reef:`")
                        .into());
                }
            };
            if place.is_some() {
                return Err(Diag::new(name.span.range(), format!("`{}:` is given twice", name.name)).into());
            }
            self.expect_op(":")?;
            *place = Some(Box::new(self.head_expr()?));
            if self.eat_op(",").is_none() {
                break;
            }
            self.pos = self.skip(self.pos, true);
        }
        let body = self.block(self.cx.item)?;
        Ok(Expr::new(ExprKind::With { cwd, env, reef, body }, self.span_from(start)))
    }

    pub(super) fn spawn_expr(&mut self) -> Parse<Expr> {
        let start = self.next_start();
        self.eat_word("spawn");
        let body = self.block(false)?;
        Ok(Expr::new(ExprKind::Spawn(body), self.span_from(start)))
    }
}

/// The alternatives of an arm bind the same names.
fn same_names(patterns: &[Pattern]) -> Parse<()> {
    let names = |pattern: &Pattern| {
        let mut names: Vec<Name> = Vec::new();
        pattern.each_name(&mut |name, _| names.push(name.clone()));
        names.sort();
        names
    };
    let [first, others @ ..] = patterns else { return Ok(()) };
    let expected = names(first);
    match others.iter().find(|other| names(other) != expected) {
        None => Ok(()),
        Some(other) => Err(Diag::new(other.span.range(), "the alternatives of an arm must bind the same names")
            .hint("use `_` where a value is not needed, or write two arms")
            .into()),
    }
}
