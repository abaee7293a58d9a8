//! Expressions.

use shoal_syntax::ast::{BinaryOp as Ast, Expr, ExprKind, Ident, InterpPart, MatchArm, Name, RecordField, UnaryOp};
use shoal_value::ops::BinaryOp;
use shoal_value::record::Shape;
use shoal_value::{DateTime, ErrorValue, Regex, Str, TimeOfDay, Value};

use super::function::{Open, Resolved};
use super::{Compiler, place};
use crate::code::{CodeKind, Op, WithParts};
use crate::scope::BindingKind;

impl Compiler {
    /// An expression at the root of a statement: in statement position a failed outcome raises, unless the expression only
    /// shows a name, a field or an item.
    pub(super) fn checked(&mut self, expr: &Expr, statement: bool) {
        self.expr(expr, statement);
        if statement && may_fail(expr.ungrouped()) {
            self.f().here = place(expr.span);
            self.emit(Op::Check);
        }
    }

    /// An expression; leaves its value. `statement` is its position.
    pub(super) fn expr(&mut self, expr: &Expr, statement: bool) {
        let here = self.f().here;
        self.f().here = place(expr.span);
        self.expr_kind(expr, statement);
        self.f().here = here;
    }

    fn expr_kind(&mut self, expr: &Expr, statement: bool) {
        match &expr.kind {
            ExprKind::Null => drop(self.emit(Op::Null)),
            ExprKind::Bool(truth) => drop(self.emit(Op::Bool(*truth))),
            ExprKind::Interp(parts) => self.interp(parts),
            ExprKind::List(items) => {
                items.iter().for_each(|item| self.expr(item, false));
                self.emit(Op::List(items.len() as u32));
            }
            ExprKind::Record(fields) => self.record(fields),
            ExprKind::Range { start, end, inclusive } => {
                self.expr(start, false);
                self.expr(end, false);
                self.emit(Op::Binary(if *inclusive { BinaryOp::RangeInclusive } else { BinaryOp::Range }));
            }
            ExprKind::Var(name) => self.load(name, false),
            ExprKind::Item => drop(self.emit(Op::Local(0))),
            ExprKind::Field { recv, name, optional } => self.field(recv, name, *optional),
            ExprKind::Index { recv, index } => self.index(recv, index),
            ExprKind::Method { recv, name, args, optional } => self.method(expr, recv, name, args, *optional),
            ExprKind::Call { callee, args } => self.call(callee, args),
            ExprKind::Lambda(lambda) => self.lambda(lambda, expr.span),
            ExprKind::Unary { op, operand } => self.unary(*op, operand),
            ExprKind::Binary { op, left, right } => self.binary(expr, *op, left, right),
            ExprKind::Group(inner) => self.expr(inner, statement),
            ExprKind::Block(block) => self.block(block, statement, true),
            ExprKind::If { cond, then, otherwise } => {
                self.expr(cond, false);
                let no = self.emit(Op::JumpUnless(0));
                self.block(then, statement, true);
                let end = self.emit(Op::Jump(0));
                self.land(no);
                match otherwise {
                    Some(otherwise) => self.expr(otherwise, statement),
                    None => drop(self.emit(Op::Null)),
                }
                self.land(end);
            }
            ExprKind::Match { scrutinee, arms } => self.match_expr(scrutinee, arms, statement),
            ExprKind::Try { body, binder, handler } => {
                let caught = self.open_try();
                self.block(body, true, true);
                let end = self.close_try(caught);
                self.handler(binder.as_ref(), |this| this.block(handler, statement, true));
                self.land(end);
            }
            ExprKind::Catch { expr, binder, handler } => {
                let caught = self.open_try();
                self.checked(expr, true);
                let end = self.close_try(caught);
                self.handler(binder.as_ref(), |this| this.expr(handler, statement));
                self.land(end);
            }
            ExprKind::With { cwd, env, reef, body } => {
                let parts = WithParts { cwd: cwd.is_some(), env: env.is_some(), reef: reef.is_some() };
                [cwd, env, reef].into_iter().flatten().for_each(|part| self.expr(part, false));
                self.emit(Op::With(parts));
                self.f().open.push(Open::With);
                self.block(body, statement, true);
                self.f().open.pop();
                self.emit(Op::WithEnd);
            }
            ExprKind::Spawn(block) => {
                self.begin_function(CodeKind::Spawn, block.span);
                self.block(block, false, true);
                self.emit(Op::Return);
                self.spawn_code();
            }
            ExprKind::Cmd(call) => self.command(call, false),
            ExprKind::LangBlock { tool, text } => self.lang_block(tool, text, expr.span),
            literal => match self.literal_kind(literal) {
                Some(Ok(value)) => self.constant(value),
                Some(Err(error)) => self.raise_value(error),
                None => drop(self.emit(Op::Null)),
            },
        }
    }

    /// Emits `Op::Spawn` of the function that was just read.
    pub(super) fn spawn_code(&mut self) {
        let code = self.end_function(None, None);
        let f = self.f();
        f.tables.codes.push(std::sync::Arc::new(code));
        let at = f.tables.codes.len() as u32 - 1;
        self.emit(Op::Spawn(at));
    }

