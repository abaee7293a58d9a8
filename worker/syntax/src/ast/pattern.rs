//! Patterns of `match`, `let`, `for` and lambda parameters.

use super::{Expr, Ident, Name, Span, TypeName};

/// A pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// What it is.
    pub kind: PatternKind,
    /// Where it stands.
    pub span: Span,
}

/// What a pattern is.
#[derive(Debug, Clone, PartialEq)]
pub enum PatternKind {
    /// `_`
    Wildcard,
    /// A lone name.
    Bind(Name),
    /// A literal, matched by `==`: null, bool, int, float, str, size, duration, time or datetime; signs are folded in.
    Literal(Box<Expr>),
    /// `re"..."`
    Regex(Name),
    /// `1..9`, `1..=9`
    Range {
        /// First number.
        start: i64,
        /// The end.
        end: i64,
        /// Whether the end belongs to the range.
        inclusive: bool,
    },
    /// `int n`, `int _`
    Type {
        /// The type that is tested.
        ty: TypeName,
        /// The name the value is bound to; none for `_`.
        binder: Option<Ident>,
    },
    /// `{a, b: pattern}`
    Record(Vec<FieldPattern>),
    /// `[a, b, ...rest]`
    List {
        /// The first items.
        items: Vec<Pattern>,
        /// `...rest`; without it the length is exact.
        rest: Option<RestPattern>,
    },
}

/// A field of a record pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldPattern {
    /// The key.
    pub name: Ident,
    /// The pattern of its value; without one the key itself is bound.
    pub pattern: Option<Pattern>,
    /// The field.
    pub span: Span,
}

/// `...rest`, `..._`
#[derive(Debug, Clone, PartialEq)]
pub struct RestPattern {
    /// The name; none for `_`.
    pub name: Option<Ident>,
    /// From `...` to the name.
    pub span: Span,
}

impl Pattern {
    /// Calls `found` with every name the pattern binds, in source order.
    pub fn each_name(&self, found: &mut impl FnMut(&Name, Span)) {
        match &self.kind {
            PatternKind::Bind(name) => found(name, self.span),
            PatternKind::Type { binder: Some(name), .. } => found(&name.name, name.span),
            PatternKind::Record(fields) => {
                for field in fields {
                    match &field.pattern {
                        Some(pattern) => pattern.each_name(found),
                        None => found(&field.name.name, field.name.span),
                    }
                }
            }
            PatternKind::List { items, rest } => {
                for item in items {
                    item.each_name(found);
                }
                if let Some(name) = rest.as_ref().and_then(|rest| rest.name.as_ref()) {
                    found(&name.name, name.span);
                }
            }
            PatternKind::Wildcard
            | PatternKind::Literal(_)
            | PatternKind::Regex(_)
            | PatternKind::Range { .. }
            | PatternKind::Type { binder: None, .. } => {}
        }
    }
}
