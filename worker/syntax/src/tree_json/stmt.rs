//! Statements, blocks, functions, types.

use serde_json::Value;

use super::{array, command, expr, node, object, optional, pattern, place, text};
use crate::ast::{
    Arg, ArgKind, AssignOp, Block, Expr, ExprKind, FnDecl, Ident, Name, Param, Span, Stmt, StmtKind, Target, TypeExpr,
};

pub(super) fn list(stmts: &[Stmt]) -> Value {
    array(stmts, stmt)
}

fn stmt(stmt: &Stmt) -> Value {
    let at = stmt.span;
    match &stmt.kind {
        StmtKind::Let { pattern, ty, init, mutable, exported } => node(
            "let",
            [
                ("pattern", pattern::pattern(pattern)),
                ("ty", optional(ty.as_ref(), type_expr)),
                ("init", expr::expr(init)),
                ("mutable", Value::Bool(*mutable)),
                ("exported", Value::Bool(*exported)),
            ],
            at,
        ),
        StmtKind::Fn(decl) => object!({ "kind": "fn", "decl": fn_decl(decl) }),
        StmtKind::Alias { name, target } => {
            node("alias", [("name", text(&name.name)), ("target", command::call(target))], at)
        }
        StmtKind::Use { path, alias } => use_stmt(path, alias.as_ref(), at),
        StmtKind::Assign { target, op, value } => node(
            "assign",
            [("target", assign_target(target)), ("op", text(assign_op(*op))), ("value", expr::expr(value))],
            at,
        ),
        StmtKind::Return(value) => node("return", [("value", optional(value.as_ref(), expr::expr))], at),
        StmtKind::Break => node("break", [], at),
        StmtKind::Continue => node("continue", [], at),
        StmtKind::For { pattern, iter, body } => {
            node("for", [("pattern", pattern::pattern(pattern)), ("iter", expr::expr(iter)), ("body", block(body))], at)
        }
        StmtKind::While { cond, body } => node("while", [("cond", expr::expr(cond)), ("body", block(body))], at),
        StmtKind::Assert { cond, msg } => {
            let pos: Vec<Value> = std::iter::once(cond).chain(msg).map(expr::expr).collect();
            let args = object!({ "pos": pos, "named": Value::Array(Vec::new()) });
            let call = node("fn_call", [("name", text("assert")), ("args", args)], at);
            node("expr", [("expr", call)], at)
        }
        StmtKind::Expr(inner) => node("expr", [("expr", expr::expr(inner))], at),
    }
}

/// The path as text where it is fixed, and always the argument itself.
fn use_stmt(path: &Arg, alias: Option<&Ident>, at: Span) -> Value {
    let fixed: Name = match &path.kind {
        ArgKind::Word(path) | ArgKind::Path(path) => path.clone(),
        ArgKind::Quoted(quoted) => match &quoted.kind {
            ExprKind::Str(path) => path.clone(),
            _ => "".into(),
        },
        _ => "".into(),
    };
    let name = optional(alias, |alias| text(&alias.name));
    node("use", [("path", text(&fixed)), ("as", name), ("arg", command::arg(path))], at)
}

fn assign_target(target: &Target) -> Value {
    let target = match target {
        Target::Name(name) => Expr::new(ExprKind::Var(name.name.clone()), name.span),
        Target::Env(name) => {
            let recv = Box::new(Expr::new(ExprKind::Var("env".into()), name.span));
            Expr::new(ExprKind::Field { recv, name: name.clone(), optional: false }, name.span)
        }
    };
    expr::expr(&target)
}

pub(super) fn assign_op(op: AssignOp) -> &'static str {
    match op {
        AssignOp::Set => "set",
        AssignOp::Add => "add",
        AssignOp::Sub => "sub",
        AssignOp::Mul => "mul",
        AssignOp::Div => "div",
    }
}

pub(super) fn block(block: &Block) -> Value {
    object!({ "stmts": list(&block.stmts), "span": place(block.span) })
}

fn fn_decl(decl: &FnDecl) -> Value {
    let rest = optional(
        decl.rest.as_ref(),
        |rest| object!({ "name": text(&rest.name.name), "ty": optional(rest.ty.as_ref(), type_expr) }),
    );
    object!({
        "name": text(&decl.name.name),
        "params": array(&decl.params, param),
        "rest": rest,
        "ret": optional(decl.ret.as_ref(), type_expr),
        "body": block(&decl.body),
        "doc": optional(decl.doc.as_ref(), |doc| text(doc)),
        "exported": decl.exported,
        "span": place(decl.span),
    })
}

fn param(param: &Param) -> Value {
    object!({
        "name": text(&param.name.name),
        "ty": optional(param.ty.as_ref(), type_expr),
        "default": optional(param.default.as_ref(), expr::expr),
        "span": place(param.span),
    })
}

pub(super) fn type_expr(ty: &TypeExpr) -> Value {
    object!({
        "name": ty.name.as_str(),
        "args": array(&ty.args, type_expr),
        "optional": ty.optional,
        "span": place(ty.span),
    })
}
