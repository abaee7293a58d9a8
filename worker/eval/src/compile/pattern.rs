//! Patterns.

use shoal_syntax::ast::{self, ExprKind, Name, PatternKind};
use shoal_value::{Regex, Value};

use super::{Compiler, named};
use crate::code::{Op, Pattern, Target};
use crate::scope::BindingKind;

impl Compiler {
    /// Index of a pattern whose names are declared in the scope at hand.
    pub(super) fn pattern(&mut self, pattern: &ast::Pattern, kind: BindingKind) -> u32 {
        let compiled = self.pattern_tree(pattern, kind);
        let f = self.f();
        f.tables.patterns.push(compiled);
        f.tables.patterns.len() as u32 - 1
    }

    /// Index of alternatives.
    pub(super) fn alternatives(&mut self, patterns: &[ast::Pattern]) -> u32 {
        if let [pattern] = patterns {
            return self.pattern(pattern, BindingKind::Let);
        }
        let compiled = patterns.iter().map(|pattern| self.pattern_tree(pattern, BindingKind::Let)).collect();
        let f = self.f();
        f.tables.patterns.push(Pattern::Either(compiled));
        f.tables.patterns.len() as u32 - 1
    }

    fn pattern_tree(&mut self, pattern: &ast::Pattern, kind: BindingKind) -> Pattern {
        match &pattern.kind {
            PatternKind::Wildcard => Pattern::Any,
            PatternKind::Bind(name) => Pattern::Bind(self.target(name, kind)),
            PatternKind::Literal(literal) => self.literal_pattern(literal),
            PatternKind::Regex(src) => match Regex::new(src) {
                Ok(regex) => Pattern::Regex(regex),
                Err(error) => {
                    self.raise(error);
                    Pattern::Any
                }
            },
            PatternKind::Range { start, end, inclusive } => {
                Pattern::Range { start: *start, end: *end, inclusive: *inclusive }
            }
            PatternKind::Type { ty, binder } => {
                let target = binder.as_ref().map(|binder| self.target(&binder.name, kind));
                Pattern::Type(named(*ty), target)
            }
            PatternKind::Record(fields) => {
                let fields = fields.iter().map(|field| {
                    let inner = match &field.pattern {
                        Some(pattern) => self.pattern_tree(pattern, kind),
                        None => Pattern::Bind(self.target(&field.name.name, kind)),
                    };
                    (field.name.name.clone(), inner)
                });
                Pattern::Record(fields.collect())
            }
            PatternKind::List { items, rest } => {
                let items = items.iter().map(|item| self.pattern_tree(item, kind)).collect();
                let rest = rest.as_ref().map(|rest| rest.name.as_ref().map(|name| self.target(&name.name, kind)));
                Pattern::List { items, rest }
            }
        }
    }

    fn literal_pattern(&mut self, literal: &ast::Expr) -> Pattern {
        let literal = literal.ungrouped();
        if let ExprKind::Unary { op: ast::UnaryOp::Neg, operand } = &literal.kind
            && let Some(Ok(value)) = self.literal(operand)
            && let Ok(value) = shoal_value::ops::negate(&value)
        {
            return Pattern::Literal(value);
        }
        match self.literal(literal) {
            Some(Ok(value)) => Pattern::Literal(value),
            Some(Err(error)) => {
                self.raise(error);
                Pattern::Literal(Value::Null)
            }
            None => Pattern::Literal(Value::Null),
        }
    }

    fn target(&mut self, name: &Name, kind: BindingKind) -> Target {
        if self.at_root() {
            self.options.known.insert(name.clone());
            return Target::Root(self.name(name), kind);
        }
        Target::Local(self.declare(name, kind))
    }

    /// Emits an `Op::Match` against the value in `scrutinee`; the jump is to be landed where it fails.
    pub(super) fn match_arm(&mut self, scrutinee: u32, patterns: &[ast::Pattern]) -> usize {
        for pattern in patterns {
            self.announce_names(pattern, BindingKind::Let);
        }
        let at = self.alternatives(patterns);
        self.emit(Op::Local(scrutinee));
        self.emit(Op::Match(at, 0))
    }
}
