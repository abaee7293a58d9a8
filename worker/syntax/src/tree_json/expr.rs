//! Expressions.

use serde_json::{Map, Value};

use super::stmt::{block, type_expr};
use super::{array, command, node, object, optional, pattern, place, text};
use crate::ast::{
    Args, BinaryOp, Expr, ExprKind, Ident, InterpPart, Lambda, LambdaKind, LambdaParam, MatchArm, Pattern, PatternKind,
    RecordField, Span, UnaryOp,
};
use crate::nesting::with_stack;

/// The name of an implicit item.
pub(super) const ITEM: &str = "item";

pub(super) fn expr(expr: &Expr) -> Value {
    with_stack(|| unguarded(expr))
}

fn unguarded(e: &Expr) -> Value {
    let at = e.span;
    match &e.kind {
        ExprKind::Group(inner) => expr(inner),
        ExprKind::Null => node("null", [], at),
        ExprKind::Bool(value) => node("bool", [("value", Value::Bool(*value))], at),
        ExprKind::Int(value) => node("int", [("value", Value::from(*value))], at),
        ExprKind::Float(value) => node("float", [("value", Value::from(*value))], at),
        ExprKind::Str(value) => node("str", [("value", text(value))], at),
        ExprKind::Size(bytes) => node("size", [("bytes", Value::from(*bytes))], at),
        ExprKind::Duration(nanos) => node("duration", [("ns", Value::from(*nanos))], at),
        ExprKind::Time { hour, minute, second } => node(
            "time",
            [("hour", Value::from(*hour)), ("min", Value::from(*minute)), ("sec", Value::from(*second))],
            at,
        ),
        ExprKind::DateTime(iso) => node("date_time", [("iso", text(iso))], at),
        ExprKind::Regex(src) => node("regex", [("src", text(src))], at),
        ExprKind::Var(name) => node("var", [("name", text(name))], at),
        ExprKind::Item => node("var", [("name", text(ITEM)), ("implicit", Value::Bool(true))], at),
        _ => compound(e),
    }
}

fn compound(e: &Expr) -> Value {
    let at = e.span;
    match &e.kind {
        ExprKind::Interp(parts) => node("str_interp", [("parts", array(parts, part))], at),
        ExprKind::List(items) => node("list", [("items", array(items, expr))], at),
        ExprKind::Record(fields) => node("record", [("fields", array(fields, field))], at),
        ExprKind::Lambda(inner) => lambda(inner, at),
        ExprKind::Unary { op, operand } => {
            let op = match op {
                UnaryOp::Not => "not",
                UnaryOp::Neg => "neg",
            };
            node("unary", [("op", text(op)), ("expr", expr(operand))], at)
        }
        ExprKind::Binary { op, left, right } => {
            node("binary", [("op", text(binary_op(*op))), ("lhs", expr(left)), ("rhs", expr(right))], at)
        }
        ExprKind::Range { start, end, inclusive } => {
            let inclusive = Value::Bool(*inclusive);
            node("range", [("start", expr(start)), ("end", expr(end)), ("inclusive", inclusive)], at)
        }
        ExprKind::Field { .. } | ExprKind::Index { .. } | ExprKind::Method { .. } | ExprKind::Call { .. } => access(e),
        ExprKind::Cmd(call) => node("cmd", [("call", command::call(call))], at),
        ExprKind::LangBlock { tool, text: src } => node("lang_block", [("tool", text(tool)), ("src", text(src))], at),
        _ => construct(e),
    }
}

fn access(e: &Expr) -> Value {
    let at = e.span;
    match &e.kind {
        ExprKind::Field { recv, name, optional } => {
            node("field", [("recv", expr(recv)), ("name", text(&name.name)), ("optional", Value::Bool(*optional))], at)
        }
        ExprKind::Index { recv, index } => node("index", [("recv", expr(recv)), ("index", expr(index))], at),
        ExprKind::Method { recv, name, args: given, optional } => node(
            "method_call",
            [
                ("recv", expr(recv)),
                ("name", text(&name.name)),
                ("args", args(given)),
                ("optional", Value::Bool(*optional)),
            ],
            at,
        ),
        ExprKind::Call { callee, args: given } => match &callee.kind {
            ExprKind::Var(name) => node("fn_call", [("name", text(name)), ("args", args(given))], at),
            _ => node("call", [("callee", expr(callee)), ("args", args(given))], at),
        },
        _ => Value::Null,
    }
}

