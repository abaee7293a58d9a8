//! Statements and blocks.

use std::sync::Arc;

use shoal_syntax::ast::{
    AssignOp, Block, Expr, ExprKind, Ident, Pattern, PatternKind, Program, Stmt, StmtKind, Target,
};
use shoal_value::ops::BinaryOp;
use shoal_value::{ErrorValue, Str};

use super::function::Resolved;
use super::{Compiler, place, type_of};
use crate::code::{Op, UseSite};
use crate::scope::BindingKind;
use crate::vm::stray;

impl Compiler {
    /// The program: all statements, then `Return`.
    pub(super) fn program(&mut self, program: &Program) {
        let count = program.stmts.len();
        for (at, stmt) in program.stmts.iter().enumerate() {
            let last = at + 1 == count;
            self.f().here = place(stmt.span);
            self.emit(Op::Step);
            let journaled = self.options.journaled && (!last || self.options.statement);
            if journaled {
                let at = self.place_index(stmt.span);
                self.emit(Op::StatementBegin(at));
            }
            self.top_statement(stmt, last);
            if journaled {
                self.emit(Op::StatementEnd);
            }
            if !last {
                self.leave_top(stmt);
            }
        }
        if count == 0 {
            self.emit(Op::Null);
        }
        self.emit(Op::Return);
    }

    /// A statement of the program; leaves its value.
    fn top_statement(&mut self, stmt: &Stmt, last: bool) {
        let StmtKind::Expr(expr) = &stmt.kind else { return self.stmt(stmt, false, true) };
        if last && !self.options.statement {
            return self.expr(expr, false);
        }
        if self.options.top_level
            && let ExprKind::Binary { op: shoal_syntax::ast::BinaryOp::And | shoal_syntax::ast::BinaryOp::Or, .. } =
                &expr.ungrouped().kind
        {
            self.lazy(expr.ungrouped(), true);
            self.f().here = place(expr.span);
            self.emit(Op::Check);
            return;
        }
        self.checked(expr, true);
    }

