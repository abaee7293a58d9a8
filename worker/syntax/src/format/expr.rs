//! Expressions.

use super::Printer;
use crate::ast::{
    Args, BinaryOp, Expr, ExprKind, Lambda, LambdaKind, MatchArm, PatternKind, RecordField, Span, UnaryOp,
};
use crate::nesting::with_stack;

impl Printer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) {
        with_stack(|| self.unguarded(expr));
    }

    fn unguarded(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Item => {}
            ExprKind::Var(name) if expr.span.start < expr.span.end => self.out.push_str(name),
            // The result that the first line of a request continues.
            ExprKind::Var(_) => {}
            ExprKind::Group(inner) => {
                self.out.push('(');
                self.expr(inner);
                self.out.push(')');
            }
            ExprKind::Cmd(call) => self.command(call),
            ExprKind::Block(block) if block.stmts.is_empty() && !self.has_comment_before(block.span.end) => {
                self.out.push_str("{}");
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::List(items) => self.list(items, expr.span),
            ExprKind::Record(fields) => self.record(fields, expr.span),
            ExprKind::Lambda(lambda) => self.lambda(lambda),
            ExprKind::Unary { op, operand } => {
                self.out.push(match op {
                    UnaryOp::Not => '!',
                    UnaryOp::Neg => '-',
                });
                self.expr(operand);
            }
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right),
            ExprKind::Range { start, end, inclusive } => {
                self.expr(start);
                self.out.push_str(if *inclusive { "..=" } else { ".." });
                self.expr(end);
            }
            ExprKind::Field { .. } | ExprKind::Index { .. } | ExprKind::Method { .. } | ExprKind::Call { .. } => {
                self.access(expr);
            }
            ExprKind::If { .. } | ExprKind::Match { .. } | ExprKind::Try { .. } | ExprKind::With { .. } => {
                self.construct(expr);
            }
            ExprKind::Catch { expr, binder, handler } => {
                self.expr(expr);
                let binder = binder.as_ref().map_or(String::new(), |binder| format!("{} ", binder.name));
                self.catch(expr, handler, &binder);
            }
            ExprKind::Spawn(body) => {
                self.out.push_str("spawn ");
                self.block(body);
            }
            ExprKind::Null
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
            | ExprKind::LangBlock { .. } => self.verbatim(expr.span),
        }
    }

    /// `catch` on the same line would be a word of a command before it.
    fn catch(&mut self, before: &Expr, handler: &Expr, binder: &str) {
        if ends_in_command(before) || self.catch_is_broken(before, handler) {
            self.new_line();
        } else {
            self.out.push(' ');
        }
        self.out.push_str(&format!("catch {binder}"));
        self.expr(handler);
    }

    fn catch_is_broken(&self, before: &Expr, handler: &Expr) -> bool {
        let between = self.src.get(before.span.end as usize..handler.span.start as usize).unwrap_or("");
        between.find("catch").is_some_and(|at| between[..at].contains('\n'))
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) {
        self.expr(left);
        self.out.push_str(&format!(" {}", op.symbol()));
        if self.broken(left.span.end, right.span.start) {
            self.indented(|p| {
                p.new_line();
                p.expr(right);
            });
        } else {
            self.out.push(' ');
            self.expr(right);
        }
    }

    fn indented(&mut self, print: impl FnOnce(&mut Self)) {
        self.indent += 1;
        print(self);
        self.indent -= 1;
    }

    fn access(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Field { recv, name, optional } => {
                self.expr(recv);
                self.dot(recv, name.span, *optional);
                self.out.push_str(&name.name);
            }
            ExprKind::Method { recv, name, args, optional } => {
                self.expr(recv);
                let broken = self.dot(recv, name.span, *optional);
                self.out.push_str(&name.name);
                self.indent += usize::from(broken);
                self.args(args, true);
                self.indent -= usize::from(broken);
            }
            ExprKind::Index { recv, index } => {
                self.expr(recv);
                self.out.push('[');
                self.expr(index);
                self.out.push(']');
            }
            ExprKind::Call { callee, args } => {
                self.expr(callee);
                self.args(args, false);
            }
            _ => {}
        }
    }

    /// The dot of an access, on a new line if it was.
    fn dot(&mut self, recv: &Expr, name: Span, optional: bool) -> bool {
        let broken = self.broken(recv.span.end, name.start) && !matches!(recv.kind, ExprKind::Item);
        if broken {
            self.indented(Self::new_line);
        }
        self.out.push_str(if optional { "?." } else { "." });
        broken
    }

    fn args(&mut self, args: &Args, method: bool) {
        let (given, block) = match args.pos.split_last() {
            Some((last, given)) if is_thunk(last) => (given, Some(last)),
            _ => (args.pos.as_slice(), None),
        };
        let mut items: Vec<(Span, Option<&str>, &Expr)> = given.iter().map(|arg| (arg.span, None, arg)).collect();
        items.extend(args.named.iter().map(|arg| (arg.span, Some(&*arg.name.name), &arg.value)));
        items.sort_by_key(|(span, ..)| span.start);
        if !(method && block.is_some() && items.is_empty()) {
            let broken = items.first().is_some_and(|(first, ..)| self.broken(args.span.start, first.start));
            self.sequence("(", ")", broken, &items, |p, (_, name, value)| {
                if let Some(name) = name {
                    p.out.push_str(&format!("{name}: "));
                }
                p.expr(value);
            });
        }
        if let Some(block) = block {
            self.out.push(' ');
            self.expr(block);
        }
    }

    fn list(&mut self, items: &[Expr], span: Span) {
        let broken = items.first().is_some_and(|first| self.broken(span.start, first.span.start));
        self.sequence("[", "]", broken, items, |p, item| p.expr(item));
    }

    fn record(&mut self, fields: &[RecordField], span: Span) {
        let broken = fields.first().is_some_and(|first| self.broken(span.start, first.span.start));
        let lone = matches!(fields, [field] if field.shorthand) && !broken;
        self.sequence("{", if lone { ",}" } else { "}" }, broken, fields, |p, field| {
            p.verbatim(field.name.span);
            if !field.shorthand {
                p.out.push_str(": ");
                p.expr(&field.value);
            }
        });
    }

    fn sequence<T>(&mut self, open: &str, close: &str, broken: bool, items: &[T], print: impl Fn(&mut Self, &T)) {
        self.out.push_str(open);
        if broken {
            self.indented(|p| {
                for item in items {
                    p.new_line();
                    print(p, item);
                    p.out.push(',');
                }
            });
            self.new_line();
        } else {
            for (i, item) in items.iter().enumerate() {
                self.out.push_str(if i > 0 { ", " } else { "" });
                print(self, item);
            }
        }
        self.out.push_str(close);
    }

    fn lambda(&mut self, lambda: &Lambda) {
        match lambda.kind {
            LambdaKind::Item => return self.expr(&lambda.body),
            LambdaKind::Thunk => {
                return match &lambda.body.kind {
                    ExprKind::Block(block) => self.block(block),
                    _ => self.expr(&lambda.body),
                };
            }
            LambdaKind::Explicit => {}
        }
        match lambda.params.as_slice() {
            [only]
                if only.ty.is_none() && matches!(only.pattern.kind, PatternKind::Bind(_) | PatternKind::Wildcard) =>
            {
                self.verbatim(only.pattern.span);
            }
            params => self.sequence("(", ")", false, params, |p, param| {
                p.verbatim(param.pattern.span);
                if let Some(ty) = &param.ty {
                    p.out.push_str(&format!(": {ty}"));
                }
            }),
        }
        self.out.push_str(" => ");
        self.expr(&lambda.body);
    }

    fn construct(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::If { cond, then, otherwise } => {
                self.out.push_str("if ");
                self.expr(cond);
                self.out.push(' ');
                self.block(then);
                if let Some(otherwise) = otherwise {
                    self.out.push_str(" else ");
                    match &otherwise.kind {
                        ExprKind::Block(block) => self.block(block),
                        _ => self.expr(otherwise),
                    }
                }
            }
            ExprKind::Match { scrutinee, arms } => {
                self.out.push_str("match ");
                self.expr(scrutinee);
                self.out.push(' ');
                self.arms(arms, scrutinee.span.end, expr.span.end);
            }
            ExprKind::Try { body, binder, handler } => {
                self.out.push_str("try ");
                self.block(body);
                let binder = binder.as_ref().map_or(String::new(), |binder| format!("{} ", binder.name));
                self.out.push_str(&format!(" catch {binder}"));
                self.block(handler);
            }
            ExprKind::With { cwd, env, reef, body } => {
                let mut separator = "with ";
                for (name, value) in [("cwd", cwd), ("env", env), ("reef", reef)] {
                    let Some(value) = value else { continue };
                    self.out.push_str(&format!("{separator}{name}: "));
                    self.expr(value);
                    separator = ", ";
                }
                self.out.push(' ');
                self.block(body);
            }
            _ => {}
        }
    }

    fn arms(&mut self, arms: &[MatchArm], from: u32, to: u32) {
        let (length, comments) = (self.out.len(), self.comments);
        if !self.broken(from, to) {
            self.out.push_str("{ ");
            for (i, arm) in arms.iter().enumerate() {
                self.out.push_str(if i > 0 { ", " } else { "" });
                self.arm(arm);
            }
            self.out.push_str(" }");
            if !self.out[length..].contains('\n') {
                return;
            }
            self.out.truncate(length);
            self.comments = comments;
        }
        self.out.push('{');
        self.comment_beside(from);
        self.out.push('\n');
        self.indent += 1;
        let mut last_end = from;
        for arm in arms {
            self.comments_before(arm.span.start, last_end);
            self.line_start();
            self.arm(arm);
            last_end = arm.span.end;
            self.comment_beside(last_end);
            self.out.push('\n');
        }
        self.comments_before(to, last_end);
        self.indent -= 1;
        self.line_start();
        self.out.push('}');
    }

    fn arm(&mut self, arm: &MatchArm) {
        for (i, pattern) in arm.patterns.iter().enumerate() {
            self.out.push_str(if i > 0 { " | " } else { "" });
            self.verbatim(pattern.span);
        }
        if let Some(guard) = &arm.guard {
            self.out.push_str(" if ");
            self.expr(guard);
        }
        self.out.push_str(" => ");
        self.expr(&arm.body);
    }
}

fn is_thunk(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Lambda(lambda) if lambda.kind == LambdaKind::Thunk)
}

/// Whether the last thing in the expression is a command, which would take what follows as words.
fn ends_in_command(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Cmd(_) => true,
        ExprKind::Binary { right, .. } => ends_in_command(right),
        ExprKind::Catch { handler, .. } => ends_in_command(handler),
        _ => false,
    }
}
