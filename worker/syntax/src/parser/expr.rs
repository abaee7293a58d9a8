//! Expressions: lambdas, operators by precedence, `catch`.

use std::sync::Arc;

use super::names::Bound;
use super::{Context, Parse, Parser};
use crate::Diag;
use crate::ast::{BinaryOp, Block, Expr, ExprKind, Ident, Lambda, LambdaKind, LambdaParam, Span, UnaryOp};
use crate::lex::{self, Tok, Token};
use crate::vocab;

/// An infix operator and how tightly it binds.
#[derive(Clone, Copy)]
enum Infix {
    Binary(BinaryOp),
    Range { inclusive: bool },
}

/// The loosest level of operators.
const LOOSEST: u8 = 1;
const OR: u8 = 2;
const AND: u8 = 3;
const COMPARISON: u8 = 4;

impl Parser<'_> {
    /// An expression where a fresh one starts: a lambda, or operators with `catch`.
    pub(super) fn expr(&mut self) -> Parse<Expr> {
        if let Some(lambda) = self.lambda()? {
            return Ok(lambda);
        }
        self.chain(|p| {
            let first = p.operators(LOOSEST)?;
            p.catch_tail(first)
        })
    }

    /// A command with the tail an expression may have: `&&`, `||`, and on the next line `.NAME` and `catch`.
    pub(super) fn command_expr(&mut self) -> Parse<Expr> {
        self.chain(|p| {
            let command = p.command_operand()?;
            let first = p.operators_after(command, LOOSEST)?;
            p.catch_tail(first)
        })
    }

    /// An expression whose first operand is given.
    pub(super) fn expr_from(&mut self, operand: Expr) -> Parse<Expr> {
        self.chain(|p| {
            let operand = p.chain(|p| p.postfix(operand))?;
            let first = p.operators_after(operand, LOOSEST)?;
            p.catch_tail(first)
        })
    }

    /// The inside of `( )`: a command if one starts here, else an expression.
    pub(super) fn command_or_expr(&mut self) -> Parse<Expr> {
        let at = self.next_start();
        if self.command_starts(at) { self.command_expr() } else { self.expr() }
    }

    /// The head of `for`, `while`, `if`, `match`, `with`.
    pub(super) fn head_expr(&mut self) -> Parse<Expr> {
        let start = self.next_start();
        let bracket = self.test_bracket(start);
        let cx = Context { head: true, ..self.cx };
        match self.within(cx, Self::expr) {
            Err(reject) if bracket && !reject.fatal => Err(super::teach::test_brackets(self.src, start).into()),
            Ok(_) if bracket && !self.at_op("{") => Err(super::teach::test_brackets(self.src, start).into()),
            Err(reject) => Err(self.explain_head(reject, start)),
            Ok(head) => Ok(head),
        }
    }

    /// The body of a lambda, match arm or postfix `catch`: as an expression, but `{}` is the empty block.
    pub(super) fn body(&mut self) -> Parse<Expr> {
        let open = self.next_start();
        if self.byte(open) == b'{' {
            let close = self.skip(open + 1, true);
            if self.byte(close) == b'}' {
                self.pos = close + 1;
                let span = self.span_from(open);
                return Ok(Expr::new(ExprKind::Block(Block { stmts: Vec::new(), span }), span));
            }
        }
        self.expr()
    }

    fn operators(&mut self, level: u8) -> Parse<Expr> {
        self.chain(|p| {
            let first = p.unary()?;
            p.operators_after(first, level)
        })
    }

    fn operators_after(&mut self, mut left: Expr, level: u8) -> Parse<Expr> {
        let mut compared = None;
        loop {
            let token = self.peek()?;
            let Some((binds, infix)) = self.infix(token) else { return Ok(left) };
            if binds < level {
                return Ok(left);
            }
            if binds == COMPARISON && compared.is_some() {
                return Err(chained(self.src, &left, token));
            }
            self.increment(&left, token)?;
            compared = (binds == COMPARISON).then_some(token);
            self.take(token);
            self.pos = self.skip(self.pos, true);
            self.link()?;
            let right = self.right_operand(binds)?;
            let span = left.span.to(right.span);
            let (left_box, right_box) = (Box::new(left), Box::new(right));
            let kind = match infix {
                Infix::Binary(op) => ExprKind::Binary { op, left: left_box, right: right_box },
                Infix::Range { inclusive } => ExprKind::Range { start: left_box, end: right_box, inclusive },
            };
            left = Expr::new(kind, span);
        }
    }

    fn right_operand(&mut self, binds: u8) -> Parse<Expr> {
        self.depth += 1;
        let result = self.right_operand_inner(binds);
        self.depth -= 1;
        result
    }

    fn right_operand_inner(&mut self, binds: u8) -> Parse<Expr> {
        let at = self.next_start();
        if matches!(binds, OR | AND) && self.command_starts(at) {
            return self.command_operand();
        }
        self.operators(binds + 1)
    }

    /// A command as an operand; with a chain on the next line it is read as if in parentheses.
    fn command_operand(&mut self) -> Parse<Expr> {
        let command = self.command()?;
        if self.continues_on_next_line() {
            let span = command.span;
            return self.chain(|p| p.postfix(Expr::new(ExprKind::Group(Box::new(command)), span)));
        }
        Ok(command)
    }

    fn infix(&mut self, token: Token) -> Option<(u8, Infix)> {
        use BinaryOp::*;
        let binary = |binds, op| Some((binds, Infix::Binary(op)));
        match token.kind {
            Tok::Op("??") => binary(LOOSEST, Coalesce),
            Tok::Op("||") => binary(OR, Or),
            Tok::Op("&&") => binary(AND, And),
            Tok::Op("==") => binary(COMPARISON, Eq),
            Tok::Op("!=") => binary(COMPARISON, Ne),
            Tok::Op("<") => binary(COMPARISON, Lt),
            Tok::Op("<=") => binary(COMPARISON, Le),
            Tok::Op(">") => binary(COMPARISON, Gt),
            Tok::Op(">=") => binary(COMPARISON, Ge),
            Tok::Ident if self.text(token) == "in" => binary(COMPARISON, In),
            Tok::Op("..") => Some((5, Infix::Range { inclusive: false })),
            Tok::Op("..=") => Some((5, Infix::Range { inclusive: true })),
            Tok::Op("+") => binary(6, Add),
            Tok::Op("-") => binary(6, Sub),
            Tok::Op("*") => binary(7, Mul),
            Tok::Op("/") => binary(7, Div),
            Tok::Op("%") => binary(7, Rem),
            _ => None,
        }
    }

    fn unary(&mut self) -> Parse<Expr> {
        let token = self.peek()?;
        let op = match token.kind {
            Tok::Op("!") => UnaryOp::Not,
            Tok::Op("-") => UnaryOp::Neg,
            _ => {
                return self.chain(|p| {
                    let operand = p.operand()?;
                    p.postfix(operand)
                });
            }
        };
        let sign = self.take(token);
        let operand = self.nested(Self::unary)?;
        let span = sign.to(operand.span);
        Ok(Expr::new(ExprKind::Unary { op, operand: Box::new(operand) }, span))
    }

    // catch

    fn catch_tail(&mut self, first: Expr) -> Parse<Expr> {
        let mut expr = first;
        while self.eat_catch() {
            self.link()?;
            let binder = self.catch_binder()?;
            let handler = self.handler(binder.as_ref())?;
            let span = expr.span.to(handler.span);
            expr = Expr::new(ExprKind::Catch { expr: Box::new(expr), binder, handler: Box::new(handler) }, span);
        }
        Ok(expr)
    }

    /// Takes `catch` on this line or at the start of the next one.
    fn eat_catch(&mut self) -> bool {
        let at = self.skip(self.pos, true);
        let found = &self.src[at..lex::ident_end(self.src, at)] == "catch";
        if found {
            self.pos = at + "catch".len();
        }
        found
    }

    /// The name after `catch`, if it is one that binds the error rather than the start of the handler.
    fn catch_binder(&mut self) -> Parse<Option<Ident>> {
        let Ok(token) = self.peek() else { return Ok(None) };
        if token.kind != Tok::Ident || vocab::is_keyword(self.text(token)) {
            return Ok(None);
        }
        let next = self.skip(token.end, false);
        let binds = match self.byte(next) {
            b'{' => !self.cx.head && !self.is_lang_block(&self.src[token.start..token.end], token.end),
            b'(' | b'[' => next > token.end,
            b'!' => self.byte(next + 1) != b'=',
            _ => self.starts_operand(next),
        };
        Ok(binds.then(|| self.take_ident(token)))
    }

    /// Whether a literal, a name or a construct starts here.
    fn starts_operand(&mut self, at: usize) -> bool {
        match lex::token(self.src, at) {
            Ok(token) => match token.kind {
                Tok::Number(_) | Tok::Quote(_) | Tok::Regex | Tok::DateTime => true,
                Tok::Ident => {
                    let word = self.text(token);
                    !vocab::is_keyword(word)
                        || matches!(word, "true" | "false" | "null" | "if" | "match" | "try" | "with" | "spawn")
                }
                _ => false,
            },
            Err(_) => false,
        }
    }

    fn handler(&mut self, binder: Option<&Ident>) -> Parse<Expr> {
        self.scopes.open();
        if let Some(binder) = binder.filter(|binder| &*binder.name != "_") {
            self.scopes.declare(&binder.name, Bound::Value);
        }
        let handler = self.nested(Self::body);
        self.scopes.close();
        handler
    }

    // Lambdas

    fn lambda(&mut self) -> Parse<Option<Expr>> {
        if self.cx.guard {
            return Ok(None);
        }
        let Ok(token) = self.peek() else { return Ok(None) };
        let params = match token.kind {
            Tok::Ident if !vocab::is_keyword(self.text(token)) => self.single_param(token),
            Tok::Op("(") if self.may_be_params(token.end) => match self.attempt(Self::lambda_params) {
                Ok(params) => Some(params),
                Err(reject) if reject.fatal => return Err(reject),
                Err(_) => None,
            },
            _ => None,
        };
        match params {
            Some(params) => self.lambda_body(token.start, params).map(Some),
            None => Ok(None),
        }
    }

    fn single_param(&mut self, token: Token) -> Option<Vec<LambdaParam>> {
        let arrow = self.skip(token.end, self.cx.newlines);
        if !self.rest(arrow).starts_with("=>") {
            return None;
        }
        let span = self.take(token);
        self.pos = arrow + 2;
        let pattern = super::pattern::bind(self.text(token), span);
        Some(vec![LambdaParam { pattern, ty: None, span }])
    }

    /// A quick look that spares most groups the attempt.
    fn may_be_params(&mut self, at: usize) -> bool {
        let next = self.skip(at, true);
        let byte = self.byte(next);
        if matches!(byte, b')' | b'[' | b'{') {
            return true;
        }
        let end = lex::ident_end(self.src, next);
        let after = self.skip(end, true);
        end > next && matches!(self.byte(after), b',' | b':' | b')')
    }

    fn lambda_params(&mut self) -> Parse<Vec<LambdaParam>> {
        self.expect_op("(")?;
        let cx = Context { item: false, ..self.bracketed() };
        let params = self.within(cx, |p| {
            let mut params = Vec::new();
            while p.eat_op(")").is_none() {
                params.push(p.lambda_param()?);
                if p.eat_op(",").is_none() && !p.at_op(")") {
                    return Err(p.unexpected("`,` or `)`"));
                }
            }
            Ok(params)
        })?;
        self.expect_op("=>")?;
        Ok(params)
    }

    fn lambda_param(&mut self) -> Parse<LambdaParam> {
        let pattern = self.binding_pattern()?;
        let named = matches!(pattern.kind, crate::ast::PatternKind::Bind(_));
        let ty = if named { self.annotation()? } else { None };
        let span = self.span_from(pattern.span.start as usize);
        Ok(LambdaParam { pattern, ty, span })
    }

    fn lambda_body(&mut self, start: usize, params: Vec<LambdaParam>) -> Parse<Expr> {
        self.pos = self.skip(self.pos, true);
        self.scopes.open();
        for param in &params {
            self.scopes.declare_pattern(&param.pattern);
        }
        let cx = Context { item: false, ..self.cx };
        let body = self.nested(|p| p.within(cx, Self::body));
        self.scopes.close();
        let lambda = Lambda { kind: LambdaKind::Explicit, params, body: body? };
        Ok(Expr::new(ExprKind::Lambda(Arc::new(lambda)), self.span_from(start)))
    }
}

fn chained(src: &str, left: &Expr, token: Token) -> super::Reject {
    let middle = match &left.kind {
        ExprKind::Binary { right, .. } => right.span.text(src),
        _ => "b",
    };
    let op = &src[token.start..token.end];
    let at = Span::new(left.span.start as usize, token.end);
    Diag::new(at.range(), "comparisons do not chain")
        .hint(format!("join two comparisons with `&&`: `{} && {middle} {op} ...`", left.span.text(src)))
        .into()
}
