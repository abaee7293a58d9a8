//! Patterns.

use serde_json::Value;

use super::{array, expr, node, object, optional, place, text};
use crate::ast::{Expr, ExprKind, Pattern, PatternKind};

pub(super) fn pattern(p: &Pattern) -> Value {
    let at = p.span;
    match &p.kind {
        PatternKind::Wildcard => node("wildcard", [], at),
        PatternKind::Bind(name) => node("bind", [("name", text(name))], at),
        PatternKind::Literal(literal) => node("lit", [("expr", expr::expr(literal))], at),
        PatternKind::Regex(src) => {
            let regex = Expr::new(ExprKind::Regex(src.clone()), at);
            node("lit", [("expr", expr::expr(&regex))], at)
        }
        PatternKind::Range { start, end, inclusive } => node(
            "range",
            [("start", Value::from(*start)), ("end", Value::from(*end)), ("inclusive", Value::from(*inclusive))],
            at,
        ),
        PatternKind::Type { ty, binder } => {
            let ty = object!({ "name": ty.as_str(), "args": Value::Array(Vec::new()), "optional": false, "span": place(at) });
            node("type", [("ty", ty), ("name", optional(binder.as_ref(), |name| text(&name.name)))], at)
        }
        PatternKind::Record(fields) => {
            let fields = array(fields, |field| {
                object!({
                    "name": text(&field.name.name),
                    "pattern": optional(field.pattern.as_ref(), pattern),
                    "span": place(field.span),
                })
            });
            node("record", [("fields", fields)], at)
        }
        PatternKind::List { items, rest } => {
            let rest = optional(rest.as_ref(), |rest| text(rest.name.as_ref().map_or("_", |name| &name.name)));
            node("list", [("items", array(items, pattern)), ("rest", rest)], at)
        }
    }
}
