//! Statements and commands.

use super::Printer;
use crate::ast::{Arg, CmdCall, FnDecl, Redirect, RedirectKind, Span, Stmt, StmtKind, Target};

/// An argument or a redirect, in source order.
enum Word<'a> {
    Arg(&'a Arg),
    Redirect(&'a Redirect),
}

impl Printer<'_> {
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let { pattern, ty, init, mutable, exported } => {
                self.out.push_str(if *exported { "export " } else { "" });
                self.out.push_str(if *mutable { "var " } else { "let " });
                self.verbatim(pattern.span);
                if let Some(ty) = ty {
                    self.out.push_str(&format!(": {ty}"));
                }
                self.out.push_str(" = ");
                self.expr(init);
            }
            StmtKind::Fn(decl) => self.fn_decl(decl),
            StmtKind::Alias { name, target } => {
                self.out.push_str(&format!("alias {} = ", name.name));
                self.command(target);
            }
            StmtKind::Use { path, alias } => {
                self.out.push_str("use ");
                self.verbatim(path.span);
                if let Some(alias) = alias {
                    self.out.push_str(&format!(" as {}", alias.name));
                }
            }
            StmtKind::Assign { target, op, value } => {
                let (env, name) = match target {
                    Target::Name(name) => ("", name),
                    Target::Env(name) => ("env.", name),
                };
                self.out.push_str(&format!("{env}{} {} ", name.name, op.symbol()));
                self.expr(value);
            }
            StmtKind::Break => self.out.push_str("break"),
            StmtKind::Continue => self.out.push_str("continue"),
            StmtKind::Expr(expr) => self.expr(expr),
            StmtKind::Return(_) | StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::Assert { .. } => {
                self.headed(stmt);
            }
        }
    }

    /// Statements that start with a word and an expression.
    fn headed(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Return(value) => {
                self.out.push_str("return");
                if let Some(value) = value {
                    self.out.push(' ');
                    self.expr(value);
                }
            }
            StmtKind::For { pattern, iter, body } => {
                self.out.push_str("for ");
                self.verbatim(pattern.span);
                self.out.push_str(" in ");
                self.expr(iter);
                self.out.push(' ');
                self.block(body);
            }
            StmtKind::While { cond, body } => {
                self.out.push_str("while ");
                self.expr(cond);
                self.out.push(' ');
                self.block(body);
            }
            StmtKind::Assert { cond, msg } => {
                self.out.push_str("assert ");
                self.expr(cond);
                if let Some(msg) = msg {
                    self.out.push_str(", ");
                    self.expr(msg);
                }
            }
            _ => {}
        }
    }

    fn fn_decl(&mut self, decl: &FnDecl) {
        self.out.push_str(if decl.exported { "export fn " } else { "fn " });
        self.out.push_str(&decl.name.name);
        self.out.push('(');
        let mut separator = "";
        for param in &decl.params {
            self.out.push_str(separator);
            separator = ", ";
            self.out.push_str(&param.name.name);
            if let Some(ty) = &param.ty {
                self.out.push_str(&format!(": {ty}"));
            }
            if let Some(default) = &param.default {
                self.out.push_str(" = ");
                self.expr(default);
            }
        }
        if let Some(rest) = &decl.rest {
            self.out.push_str(&format!("{separator}...{}", rest.name.name));
            if let Some(ty) = &rest.ty {
                self.out.push_str(&format!(": {ty}"));
            }
        }
        self.out.push_str(") ");
        if let Some(ret) = &decl.ret {
            self.out.push_str(&format!("-> {ret} "));
        }
        self.block(&decl.body);
    }

    pub(super) fn command(&mut self, call: &CmdCall) {
        for assign in &call.env_prefix {
            self.out.push_str(&format!("{}=", assign.name.name));
            self.verbatim(assign.value.span);
            self.out.push(' ');
        }
        self.out.push_str(if call.forced { "^" } else { "" });
        self.out.push_str(&call.head.text);
        let mut words: Vec<(Span, Word<'_>)> = call.args.iter().map(|arg| (arg.span, Word::Arg(arg))).collect();
        words.extend(call.redirects.iter().map(|redirect| (redirect.span, Word::Redirect(redirect))));
        words.sort_by_key(|(span, _)| span.start);
        for (_, word) in words {
            self.out.push(' ');
            match word {
                Word::Arg(arg) => self.verbatim(arg.span),
                Word::Redirect(redirect) => {
                    self.out.push_str(match redirect.kind {
                        RedirectKind::In => "< ",
                        RedirectKind::Out => "> ",
                        RedirectKind::Append => ">> ",
                    });
                    self.verbatim(redirect.target.span);
                }
            }
        }
        self.out.push_str(if call.background { " &" } else { "" });
        if let Some(block) = &call.block {
            self.out.push(' ');
            self.block(block);
        }
    }
}
