//! The walk over statements and expressions.

use shoal_syntax::ast::{
    BinaryOp, Block, Expr, ExprKind, InterpPart, Lambda, LambdaKind, Pattern, PatternKind, Program, Stmt, StmtKind,
    Target, TypeExpr, UnaryOp,
};
use shoal_value::{Range, Regex, TimeOfDay, Value};

use super::Effect;
use super::derive::Deriver;
use super::known::{Body, Closure, Kind, Known};
use crate::registry::{Types, standard};
use crate::types::named;

impl Deriver<'_> {
    pub(super) fn program(&mut self, program: &Program) -> Known {
        program.stmts.iter().fold(Known::plain(Types::NULL), |_, stmt| self.stmt(stmt))
    }

    pub(super) fn block(&mut self, block: &Block) -> Known {
        self.scoped(|this| block.stmts.iter().fold(Known::plain(Types::NULL), |_, stmt| this.stmt(stmt)))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Known {
        match &stmt.kind {
            StmtKind::Expr(expr) => {
                self.unconditional = self.scopes.len() == 1 && matches!(expr.ungrouped().kind, ExprKind::Cmd(_));
                return self.expr(expr);
            }
            StmtKind::Let { pattern, init, mutable, .. } => {
                let mut known = self.expr(init);
                if *mutable {
                    known.value = None;
                    known.closure = None;
                }
                self.bind(pattern, known);
            }
            StmtKind::Fn(decl) => {
                let scopes = self.scopes.len();
                let closure = Closure { body: Body::Function(decl.clone()), scopes, root: None };
                self.declare(&decl.name.name, Known { closure: Some(closure), ..Known::any() });
            }
            StmtKind::Alias { name, target } => {
                let scopes = self.scopes.len();
                let closure = Closure { body: Body::Alias(target.clone()), scopes, root: None };
                self.declare(&name.name, Known { closure: Some(closure), ..Known::any() });
            }
            StmtKind::Use { path, alias } => {
                self.use_file(path);
                if let Some(alias) = alias {
                    self.declare(&alias.name, Known::any());
                }
            }
            StmtKind::Assign { target, value, .. } => {
                let known = self.expr(value);
                match target {
                    Target::Name(name) => self.assigned(&name.name, known.kind),
                    Target::Env(name) => self.add(Effect::EnvWrite(name.name.clone())),
                }
                return known;
            }
            StmtKind::Return(value) => {
                let kind = value.as_ref().map_or(Kind::Plain(Types::NULL), |value| self.expr(value).kind);
                self.returned = Some(self.returned.map_or(kind, |before| before.join(kind)));
            }
            StmtKind::Break | StmtKind::Continue => {}
            StmtKind::For { pattern, iter, body } => {
                let known = self.expr(iter);
                self.iterate(&known);
                let item = Known::kind(known.kind.item());
                self.scoped(|this| {
                    this.bind(pattern, item);
                    this.block(body)
                });
            }
            StmtKind::While { cond, body } => {
                self.expr(cond);
                self.block(body);
            }
            StmtKind::Assert { cond, msg } => {
                self.expr(cond);
                msg.iter().for_each(|msg| drop(self.expr(msg)));
            }
        }
        Known::plain(Types::NULL)
    }

    fn iterate(&mut self, known: &Known) {
        match (known.kind, &known.value) {
            (Kind::Glob, Some(Value::Glob(glob))) => {
                let base = self.path(Some(crate::glob::base(glob.pattern())));
                self.add(Effect::Read(base));
            }
            (Kind::Glob, _) => self.add(Effect::Read("*".into())),
            (Kind::Any | Kind::Task | Kind::Channel, _) => self.add(Effect::Opaque),
            (Kind::Plain(_) | Kind::Data | Kind::Stream { .. }, _) => {}
        }
    }

    pub(super) fn bind(&mut self, pattern: &Pattern, known: Known) {
        if let PatternKind::Bind(name) = &pattern.kind {
            return self.declare(name, known);
        }
        let part = Known::kind(known.kind.item());
        pattern.each_name(&mut |name, _| self.declare(name, part.clone()));
    }

    pub(super) fn is_plain_type(ty: &TypeExpr) -> bool {
        let types = named(ty.name.as_str());
        let live = Types::CLOSURE
            .or(Types::COMMAND)
            .or(Types::STREAM)
            .or(Types::TASK)
            .or(Types::GLOB)
            .or(Types::CHANNEL)
            .or(Types::SECRET)
            .or(Types::LIST)
            .or(Types::RECORD)
            .or(Types::TABLE)
            .or(Types::OUTCOME);
        types != Types::ANY && !types.meets(live)
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> Known {
        match &expr.kind {
            ExprKind::Null => Known::fixed(Value::Null),
            ExprKind::Bool(truth) => Known::fixed(Value::Bool(*truth)),
            ExprKind::Int(n) => Known::fixed(Value::Int(*n)),
            ExprKind::Float(f) => Known::fixed(Value::Float(*f)),
            ExprKind::Str(text) => Known::fixed(Value::Str(text.clone())),
            ExprKind::Size(bytes) => Known::fixed(Value::Size(*bytes)),
            ExprKind::Duration(nanos) => Known::fixed(Value::Duration(*nanos)),
            ExprKind::Time { hour, minute, second } => {
                TimeOfDay::new(*hour, *minute, *second).map_or(Known::plain(Types::TIME), |t| Known::fixed(t.into()))
            }
            ExprKind::DateTime(_) => Known::plain(Types::DATETIME),
            ExprKind::Regex(src) => {
                Regex::new(src).map_or(Known::plain(Types::REGEX), |regex| Known::fixed(Value::Regex(regex)))
            }
            ExprKind::Interp(parts) => self.interp(parts),
            ExprKind::List(items) => {
                let items: Vec<Known> = items.iter().map(|item| self.expr(item)).collect();
                let value = items.iter().map(|k| k.value.clone()).collect::<Option<Vec<_>>>();
                self.container(&items, Types::LIST, value.and_then(|items| Value::list(items).ok()))
            }
            ExprKind::Record(fields) => {
                let items: Vec<Known> = fields.iter().map(|field| self.expr(&field.value)).collect();
                let pairs = fields.iter().zip(&items).map(|(f, k)| Some((f.name.name.clone(), k.value.clone()?)));
                let value = pairs.collect::<Option<Vec<_>>>().and_then(|pairs| Value::record(pairs).ok());
                self.container(&items, Types::RECORD, value)
            }
            ExprKind::Range { start, end, inclusive } => match (self.expr(start).value, self.expr(end).value) {
                (Some(Value::Int(start)), Some(Value::Int(end))) => {
                    Known::fixed(Range { start, end, inclusive: *inclusive }.into())
                }
                _ => Known::plain(Types::RANGE),
            },
            ExprKind::Var(name) => self.var(name, false),
            ExprKind::Item => self.items.last().cloned().unwrap_or_else(Known::any),
            ExprKind::Field { recv, name, .. } => self.field(recv, &name.name),
            ExprKind::Index { recv, index } => {
                self.expr(index);
                let recv = self.receiver(recv);
                Known::kind(recv.kind.item())
            }
            ExprKind::Method { recv, name, args, .. } => self.method(recv, &name.name, args),
            ExprKind::Call { callee, args } => self.call_expr(callee, args),
            ExprKind::Lambda(lambda) => {
                let scopes = self.scopes.len();
                let closure = Closure { body: Body::Lambda(lambda.clone()), scopes, root: None };
                Known { closure: Some(closure), ..Known::any() }
            }
            ExprKind::Unary { op, operand } => {
                let known = self.expr(operand);
                match (op, &known.value) {
                    (UnaryOp::Not, _) => Known::plain(Types::BOOL),
                    (UnaryOp::Neg, Some(value)) => {
                        shoal_value::ops::negate(value).map_or_else(|_| Known::data(), Known::fixed)
                    }
                    (UnaryOp::Neg, None) => Known::kind(if known.kind.is_data() { known.kind } else { Kind::Data }),
                }
            }
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right),
            ExprKind::Group(inner) => self.expr(inner),
            ExprKind::Block(block) => self.block(block),
            ExprKind::If { cond, then, otherwise } => {
                self.expr(cond);
                let then = self.block(then);
                let otherwise = otherwise.as_ref().map_or(Known::plain(Types::NULL), |other| self.expr(other));
                then.join(&otherwise)
            }
            ExprKind::Match { scrutinee, arms } => {
                let value = self.expr(scrutinee);
                arms.iter().fold(Known::plain(Types::NULL), |so_far, arm| {
                    let result = self.scoped(|this| {
                        arm.patterns.iter().for_each(|pattern| this.bind(pattern, Known::kind(value.kind)));
                        arm.guard.iter().for_each(|guard| drop(this.expr(guard)));
                        this.expr(&arm.body)
                    });
                    so_far.join(&result)
                })
            }
            ExprKind::Try { body, binder, handler } => {
                let value = self.block(body);
                let handled = self.scoped(|this| {
                    binder.iter().for_each(|name| this.declare(&name.name, Known::plain(Types::ERROR)));
                    this.block(handler)
                });
                value.join(&handled)
            }
            ExprKind::Catch { expr, binder, handler } => {
                let value = self.expr(expr);
                let handled = self.scoped(|this| {
                    binder.iter().for_each(|name| this.declare(&name.name, Known::plain(Types::ERROR)));
                    this.expr(handler)
                });
                value.join(&handled)
            }
            ExprKind::With { cwd, env, reef, body } => self.with(cwd.as_deref(), env.as_deref(), reef.as_deref(), body),
            ExprKind::Spawn(block) => {
                let cwd = self.cwd.clone();
                self.block(block);
                self.cwd = cwd;
                Known::kind(Kind::Task)
            }
            ExprKind::Cmd(call) => self.command(call),
            ExprKind::LangBlock { tool, .. } => {
                self.starts_language(tool);
                self.add(Effect::Opaque);
                Known::data()
            }
        }
    }

    fn container(&mut self, items: &[Known], types: Types, value: Option<Value>) -> Known {
        let known = if items.iter().all(|item| item.kind.is_data()) { Known::plain(types) } else { Known::any() };
        Known { value: if known.kind == Kind::Any { None } else { value }, ..known }
    }

    fn interp(&mut self, parts: &[InterpPart]) -> Known {
        let mut text = Some(String::new());
        for part in parts {
            let piece = match part {
                InterpPart::Lit(piece) => Some(piece.to_string()),
                InterpPart::Hole(hole) => {
                    let known = self.expr(hole);
                    known
                        .value
                        .filter(|v| !matches!(v, Value::Outcome(_)))
                        .map(|v| shoal_value::render::interpolate(&v).to_string())
                }
            };
            text = text.zip(piece).map(|(text, piece)| text + &piece);
        }
        text.map_or_else(|| Known::plain(Types::STR), |text| Known::fixed(Value::str(text)))
    }

    /// A lone name; as a receiver it may be a program.
    pub(super) fn var(&mut self, name: &shoal_syntax::ast::Name, receiver: bool) -> Known {
        if let Some(known) = self.lookup(name) {
            return known;
        }
        match &**name {
            "now" | "today" => {
                self.add(Effect::Time);
                return Known::plain(Types::DATETIME);
            }
            "env" if receiver => {
                self.add(Effect::EnvRead("*".into()));
                return Known::plain(Types::RECORD);
            }
            "it" | "out" => return Known::any(),
            _ => {}
        }
        if standard().namespace(name).is_some() {
            return Known::any();
        }
        if let Some(command) = standard().command(name) {
            return self.builtin_command(command, &[]);
        }
        if receiver {
            self.starts(name, &[], None);
            self.add(Effect::Opaque);
            return Known::data();
        }
        Known::any()
    }

    pub(super) fn receiver(&mut self, recv: &Expr) -> Known {
        match &recv.kind {
            ExprKind::Var(name) => self.var(name, true),
            _ => self.expr(recv),
        }
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Known {
        let left = self.expr(left);
        let right = self.expr(right);
        match op {
            BinaryOp::And | BinaryOp::Or | BinaryOp::Coalesce => left.join(&right),
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::In => {
                Known::plain(Types::BOOL)
            }
            BinaryOp::Add => {
                if let (Some(a), Some(b)) = (&left.value, &right.value)
                    && let Ok(sum) = shoal_value::ops::binary(shoal_value::ops::BinaryOp::Add, a.clone(), b.clone())
                {
                    return Known::fixed(sum);
                }
                let kind = left.kind.join(right.kind);
                Known::kind(if kind.is_data() { kind } else { Kind::Any })
            }
            BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => Known::data(),
        }
    }

    fn with(&mut self, cwd: Option<&Expr>, env: Option<&Expr>, reef: Option<&Expr>, body: &Block) -> Known {
        let before = self.cwd.clone();
        if let Some(cwd) = cwd {
            let known = self.expr(cwd);
            let path = self.path_of(Some(&known));
            self.cwd = (*path != *"*").then(|| (&*path).into());
            self.add(Effect::Read(path));
        }
        if let Some(env) = env {
            match &env.ungrouped().kind {
                ExprKind::Record(fields) => {
                    for field in fields {
                        self.expr(&field.value);
                        self.add(Effect::EnvWrite(field.name.name.clone()));
                    }
                }
                _ => {
                    self.expr(env);
                    self.add(Effect::EnvWrite("*".into()));
                }
            }
        }
        reef.iter().for_each(|reef| drop(self.expr(reef)));
        let result = self.block(body);
        self.cwd = before;
        result
    }

    pub(super) fn lambda_body(&mut self, lambda: &Lambda, args: Vec<Known>) -> Known {
        let mut args = args.into_iter();
        if lambda.kind == LambdaKind::Item {
            self.items.push(args.next().unwrap_or_else(Known::any));
            let result = self.expr(&lambda.body);
            self.items.pop();
            return result;
        }
        for param in &lambda.params {
            let given = args.next().unwrap_or_else(Known::any);
            let known = match &param.ty {
                Some(ty) if Self::is_plain_type(ty) => Known::plain(named(ty.name.as_str())),
                _ => given,
            };
            self.bind(&param.pattern, known);
        }
        self.expr(&lambda.body)
    }
}