fn construct(e: &Expr) -> Value {
    let at = e.span;
    match &e.kind {
        ExprKind::Block(inner) => node("block", [("block", block(inner))], at),
        ExprKind::If { cond, then, otherwise } => node(
            "if",
            [("cond", expr(cond)), ("then", block(then)), ("else", optional(otherwise.as_deref(), expr))],
            at,
        ),
        ExprKind::Match { scrutinee, arms } => {
            node("match", [("scrutinee", expr(scrutinee)), ("arms", array(arms, arm))], at)
        }
        ExprKind::Try { body, binder, handler } => node(
            "try",
            [("body", block(body)), ("pattern", optional(binder.as_ref(), bind)), ("handler", block(handler))],
            at,
        ),
        ExprKind::Catch { expr: inner, binder, handler } => node(
            "catch",
            [
                ("expr", expr(inner)),
                ("binder", optional(binder.as_ref(), |binder| text(&binder.name))),
                ("handler", expr(handler)),
            ],
            at,
        ),
        ExprKind::With { cwd, env, reef, body } => node(
            "with",
            [
                ("cwd", optional(cwd.as_deref(), expr)),
                ("env", optional(env.as_deref(), expr)),
                ("reef", optional(reef.as_deref(), expr)),
                ("body", block(body)),
            ],
            at,
        ),
        ExprKind::Spawn(body) => node("spawn", [("body", block(body))], at),
        _ => Value::Null,
    }
}

fn part(part: &InterpPart) -> Value {
    match part {
        InterpPart::Lit(literal) => object!({ "kind": "lit", "text": text(literal) }),
        InterpPart::Hole(hole) => object!({ "kind": "expr", "expr": expr(hole) }),
    }
}

fn field(field: &RecordField) -> Value {
    object!({ "name": text(&field.name.name), "value": expr(&field.value), "span": place(field.span) })
}

fn args(args: &Args) -> Value {
    let named = array(
        &args.named,
        |arg| object!({ "name": text(&arg.name.name), "value": expr(&arg.value), "span": place(arg.span) }),
    );
    object!({ "pos": array(&args.pos, expr), "named": named })
}

fn lambda(lambda: &Lambda, at: Span) -> Value {
    let start = Span { end: at.start, ..at };
    let params = match lambda.kind {
        LambdaKind::Item => {
            let item = object!({ "name": ITEM, "ty": Value::Null, "default": Value::Null, "span": place(start) });
            Value::Array(vec![item])
        }
        LambdaKind::Explicit | LambdaKind::Thunk => array(&lambda.params, lambda_param),
    };
    let mut node = node("lambda", [("params", params), ("body", expr(&lambda.body))], at);
    let mark = match lambda.kind {
        LambdaKind::Explicit => return node,
        LambdaKind::Item => "implicit",
        LambdaKind::Thunk => "thunk",
    };
    if let Some(members) = node.as_object_mut() {
        members.insert(mark.to_owned(), Value::Bool(true));
    }
    node
}

/// A parameter that is no name has its pattern beside an empty name.
fn lambda_param(param: &LambdaParam) -> Value {
    let mut members = Map::new();
    let name = match &param.pattern.kind {
        PatternKind::Bind(name) => &**name,
        PatternKind::Wildcard => "_",
        _ => "",
    };
    members.insert("name".to_owned(), text(name));
    members.insert("ty".to_owned(), optional(param.ty.as_ref(), type_expr));
    members.insert("default".to_owned(), Value::Null);
    if name.is_empty() {
        members.insert("pattern".to_owned(), pattern::pattern(&param.pattern));
    }
    members.insert("span".to_owned(), place(param.span));
    Value::Object(members)
}

fn arm(arm: &MatchArm) -> Value {
    object!({
        "patterns": array(&arm.patterns, pattern::pattern),
        "guard": optional(arm.guard.as_ref(), expr),
        "body": expr(&arm.body),
        "span": place(arm.span),
    })
}

fn bind(name: &Ident) -> Value {
    pattern::pattern(&Pattern { kind: PatternKind::Bind(name.name.clone()), span: name.span })
}

pub(super) fn binary_op(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::Div => "div",
        BinaryOp::Rem => "rem",
        BinaryOp::Eq => "eq",
        BinaryOp::Ne => "ne",
        BinaryOp::Lt => "lt",
        BinaryOp::Le => "le",
        BinaryOp::Gt => "gt",
        BinaryOp::Ge => "ge",
        BinaryOp::In => "in",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Coalesce => "coalesce",
    }
}
