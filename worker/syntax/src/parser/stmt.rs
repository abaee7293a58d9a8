//! Statements and blocks.

use std::sync::Arc;

use super::dispatch::Start;
use super::names::Bound;
use super::{Context, Parse, Parser, teach};
use crate::Diag;
use crate::ast::{
    ArgKind, AssignOp, Block, Expr, ExprKind, FnDecl, Ident, Name, Param, PatternKind, RestParam, Stmt, StmtKind,
    Target, TypeExpr, TypeName,
};
use crate::lex::Tok;
use crate::names::module_name;

impl Parser<'_> {
    /// A block with a scope of its own; `item` says whether a leading `.` in it can be the item of a call around it.
    pub(super) fn block(&mut self, item: bool) -> Parse<Block> {
        self.scopes.open();
        let block = self.block_in_scope(item);
        self.scopes.close();
        block
    }

    /// A block whose scope is open already, for the names of its head.
    pub(super) fn block_in_scope(&mut self, item: bool) -> Parse<Block> {
        if !self.at_op("{") {
            return Err(self.missing_block());
        }
        let open = self.expect_op("{")?;
        let cx = Context { item, ..Context::default() };
        let stmts = self.nested(|p| p.within(cx, Self::block_statements))?;
        let close = self.within(Context { newlines: true, ..cx }, |p| p.expect_op("}"))?;
        Ok(Block { stmts, span: open.to(close) })
    }

    fn block_statements(&mut self) -> Parse<Vec<Stmt>> {
        let mut stmts = Vec::new();
        loop {
            self.skip_terminators();
            match self.peek_statement_end() {
                Some(Tok::Op("}") | Tok::Eof) => return Ok(stmts),
                _ => stmts.push(self.statement()?),
            }
            self.end_of_statement(stmts.last())?;
        }
    }

    pub(super) fn skip_terminators(&mut self) {
        loop {
            let at = self.skip(self.pos, true);
            if self.byte(at) != b';' {
                self.pos = at;
                return;
            }
            self.pos = at + 1;
        }
    }

    /// The next token if it can end a statement.
    fn peek_statement_end(&mut self) -> Option<Tok> {
        let at = self.next_start();
        match self.byte(at) {
            b'\n' => Some(Tok::Newline),
            b';' => Some(Tok::Semi),
            b'}' => Some(Tok::Op("}")),
            _ if at >= self.src.len() => Some(Tok::Eof),
            _ => None,
        }
    }

    /// Makes sure that nothing follows the statement on its line.
    pub(super) fn end_of_statement(&mut self, stmt: Option<&Stmt>) -> Parse<()> {
        match self.peek_statement_end() {
            Some(_) => Ok(()),
            None => Err(self.two_on_a_line(stmt)),
        }
    }

    pub(super) fn statement(&mut self) -> Parse<Stmt> {
        let start = self.next_start();
        self.foreign_statement(start)?;
        let kind = match self.statement_start(start) {
            Start::Keyword => self.keyword_statement(start)?,
            Start::Assignment => self.assignment()?,
            Start::Assert => self.assert_statement()?,
            Start::Command => StmtKind::Expr(self.command_expr()?),
            Start::Expression => StmtKind::Expr(self.statement_expr(start)?),
        };
        Ok(Stmt { kind, span: self.span_from(start) })
    }

    fn statement_expr(&mut self, start: usize) -> Parse<Expr> {
        let bracket = self.test_bracket(start);
        match self.expr() {
            Err(reject) if bracket && !reject.fatal => Err(teach::test_brackets(self.src, start).into()),
            result => result,
        }
    }

    fn keyword_statement(&mut self, start: usize) -> Parse<StmtKind> {
        let token = self.peek()?;
        let word = self.text(token);
        self.take(token);
        match word {
            "let" | "var" => self.let_statement(word == "var", false),
            "fn" => self.fn_statement(start, false),
            "export" => self.export(start),
            "alias" => self.alias(),
            "use" => self.use_statement(),
            "return" => self.return_statement(),
            "break" => Ok(StmtKind::Break),
            "continue" => Ok(StmtKind::Continue),
            "for" => self.for_statement(),
            _ => self.while_statement(),
        }
    }

    fn export(&mut self, start: usize) -> Parse<StmtKind> {
        let token = self.peek()?;
        match self.text(token) {
            word @ ("let" | "var") => {
                self.take(token);
                self.let_statement(word == "var", true)
            }
            "fn" => {
                self.take(token);
                self.fn_statement(start, true)
            }
            _ if token.kind == Tok::Ident && self.assignment_op(token.end).is_some() => {
                let name = self.text(token);
                Err(Diag::new(start..token.end, "set a variable with env.")
                    .hint(format!("`env.{name} = \"1\"` for the environment, `export let {name} = ...` for a module"))
                    .into())
            }
            _ => {
                let mut reject = self.unexpected("`let`, `var` or `fn` after `export`");
                let hint = "programs see all variables of the environment: `env.NAME = \"value\"` sets one";
                reject.diag.hint.get_or_insert_with(|| hint.to_owned());
                Err(reject)
            }
        }
    }

    fn let_statement(&mut self, mutable: bool, exported: bool) -> Parse<StmtKind> {
        let pattern = self.binding_pattern()?;
        let named = matches!(pattern.kind, PatternKind::Bind(_));
        let ty = if named && self.eat_op(":").is_some() { Some(self.type_expr()?) } else { None };
        let init = self.initialiser();
        self.scopes.declare_pattern(&pattern);
        Ok(StmtKind::Let { pattern, ty, init: init?, mutable, exported })
    }

    fn initialiser(&mut self) -> Parse<Expr> {
        self.expect_op("=")?;
        self.expr_after_newlines()
    }

    /// The right side of an operator after which a newline is blank.
    pub(super) fn expr_after_newlines(&mut self) -> Parse<Expr> {
        self.pos = self.skip(self.pos, true);
        self.expr()
    }

    fn alias(&mut self) -> Parse<StmtKind> {
        let name = self.expect_binding_name("a name")?;
        self.expect_op("=")?;
        self.pos = self.skip(self.pos, true);
        if let Some(quote @ (b'\'' | b'"')) = self.src.as_bytes().get(self.pos).copied() {
            return Err(teach::quoted_alias(self.src, &name.name, self.pos, quote).into());
        }
        let target = Arc::new(self.command_call()?);
        self.scopes.declare(&name.name, Bound::Command);
        Ok(StmtKind::Alias { name, target })
    }

    fn use_statement(&mut self) -> Parse<StmtKind> {
        let at = self.next_start();
        let path = self.argument(at)?;
        let alias = if self.eat_word("as") { Some(self.expect_binding_name("a name")?) } else { None };
        let bound = match (&alias, &path.kind) {
            (Some(alias), _) => Some(alias.name.clone()),
            (None, ArgKind::Word(text) | ArgKind::Path(text)) => module_name(text),
            (None, ArgKind::Quoted(text)) => match &text.kind {
                ExprKind::Str(text) => module_name(text),
                _ => None,
            },
            _ => None,
        };
        if let Some(bound) = bound {
            self.scopes.declare(&bound, Bound::Value);
        }
        Ok(StmtKind::Use { path, alias })
    }

    fn return_statement(&mut self) -> Parse<StmtKind> {
        if self.peek_statement_end().is_some() {
            return Ok(StmtKind::Return(None));
        }
        Ok(StmtKind::Return(Some(self.expr()?)))
    }

    fn for_statement(&mut self) -> Parse<StmtKind> {
        let at = self.next_start();
        if self.byte(at) == b'(' {
            return Err(Diag::new(at..at + 1, "the head of a `for` has no parentheses")
                .hint("`for x in xs { }`")
                .into());
        }
        let pattern = self.binding_pattern()?;
        if !self.eat_word("in") {
            return Err(self.foreign_for());
        }
        let start = self.next_start();
        if let Some(diag) = teach::bare_glob(self.src, start) {
            return Err(diag.into());
        }
        let iter = self.head_expr()?;
        if let Some(diag) = teach::word_list(self.src, start, self.pos) {
            return Err(diag.into());
        }
        self.scopes.open();
        self.scopes.declare_pattern(&pattern);
        let body = self.block_in_scope(self.cx.item);
        self.scopes.close();
        Ok(StmtKind::For { pattern, iter, body: body? })
    }

    fn while_statement(&mut self) -> Parse<StmtKind> {
        let cond = self.head_expr()?;
        let body = self.block(self.cx.item)?;
        Ok(StmtKind::While { cond, body })
    }

    fn assignment(&mut self) -> Parse<StmtKind> {
        let name = self.expect_ident("a name")?;
        let target = match self.eat_op(".") {
            Some(_) => Target::Env(self.expect_ident("the name of a variable")?),
            None => Target::Name(name.clone()),
        };
        let token = self.peek()?;
        let op = match token.kind {
            Tok::Op("+=") => AssignOp::Add,
            Tok::Op("-=") => AssignOp::Sub,
            Tok::Op("*=") => AssignOp::Mul,
            Tok::Op("/=") => AssignOp::Div,
            _ => AssignOp::Set,
        };
        if let (Target::Env(variable), true) = (&target, op != AssignOp::Set) {
            return Err(teach::compound_env(&variable.name, self.text(token), token).into());
        }
        self.take(token);
        let glued = self.byte(token.end) == b'(' && self.src[..token.start].ends_with(&*name.name);
        match self.expr_after_newlines() {
            Err(reject) if glued && op == AssignOp::Set && !reject.fatal => {
                Err(teach::array_syntax(self.src, &name, token.end).into())
            }
            value => Ok(StmtKind::Assign { target, op, value: value? }),
        }
    }

    fn assert_statement(&mut self) -> Parse<StmtKind> {
        let token = self.peek()?;
        self.take(token);
        let cond = self.expr()?;
        let msg = match self.eat_op(",") {
            Some(_) => Some(self.expr_after_newlines()?),
            None => match self.peek()?.kind {
                Tok::Quote(_) => Some(self.string_expr()?),
                _ => None,
            },
        };
        Ok(StmtKind::Assert { cond, msg })
    }

    fn fn_statement(&mut self, start: usize, exported: bool) -> Parse<StmtKind> {
        let name = self.expect_binding_name("the name of the function")?;
        self.scopes.declare(&name.name, Bound::Command);
        self.scopes.open();
        let decl = self.fn_rest(start, name, exported);
        self.scopes.close();
        Ok(StmtKind::Fn(Arc::new(decl?)))
    }

    fn fn_rest(&mut self, start: usize, name: Ident, exported: bool) -> Parse<FnDecl> {
        self.expect_op("(")?;
        let cx = Context { item: false, ..self.bracketed() };
        let (params, rest) = self.within(cx, Self::params)?;
        let ret = if self.eat_op("->").is_some() { Some(self.type_expr()?) } else { None };
        let body = self.block_in_scope(false)?;
        let doc = doc_above(self.src, start);
        Ok(FnDecl { name, params, rest, ret, body, doc, exported, span: self.span_from(start) })
    }

    fn params(&mut self) -> Parse<(Vec<Param>, Option<RestParam>)> {
        let mut params: Vec<Param> = Vec::new();
        loop {
            if self.eat_op(")").is_some() {
                return Ok((params, None));
            }
            if self.at_op("...") {
                let rest = self.rest_param()?;
                self.eat_op(",");
                if self.eat_op(")").is_none() {
                    return Err(Diag::new(rest.span.range(), format!("`...{}` must be last", rest.name.name))
                        .hint("the rest parameter takes what the others leave")
                        .into());
                }
                return Ok((params, Some(rest)));
            }
            let param = self.param()?;
            if params.iter().any(|other| other.name.name == param.name.name) {
                return Err(
                    Diag::new(param.name.span.range(), format!("two parameters named `{}`", param.name.name)).into()
                );
            }
            params.push(param);
            if self.eat_op(",").is_none() && !self.at_op(")") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }

    fn param(&mut self) -> Parse<Param> {
        let name = self.expect_binding_name("the name of a parameter")?;
        let ty = self.annotation()?;
        let default = if self.eat_op("=").is_some() { Some(self.expr()?) } else { None };
        self.scopes.declare(&name.name, Bound::Value);
        let span = self.span_from(name.span.start as usize);
        Ok(Param { name, ty, default, span })
    }

    fn rest_param(&mut self) -> Parse<RestParam> {
        let dots = self.expect_op("...")?;
        let name = self.expect_binding_name("the name of the rest parameter")?;
        let ty = self.annotation()?;
        self.scopes.declare(&name.name, Bound::Value);
        Ok(RestParam { name, ty, span: self.span_from(dots.start as usize) })
    }

    pub(super) fn annotation(&mut self) -> Parse<Option<TypeExpr>> {
        if self.eat_op(":").is_none() {
            return Ok(None);
        }
        self.type_expr().map(Some)
    }

    /// A type. Its `<`, `>` and `?` are read as characters: they may touch an `=` or each other.
    pub(super) fn type_expr(&mut self) -> Parse<TypeExpr> {
        self.nested(|p| {
            let ident = p.expect_ident("a type")?;
            let Some(name) = TypeName::from_text(&ident.name) else {
                return Err(teach::unknown_type(&ident).into());
            };
            let mut args = Vec::new();
            if p.eat_byte(b'<') {
                loop {
                    args.push(p.type_expr()?);
                    if p.eat_byte(b'>') {
                        break;
                    }
                    if !p.eat_byte(b',') {
                        return Err(p.unexpected("`,` or `>`"));
                    }
                }
            }
            let optional = p.eat_byte(b'?');
            Ok(TypeExpr { name, args, optional, span: p.span_from(ident.span.start as usize) })
        })
    }

    fn eat_byte(&mut self, byte: u8) -> bool {
        let at = self.next_start();
        let found = self.byte(at) == byte;
        if found {
            self.pos = at + 1;
        }
        found
    }
}

/// The comment lines directly above the declaration that starts at `start`, without `#` and one space.
fn doc_above(src: &str, start: usize) -> Option<Name> {
    let line_start = src[..start].rfind('\n').map_or(0, |newline| newline + 1);
    if !src[line_start..start].trim().is_empty() {
        return None;
    }
    let mut lines: Vec<&str> = src[..line_start]
        .lines()
        .rev()
        .map_while(|line| line.trim_start().strip_prefix('#'))
        .take_while(|line| !line.starts_with('!'))
        .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end())
        .collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n").into())
}
