//! Patterns.

use super::stmt::type_expr;
use super::{Node, Read, malformed};
use crate::ast::{ExprKind, FieldPattern, Ident, Pattern, PatternKind, RestPattern};

pub(super) fn pattern(node: Node<'_>) -> Read<Pattern> {
    let span = node.span();
    let kind = match node.kind()? {
        "wildcard" => PatternKind::Wildcard,
        "bind" => PatternKind::Bind(node.name("name")?),
        "lit" => {
            let literal = node.expr("expr")?;
            match literal.kind {
                ExprKind::Regex(src) => PatternKind::Regex(src),
                _ => PatternKind::Literal(literal),
            }
        }
        "range" => {
            PatternKind::Range { start: node.int("start")?, end: node.int("end")?, inclusive: node.flag("inclusive") }
        }
        "type" => {
            let binder = if node.member("name").is_null() { None } else { Some(node.ident("name")?) };
            PatternKind::Type { ty: node.child("ty", type_expr)?.name, binder }
        }
        "record" => PatternKind::Record(node.list("fields", field)?),
        "list" => {
            let rest = match node.member("rest").as_str() {
                None => None,
                Some("_") => Some(RestPattern { name: None, span }),
                Some(name) => Some(RestPattern { name: Some(Ident { name: name.into(), span }), span }),
            };
            PatternKind::List { items: node.list("items", pattern)?, rest }
        }
        _ => return malformed("a kind of pattern").map_err(|error: super::Malformed| error.inside("kind")),
    };
    Ok(Pattern { kind, span })
}

fn field(node: Node<'_>) -> Read<FieldPattern> {
    Ok(FieldPattern { name: node.ident("name")?, pattern: node.optional("pattern", pattern)?, span: node.span() })
}