    /// Hands the value of a statement that is not the last to the sink.
    fn leave_top(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Expr(expr) if self.options.top_level => {
                self.emit(Op::Echo(is_bare(expr)));
            }
            _ => {
                self.emit(Op::Pop);
            }
        }
    }

    /// A block in a scope of its own. `statement` is its position; leaves a value if `want`.
    pub(super) fn block(&mut self, block: &Block, statement: bool, want: bool) {
        self.push_scope();
        self.announce_all(&block.stmts);
        self.body(block, statement, want);
        self.pop_scope();
    }

    /// Statements of a block whose scope is open.
    fn body(&mut self, block: &Block, statement: bool, want: bool) {
        let Some((last, init)) = block.stmts.split_last() else {
            if want {
                self.emit(Op::Null);
            }
            return;
        };
        for stmt in init {
            self.stmt(stmt, true, false);
        }
        self.stmt(last, statement, want);
    }

    fn announce_all(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Let { pattern, mutable, .. } => {
                    self.announce_names(pattern, let_kind(*mutable));
                }
                StmtKind::Fn(decl) => drop(self.announce(&decl.name.name, BindingKind::Fn)),
                StmtKind::Alias { name, .. } => drop(self.announce(&name.name, BindingKind::Alias)),
                StmtKind::Use { path, alias } => {
                    if let Some(name) =
                        alias.as_ref().map(|a| a.name.clone()).or_else(|| super::command::use_stem(path))
                    {
                        self.announce(&name, BindingKind::Use);
                    }
                }
                _ => {}
            }
        }
    }

    /// A statement. `statement` is the position of an expression statement; leaves a value if `want`.
    pub(super) fn stmt(&mut self, stmt: &Stmt, statement: bool, want: bool) {
        self.f().here = place(stmt.span);
        match &stmt.kind {
            StmtKind::Expr(expr) => {
                self.checked(expr, statement);
                if !want {
                    self.emit(Op::Pop);
                }
                return;
            }
            StmtKind::Assign { target, op, value } => return self.assign(target, *op, value, want),
            StmtKind::Assert { cond, msg } => {
                self.assert(cond, msg.as_ref());
                if !want {
                    self.emit(Op::Pop);
                }
                return;
            }
            StmtKind::Let { pattern, ty, init, mutable, exported } => {
                self.let_value(pattern, ty.as_ref(), init);
                self.bind_pattern(pattern, let_kind(*mutable));
                if *exported {
                    pattern.each_name(&mut |name, _| self.exports.push(name.clone()));
                }
            }
            StmtKind::Fn(decl) => self.function(decl),
            StmtKind::Alias { name, target } => {
                self.alias(target);
                self.bind(name, BindingKind::Alias);
            }
            StmtKind::Use { path, alias } => self.use_statement(path, alias.as_ref()),
            StmtKind::Return(value) => self.return_statement(value.as_ref()),
            StmtKind::Break => self.leave_loop("break"),
            StmtKind::Continue => self.leave_loop("continue"),
            StmtKind::For { pattern, iter, body } => self.for_loop(pattern, iter, body),
            StmtKind::While { cond, body } => self.while_loop(cond, body),
        }
        if want {
            self.emit(Op::Null);
        }
    }

    fn let_value(&mut self, pattern: &Pattern, ty: Option<&shoal_syntax::ast::TypeExpr>, init: &Expr) {
        self.expr(init, false);
        if let (Some(ty), PatternKind::Bind(name)) = (ty, &pattern.kind) {
            let f = self.f();
            f.tables.expects.push((name.clone(), type_of(ty)));
            let at = f.tables.expects.len() as u32 - 1;
            self.emit(Op::Expect(at));
        }
    }

    /// Binds the value on top to a name in the scope at hand.
    pub(super) fn bind(&mut self, name: &Ident, kind: BindingKind) {
        if self.at_root() {
            self.options.known.insert(name.name.clone());
            let at = self.name(&name.name);
            self.emit(Op::DeclareRoot(at, kind));
        } else {
            let var = self.declare(&name.name, kind);
            self.emit(Op::SetLocal(var));
        }
    }

    /// Binds the value on top to a pattern in the scope at hand.
    pub(super) fn bind_pattern(&mut self, pattern: &Pattern, kind: BindingKind) {
        match &pattern.kind {
            PatternKind::Wildcard => drop(self.emit(Op::Pop)),
            PatternKind::Bind(name) => self.bind(&Ident { name: name.clone(), span: pattern.span }, kind),
            _ => {
                let at = self.pattern(pattern, kind);
                self.emit(Op::Destructure(at));
            }
        }
    }

    fn assign(&mut self, target: &Target, op: AssignOp, value: &Expr, want: bool) {
        let name = match target {
            Target::Env(name) => {
                self.expr(value, false);
                if want {
                    self.emit(Op::Dup);
                }
                let at = self.text(&name.name);
                self.emit(Op::SetEnv(at));
                return;
            }
            Target::Name(name) => name,
        };
        self.expr(value, false);
        self.f().here = place(name.span.to(value.span));
        let binary = match op {
            AssignOp::Set => None,
            AssignOp::Add => Some(BinaryOp::Add),
            AssignOp::Sub => Some(BinaryOp::Sub),
            AssignOp::Mul => Some(BinaryOp::Mul),
            AssignOp::Div => Some(BinaryOp::Div),
        };
        let (maybe, resolved) = self.resolve(&name.name);
        let immutable = |kind: BindingKind| kind != BindingKind::Var;
        let op = match (maybe.first(), resolved) {
            (Some(at), _) => binary.map_or(Op::SetCaptured(*at), |b| Op::UpdateCaptured(*at, b)),
            (None, Resolved::Local(var)) if immutable(self.f().vars[var as usize].kind) => {
                return self.refuse(&name.name);
            }
            (None, Resolved::Captured(_, kind)) if immutable(kind) => return self.refuse(&name.name),
            (None, Resolved::Local(var)) => binary.map_or(Op::SetLocal(var), |b| Op::UpdateLocal(var, b)),
            (None, Resolved::Captured(at, _)) => binary.map_or(Op::SetCaptured(at), |b| Op::UpdateCaptured(at, b)),
            (None, Resolved::Root(at)) => binary.map_or(Op::AssignRoot(at), |b| Op::UpdateRoot(at, b)),
        };
        self.emit(op);
        if want {
            self.load(&name.name, false);
        }
    }

    fn refuse(&mut self, name: &str) {
        self.raise(crate::vm::immutable(name));
        self.emit(Op::Null);
    }

    /// Emits an operation that raises `error` when it is reached.
    pub(super) fn raise(&mut self, error: ErrorValue) {
        let f = self.f();
        f.tables.raises.push(error);
        let at = f.tables.raises.len() as u32 - 1;
        self.emit(Op::Raise(at));
    }

    fn return_statement(&mut self, value: Option<&Expr>) {
        match value {
            Some(value) => self.expr(value, false),
            None => drop(self.emit(Op::Null)),
        }
        let inside = self.fns.iter().any(|f| f.kind.is_function());
        if inside {
            self.emit(Op::Return);
        } else {
            self.raise(stray("return", "a function"));
        }
    }

    fn use_statement(&mut self, path: &shoal_syntax::ast::Arg, alias: Option<&Ident>) {
        let stem = super::command::use_stem(path);
        self.path_argument(path);
        let name = alias.map(|a| a.name.clone()).or(stem);
        let f = self.f();
        f.tables.uses.push(UseSite { name: name.clone() });
        let at = f.tables.uses.len() as u32 - 1;
        self.emit(Op::Use(at));
        match name {
            Some(name) => self.bind(&Ident { name, span: path.span }, BindingKind::Use),
            None => drop(self.emit(Op::Pop)),
        }
    }

    pub(super) fn assert(&mut self, cond: &Expr, msg: Option<&Expr>) {
        self.expr(cond, false);
        match msg {
            Some(msg) => self.expr(msg, false),
            None => drop(self.emit(Op::Null)),
        }
        let at = self.place_index(cond.span);
        self.emit(Op::Assert(at));
    }

    /// Emits the closure of a finished function.
    pub(super) fn close(&mut self, code: crate::code::Code) {
        let f = self.f();
        f.tables.codes.push(Arc::new(code));
        let at = f.tables.codes.len() as u32 - 1;
        self.emit(Op::Close(at));
    }

    /// Index of a text of the current function.
    pub(super) fn text(&mut self, text: &Str) -> u32 {
        let f = self.f();
        f.tables.names.push(text.clone());
        f.tables.names.len() as u32 - 1
    }

    pub(super) fn place_index(&mut self, span: shoal_syntax::ast::Span) -> u32 {
        let f = self.f();
        f.tables.places.push(place(span));
        f.tables.places.len() as u32 - 1
    }
}

fn let_kind(mutable: bool) -> BindingKind {
    if mutable { BindingKind::Var } else { BindingKind::Let }
}

/// Whether a statement is a bare command: a command, a block of an interpreter, or a tree of them.
fn is_bare(expr: &Expr) -> bool {
    match &expr.ungrouped().kind {
        ExprKind::Cmd(_) | ExprKind::LangBlock { .. } => true,
        ExprKind::Binary { op: shoal_syntax::ast::BinaryOp::And | shoal_syntax::ast::BinaryOp::Or, left, right } => {
            is_bare(left) && is_bare(right)
        }
        _ => false,
    }
}
