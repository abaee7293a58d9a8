//! Statements, functions, types.

use std::sync::Arc;

use super::{Node, Read, command, expr, malformed, pattern};
use crate::ast::{AssignOp, ExprKind, FnDecl, Ident, Param, RestParam, Stmt, StmtKind, Target, TypeExpr, TypeName};

pub(super) fn stmt(node: Node<'_>) -> Read<Stmt> {
    let kind = match node.kind()? {
        "let" => StmtKind::Let {
            pattern: node.child("pattern", pattern::pattern)?,
            ty: node.optional("ty", type_expr)?,
            init: node.child("init", expr::expr)?,
            mutable: node.flag("mutable"),
            exported: node.flag("exported"),
        },
        "fn" => {
            let decl = node.child("decl", fn_decl)?;
            return Ok(Stmt { span: decl.span, kind: StmtKind::Fn(Arc::new(decl)) });
        }
        "alias" => {
            StmtKind::Alias { name: node.ident("name")?, target: Arc::new(node.child("target", command::call)?) }
        }
        "use" => use_stmt(node)?,
        "assign" => {
            let (target, op) = (target(node)?, assign_op(node.str("op")?)?);
            if matches!(target, Target::Env(_)) && op != AssignOp::Set {
                return malformed("set for a field of `env`").map_err(|error: super::Malformed| error.inside("op"));
            }
            StmtKind::Assign { target, op, value: node.child("value", expr::expr)? }
        }
        "return" => StmtKind::Return(node.optional("value", expr::expr)?),
        "break" => StmtKind::Break,
        "continue" => StmtKind::Continue,
        "for" => StmtKind::For {
            pattern: node.child("pattern", pattern::pattern)?,
            iter: node.child("iter", expr::expr)?,
            body: node.block("body")?,
        },
        "while" => StmtKind::While { cond: node.child("cond", expr::expr)?, body: node.block("body")? },
        "expr" => StmtKind::Expr(node.child("expr", expr::expr)?),
        _ => return malformed("a kind of statement").map_err(|error: super::Malformed| error.inside("kind")),
    };
    Ok(Stmt { kind, span: node.span() })
}

fn use_stmt(node: Node<'_>) -> Read<StmtKind> {
    let path = match node.optional("arg", command::arg)? {
        Some(arg) => arg,
        None => command::word(node.str("path")?, node.span()),
    };
    let alias = if node.member("as").is_null() { None } else { Some(node.ident("as")?) };
    Ok(StmtKind::Use { path, alias })
}

fn target(node: Node<'_>) -> Read<Target> {
    let target = node.child("target", expr::expr)?;
    match target.kind {
        ExprKind::Var(name) => Ok(Target::Name(Ident { name, span: target.span })),
        ExprKind::Field { name, .. } => Ok(Target::Env(Ident { span: target.span, ..name })),
        _ => malformed("a name or a field of `env`").map_err(|error: super::Malformed| error.inside("target")),
    }
}

fn assign_op(op: &str) -> Read<AssignOp> {
    Ok(match op {
        "set" => AssignOp::Set,
        "add" => AssignOp::Add,
        "sub" => AssignOp::Sub,
        "mul" => AssignOp::Mul,
        "div" => AssignOp::Div,
        _ => return malformed("set, add, sub, mul or div"),
    })
}

fn fn_decl(node: Node<'_>) -> Read<FnDecl> {
    let rest = node.optional("rest", |rest| {
        Ok(RestParam { name: rest.ident("name")?, ty: rest.optional("ty", type_expr)?, span: rest.span() })
    })?;
    Ok(FnDecl {
        name: node.ident("name")?,
        params: node.list("params", param)?,
        rest,
        ret: node.optional("ret", type_expr)?,
        body: node.block("body")?,
        doc: node.member("doc").as_str().map(Into::into),
        exported: node.flag("exported"),
        span: node.span(),
    })
}

fn param(node: Node<'_>) -> Read<Param> {
    Ok(Param {
        name: node.ident("name")?,
        ty: node.optional("ty", type_expr)?,
        default: node.optional("default", expr::expr)?,
        span: node.span(),
    })
}

pub(super) fn type_expr(node: Node<'_>) -> Read<TypeExpr> {
    let Some(name) = TypeName::from_text(node.str("name")?) else {
        return malformed("the name of a type").map_err(|error: super::Malformed| error.inside("name"));
    };
    Ok(TypeExpr { name, args: node.list("args", type_expr)?, optional: node.flag("optional"), span: node.span() })
}
