//! Expressions.

use std::sync::Arc;

use super::stmt::type_expr;
use super::{Node, Read, command, malformed, pattern};
use crate::ast::{
    Args, BinaryOp, Expr, ExprKind, Ident, InterpPart, Lambda, LambdaKind, LambdaParam, MatchArm, NamedArg, Pattern,
    PatternKind, RecordField, UnaryOp,
};

pub(super) fn expr(node: Node<'_>) -> Read<Expr> {
    let kind = match node.kind()? {
        "null" => ExprKind::Null,
        "bool" => ExprKind::Bool(node.flag("value")),
        "int" => ExprKind::Int(node.int("value")?),
        "float" => ExprKind::Float(node.member("value").as_f64().map_or_else(|| malformed("a float"), Ok)?),
        "str" => ExprKind::Str(node.name("value")?),
        "size" => ExprKind::Size(node.member("bytes").as_u64().map_or_else(|| malformed("bytes"), Ok)?),
        "duration" => ExprKind::Duration(node.int("ns")?),
        "time" => {
            ExprKind::Time { hour: small(node, "hour")?, minute: small(node, "min")?, second: small(node, "sec")? }
        }
        "date_time" => ExprKind::DateTime(node.name("iso")?),
        "regex" => ExprKind::Regex(node.name("src")?),
        "var" if node.flag("implicit") => ExprKind::Item,
        "var" => ExprKind::Var(node.name("name")?),
        "lang_block" => ExprKind::LangBlock { tool: node.name("tool")?, text: node.name("src")? },
        kind => compound(kind, node)?,
    };
    Ok(Expr { kind, span: node.span() })
}

fn compound(kind: &str, node: Node<'_>) -> Read<ExprKind> {
    Ok(match kind {
        "str_interp" => ExprKind::Interp(node.list("parts", part)?),
        "list" => ExprKind::List(node.list("items", expr)?),
        "record" => ExprKind::Record(node.list("fields", field)?),
        "lambda" => lambda(node)?,
        "unary" => {
            let op = match node.str("op")? {
                "not" => UnaryOp::Not,
                "neg" => UnaryOp::Neg,
                _ => return malformed("not or neg"),
            };
            ExprKind::Unary { op, operand: node.expr("expr")? }
        }
        "binary" => {
            let op = binary_op(node.str("op")?)?;
            ExprKind::Binary { op, left: node.expr("lhs")?, right: node.expr("rhs")? }
        }
        "range" => {
            ExprKind::Range { start: node.expr("start")?, end: node.expr("end")?, inclusive: node.flag("inclusive") }
        }
        "field" => {
            ExprKind::Field { recv: node.expr("recv")?, name: node.ident("name")?, optional: node.flag("optional") }
        }
        "index" => ExprKind::Index { recv: node.expr("recv")?, index: node.expr("index")? },
        "method_call" => ExprKind::Method {
            recv: node.expr("recv")?,
            name: node.ident("name")?,
            args: node.child("args", args)?,
            optional: node.flag("optional"),
        },
        "fn_call" => {
            let callee = Expr { kind: ExprKind::Var(node.name("name")?), span: node.span() };
            ExprKind::Call { callee: Box::new(callee), args: node.child("args", args)? }
        }
        "call" => ExprKind::Call { callee: node.expr("callee")?, args: node.child("args", args)? },
        "cmd" => ExprKind::Cmd(Box::new(node.child("call", command::call)?)),
        _ => construct(kind, node)?,
    })
}

fn construct(kind: &str, node: Node<'_>) -> Read<ExprKind> {
    Ok(match kind {
        "block" => ExprKind::Block(node.block("block")?),
        "if" => {
            ExprKind::If { cond: node.expr("cond")?, then: node.block("then")?, otherwise: node.optional_expr("else")? }
        }
        "match" => ExprKind::Match { scrutinee: node.expr("scrutinee")?, arms: node.list("arms", arm)? },
        "try" => {
            let binder = node.optional("pattern", |bind| bind.ident("name"))?;
            ExprKind::Try { body: node.block("body")?, binder, handler: node.block("handler")? }
        }
        "catch" => {
            let binder = if node.member("binder").is_null() { None } else { Some(node.ident("binder")?) };
            ExprKind::Catch { expr: node.expr("expr")?, binder, handler: node.expr("handler")? }
        }
        "with" => ExprKind::With {
            cwd: node.optional_expr("cwd")?,
            env: node.optional_expr("env")?,
            reef: node.optional_expr("reef")?,
            body: node.block("body")?,
        },
        "spawn" => ExprKind::Spawn(node.block("body")?),
        _ => return malformed("a kind of expression").map_err(|error: super::Malformed| error.inside("kind")),
    })
}

fn small(node: Node<'_>, name: &str) -> Read<u8> {
    u8::try_from(node.int(name)?).map_or_else(|_| malformed("a part of a time"), Ok)
}

fn part(node: Node<'_>) -> Read<InterpPart> {
    match node.kind()? {
        "lit" => Ok(InterpPart::Lit(node.name("text")?)),
        "expr" => Ok(InterpPart::Hole(*node.expr("expr")?)),
        _ => malformed("lit or expr"),
    }
}

fn field(node: Node<'_>) -> Read<RecordField> {
    let value = *node.expr("value")?;
    let name = node.ident("name")?;
    let span = node.span();
    let shorthand = value.span == span && matches!(&value.kind, ExprKind::Var(var) if *var == name.name);
    Ok(RecordField { name, value, shorthand, span })
}

fn args(node: Node<'_>) -> Read<Args> {
    let named = node
        .list("named", |arg| Ok(NamedArg { name: arg.ident("name")?, value: *arg.expr("value")?, span: arg.span() }))?;
    Ok(Args { pos: node.list("pos", expr)?, named, span: node.span() })
}

fn lambda(node: Node<'_>) -> Read<ExprKind> {
    let body = *node.expr("body")?;
    let (kind, params) = if node.flag("implicit") {
        (LambdaKind::Item, Vec::new())
    } else if node.flag("thunk") {
        (LambdaKind::Thunk, Vec::new())
    } else {
        (LambdaKind::Explicit, node.list("params", lambda_param)?)
    };
    Ok(ExprKind::Lambda(Arc::new(Lambda { kind, params, body })))
}

fn lambda_param(node: Node<'_>) -> Read<LambdaParam> {
    let pattern = match node.optional("pattern", pattern::pattern)? {
        Some(pattern) => pattern,
        None => {
            let Ident { name, span } = node.ident("name")?;
            let kind = if &*name == "_" { PatternKind::Wildcard } else { PatternKind::Bind(name) };
            Pattern { kind, span }
        }
    };
    Ok(LambdaParam { pattern, ty: node.optional("ty", type_expr)?, span: node.span() })
}

fn arm(node: Node<'_>) -> Read<MatchArm> {
    Ok(MatchArm {
        patterns: node.list("patterns", pattern::pattern)?,
        guard: node.optional("guard", expr)?,
        body: *node.expr("body")?,
        span: node.span(),
    })
}

fn binary_op(op: &str) -> Read<BinaryOp> {
    use BinaryOp::{Add, And, Coalesce, Div, Eq, Ge, Gt, In, Le, Lt, Mul, Ne, Or, Rem, Sub};
    let all = [Add, Sub, Mul, Div, Rem, Eq, Ne, Lt, Le, Gt, Ge, In, And, Or, Coalesce];
    let found = all.into_iter().find(|candidate| crate::tree_json::expr::binary_op(*candidate) == op);
    found.map_or_else(|| malformed("a binary operator"), Ok).map_err(|error| error.inside("op"))
}