    fn raise_value(&mut self, error: ErrorValue) {
        self.raise(error);
        self.emit(Op::Null);
    }

    pub(super) fn constant(&mut self, value: Value) {
        if let Value::Int(n) = value
            && let Ok(n) = i32::try_from(n)
        {
            self.emit(Op::Int(n));
            return;
        }
        let f = self.f();
        f.tables.consts.push(value);
        let at = f.tables.consts.len() as u32 - 1;
        self.emit(Op::Const(at));
    }

    /// The value of a literal; none if the expression is none.
    pub(super) fn literal(&self, expr: &Expr) -> Option<Result<Value, ErrorValue>> {
        self.literal_kind(&expr.kind)
    }

    fn literal_kind(&self, kind: &ExprKind) -> Option<Result<Value, ErrorValue>> {
        Some(Ok(match kind {
            ExprKind::Null => Value::Null,
            ExprKind::Bool(truth) => Value::Bool(*truth),
            ExprKind::Int(n) => Value::Int(*n),
            ExprKind::Float(f) => Value::Float(*f),
            ExprKind::Str(text) => Value::Str(text.clone()),
            ExprKind::Size(bytes) => Value::Size(*bytes),
            ExprKind::Duration(nanos) => Value::Duration(*nanos),
            ExprKind::Time { hour, minute, second } => TimeOfDay::new(*hour, *minute, *second)?.into(),
            ExprKind::DateTime(text) => {
                return Some(DateTime::parse(text, &self.options.zone).map(Value::DateTime));
            }
            ExprKind::Regex(src) => return Some(Regex::new(src).map(Value::Regex)),
            _ => return None,
        }))
    }

    fn interp(&mut self, parts: &[InterpPart]) {
        for part in parts {
            match part {
                InterpPart::Lit(text) => self.constant(Value::Str(text.clone())),
                InterpPart::Hole(hole) => self.expr(hole, false),
            }
        }
        self.emit(Op::Interp(parts.len() as u32));
    }

    fn record(&mut self, fields: &[RecordField]) {
        fields.iter().for_each(|field| self.expr(&field.value, false));
        let keys: Vec<Str> = fields.iter().map(|field| field.name.name.clone()).collect();
        let shape = Shape::new(keys.iter().cloned());
        let f = self.f();
        if shape.keys().len() == keys.len() {
            f.tables.shapes.push(shape);
            let at = f.tables.shapes.len() as u32 - 1;
            self.emit(Op::Record(at));
        } else {
            f.tables.consts.push(Value::List(shoal_value::List::leaves(keys)));
            let at = f.tables.consts.len() as u32 - 1;
            self.emit(Op::RecordOf(at));
        }
    }

    /// Pushes what a name stands for; as a receiver it may also be a program.
    pub(super) fn load(&mut self, name: &Name, receiver: bool) {
        let (maybe, resolved) = self.resolve(name);
        let bound: Vec<usize> = maybe.into_iter().map(|at| self.emit(Op::CapturedOr(at, 0))).collect();
        self.emit(match resolved {
            Resolved::Local(var) => Op::Local(var),
            Resolved::Captured(at, _) => Op::Captured(at),
            Resolved::Root(at) if receiver => Op::RootReceiver(at),
            Resolved::Root(at) => Op::Root(at),
        });
        bound.into_iter().for_each(|at| self.land(at));
    }

    /// The receiver of a field, method or index.
    pub(super) fn receiver(&mut self, recv: &Expr) {
        match &recv.kind {
            ExprKind::Var(name) => {
                let here = self.f().here;
                self.f().here = place(recv.span);
                self.load(name, true);
                self.f().here = here;
            }
            _ => self.expr(recv, false),
        }
    }

    fn field(&mut self, recv: &Expr, name: &Ident, optional: bool) {
        if let ExprKind::Var(var) = &recv.kind
            && **var == *"env"
            && !self.is_bound(var)
        {
            let at = self.text(&name.name);
            self.emit(Op::EnvVar(at));
            return;
        }
        self.receiver(recv);
        let skip = optional.then(|| self.emit(Op::IfNull(0)));
        let at = self.text(&name.name);
        self.emit(Op::Field(at));
        skip.into_iter().for_each(|at| self.land(at));
    }

    fn index(&mut self, recv: &Expr, index: &Expr) {
        if let ExprKind::Var(name) = &recv.kind
            && **name == *"out"
            && let (maybe, Resolved::Root(at)) = self.resolve(name)
            && maybe.is_empty()
        {
            self.expr(index, false);
            self.emit(Op::OutIndex(at));
            return;
        }
        self.receiver(recv);
        self.expr(index, false);
        self.emit(Op::Index);
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr) {
        if op == UnaryOp::Neg
            && let ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Duration(_) = operand.kind
            && let Some(Ok(value)) = self.literal(operand)
            && let Ok(value) = shoal_value::ops::negate(&value)
        {
            return self.constant(value);
        }
        self.expr(operand, false);
        self.emit(if op == UnaryOp::Neg { Op::Negate } else { Op::Not });
    }

