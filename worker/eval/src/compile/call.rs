//! Calls, methods and lambdas.

use std::sync::Arc;

use shoal_syntax::ast::{Args, Expr, ExprKind, Ident, Lambda, LambdaKind, Name, PatternKind, Span};
use shoal_value::Str;

use super::function::Resolved;
use super::{Compiler, place, type_of};
use crate::code::{CallSite, CodeKind, MethodSite, Op, Parameter, Tree};
use crate::registry::standard;
use crate::scope::BindingKind;

impl Compiler {
    pub(super) fn begin_function(&mut self, kind: CodeKind, span: Span) {
        let mut builder = super::FnBuilder::new(kind, place(span));
        // Parameters and the rest parameter are the first locals; the caller's arguments lie there.
        builder.here = place(span);
        self.fns.push(builder);
        self.push_scope();
    }

    /// Reserves the locals of `n` parameters.
    pub(super) fn reserve(&mut self, n: usize) {
        for _ in 0..n {
            self.hidden();
        }
    }

    pub(super) fn method(&mut self, expr: &Expr, recv: &Expr, name: &Ident, args: &Args, optional: bool) {
        if *name.name == *"feed" && self.feed(expr, recv, args) {
            return;
        }
        self.receiver(recv);
        let skip = optional.then(|| self.emit(Op::IfNull(0)));
        let named = self.arguments(args);
        let row = standard().methods(&name.name);
        let f = self.f();
        f.tables.methods.push(MethodSite { name: name.name.clone(), row, positional: args.pos.len() as u32, named });
        let at = f.tables.methods.len() as u32 - 1;
        self.emit(Op::Method(at));
        skip.into_iter().for_each(|at| self.land(at));
    }

    pub(super) fn arguments(&mut self, args: &Args) -> Box<[Str]> {
        args.pos.iter().for_each(|arg| self.expr(arg, false));
        args.named.iter().for_each(|arg| self.expr(&arg.value, false));
        args.named.iter().map(|arg| arg.name.name.clone()).collect()
    }

    pub(super) fn call(&mut self, callee: &Expr, args: &Args) {
        if let ExprKind::Var(name) = &callee.kind {
            if **name == *"assert" && (1..=2).contains(&args.pos.len()) && args.named.is_empty() && !self.is_bound(name)
            {
                return self.assert(&args.pos[0], args.pos.get(1));
            }
            if let (maybe, Resolved::Root(at)) = self.resolve(name)
                && maybe.is_empty()
            {
                let named = self.arguments(args);
                let at = self.call_site(at, args, named);
                self.emit(Op::CallName(at));
                return;
            }
        }
        self.expr(callee, false);
        let named = self.arguments(args);
        let at = self.call_site(0, args, named);
        self.emit(Op::Call(at));
    }

    fn call_site(&mut self, name: u32, args: &Args, named: Box<[Str]>) -> u32 {
        let f = self.f();
        f.tables.calls.push(CallSite { name, positional: args.pos.len() as u32, named });
        f.tables.calls.len() as u32 - 1
    }

    pub(super) fn lambda(&mut self, lambda: &Arc<Lambda>, span: Span) {
        let kind = if lambda.kind == LambdaKind::Thunk { CodeKind::Thunk } else { CodeKind::Lambda };
        self.begin_function(kind, span);
        self.f().tree = Tree::Lambda(lambda.clone());
        if lambda.kind == LambdaKind::Item {
            self.f().params.push(Parameter { name: "it".into(), ty: None, has_default: false });
            self.reserve(1);
            // The item is read by its place, so it has no name; captured by nothing, it never moves to a cell.
        }
        self.reserve(lambda.params.len());
        for (at, param) in lambda.params.iter().enumerate() {
            let name: Name = match &param.pattern.kind {
                PatternKind::Bind(name) => name.clone(),
                _ => format!("arg{}", at + 1).into(),
            };
            let ty = param.ty.as_ref().map(type_of);
            self.f().params.push(Parameter { name: name.clone(), ty, has_default: false });
            if let PatternKind::Bind(_) = param.pattern.kind {
                self.declare_param(&name, at as u32);
            }
        }
        for (at, param) in lambda.params.iter().enumerate() {
            if let PatternKind::List { .. } | PatternKind::Record(_) = param.pattern.kind {
                self.announce_names(&param.pattern, BindingKind::Let);
                let pattern = self.pattern(&param.pattern, BindingKind::Let);
                self.emit(Op::Local(at as u32));
                self.emit(Op::Destructure(pattern));
            }
        }
        match &lambda.body.kind {
            ExprKind::Block(block) => self.block(block, false, true),
            _ => self.expr(&lambda.body, false),
        }
        self.emit(Op::Return);
        let code = self.end_function(None, None);
        self.close(code);
    }
}