    fn binary(&mut self, expr: &Expr, op: Ast, left: &Expr, right: &Expr) {
        let op = match op {
            Ast::And | Ast::Or => return self.lazy(expr, false),
            Ast::Coalesce => {
                self.expr(left, false);
                let end = self.emit(Op::Coalesce(0));
                self.expr(right, false);
                return self.land(end);
            }
            Ast::Add => BinaryOp::Add,
            Ast::Sub => BinaryOp::Sub,
            Ast::Mul => BinaryOp::Mul,
            Ast::Div => BinaryOp::Div,
            Ast::Rem => BinaryOp::Rem,
            Ast::Eq => BinaryOp::Equal,
            Ast::Ne => BinaryOp::NotEqual,
            Ast::Lt => BinaryOp::Less,
            Ast::Le => BinaryOp::LessEqual,
            Ast::Gt => BinaryOp::Greater,
            Ast::Ge => BinaryOp::GreaterEqual,
            Ast::In => BinaryOp::In,
        };
        self.expr(left, false);
        if let (BinaryOp::Greater | BinaryOp::Less, ExprKind::LangBlock { .. }) = (op, &left.ungrouped().kind) {
            // The right side would be the name of a file, which is no name of the program.
            let error = ErrorValue::type_error("an interpreter block has no redirects: this compares its outcome");
            self.emit(Op::Pop);
            self.raise_value(
                error.with_hint("`sh { ... }.stdout.save(\"f\")` writes a file; `\"text\".feed(...)` is its input"),
            );
            return;
        }
        if let ExprKind::Int(n) = right.kind
            && let Ok(n) = i32::try_from(n)
        {
            self.emit(Op::BinaryInt(op, n));
            return;
        }
        self.expr(right, false);
        self.emit(Op::Binary(op));
    }

    /// `&&` and `||`; with `echo` each operand but the deciding one goes to the sink.
    pub(super) fn lazy(&mut self, expr: &Expr, echo: bool) {
        let here = self.f().here;
        self.f().here = place(expr.span);
        match &expr.ungrouped().kind {
            ExprKind::Binary { op: op @ (Ast::And | Ast::Or), left, right } => {
                self.lazy(left, echo);
                let end = self.emit(if *op == Ast::And { Op::And(0, echo) } else { Op::Or(0, echo) });
                self.lazy(right, echo);
                self.land(end);
            }
            _ => self.expr(expr, false),
        }
        self.f().here = here;
    }

    fn match_expr(&mut self, scrutinee: &Expr, arms: &[MatchArm], statement: bool) {
        self.expr(scrutinee, false);
        let value = self.hidden();
        self.emit(Op::SetLocal(value));
        let mut ends = Vec::new();
        for arm in arms {
            self.push_scope();
            self.f().here = place(arm.span);
            let mut next = vec![self.match_arm(value, &arm.patterns)];
            if let Some(guard) = &arm.guard {
                self.expr(guard, false);
                next.push(self.emit(Op::JumpUnless(0)));
            }
            self.expr(&arm.body, statement);
            ends.push(self.emit(Op::Jump(0)));
            next.into_iter().for_each(|at| self.land(at));
            self.pop_scope();
        }
        self.emit(Op::Null);
        ends.into_iter().for_each(|at| self.land(at));
    }

    fn open_try(&mut self) -> usize {
        self.f().open.push(Open::Try);
        self.emit(Op::Try(0))
    }

    /// Ends the guarded part; gives the jump over the handler. The handler begins here.
    fn close_try(&mut self, caught: usize) -> usize {
        self.f().open.pop();
        self.emit(Op::TryEnd);
        let end = self.emit(Op::Jump(0));
        self.land(caught);
        end
    }

    /// A handler: the error is on top.
    fn handler(&mut self, binder: Option<&Ident>, body: impl FnOnce(&mut Self)) {
        self.push_scope();
        match binder {
            Some(binder) => {
                let var = self.declare(&binder.name, BindingKind::Let);
                self.emit(Op::SetLocal(var));
            }
            None => drop(self.emit(Op::Pop)),
        }
        body(self);
        self.pop_scope();
    }
}

/// Whether the value may be a failed outcome that statement position has to raise for.
fn may_fail(expr: &Expr) -> bool {
    !matches!(
        expr.kind,
        ExprKind::Var(_)
            | ExprKind::Field { .. }
            | ExprKind::Index { .. }
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Size(_)
            | ExprKind::Duration(_)
            | ExprKind::Time { .. }
            | ExprKind::DateTime(_)
            | ExprKind::Regex(_)
            | ExprKind::Interp(_)
            | ExprKind::List(_)
            | ExprKind::Record(_)
            | ExprKind::Range { .. }
            | ExprKind::Lambda(_)
            | ExprKind::Unary { .. }
            | ExprKind::Spawn(_)
    ) && !matches!(
        expr.kind,
        ExprKind::Binary { op, .. } if !matches!(op, Ast::And | Ast::Or | Ast::Coalesce)
    )
}
