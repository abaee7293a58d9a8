//! Which names start an expression and which start a command.

use std::collections::HashMap;

use crate::Names;
use crate::ast::{Name, Pattern};
use crate::vocab;

/// What kind of name something is for the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// `let`, `var`, parameters, loop, catch and pattern names, `use`: starts an expression.
    Value,
    /// `fn`, `alias`: starts a command.
    Command,
}

/// The scopes around the place that is being read, over the names the host gave.
pub(super) struct Scopes<'n> {
    host: &'n Names,
    /// Declarations of all open scopes, outermost first; a later one shadows.
    declared: Vec<(Name, Bound)>,
    /// How many declarations there were when each scope was opened.
    opened: Vec<usize>,
    /// The newest declaration of every name, to look names up without walking the scopes.
    newest: HashMap<Name, Vec<Bound>>,
}

impl<'n> Scopes<'n> {
    pub(super) fn new(host: &'n Names) -> Self {
        Self { host, declared: Vec::new(), opened: Vec::new(), newest: HashMap::new() }
    }

    pub(super) fn open(&mut self) {
        self.opened.push(self.declared.len());
    }

    pub(super) fn close(&mut self) {
        let len = self.opened.pop().unwrap_or(0);
        self.forget(len);
    }

    /// A place to go back to with [`Scopes::reset`].
    pub(super) fn mark(&self) -> (usize, usize) {
        (self.opened.len(), self.declared.len())
    }

    pub(super) fn reset(&mut self, (scopes, names): (usize, usize)) {
        self.opened.truncate(scopes);
        self.forget(names);
    }

    pub(super) fn declare(&mut self, name: &Name, bound: Bound) {
        self.declared.push((name.clone(), bound));
        self.newest.entry(name.clone()).or_default().push(bound);
    }

    pub(super) fn declare_pattern(&mut self, pattern: &Pattern) {
        pattern.each_name(&mut |name, _| self.declare(name, Bound::Value));
    }

    /// What a program, the host or the language binds the name to.
    pub(super) fn bound(&self, name: &str) -> Option<Bound> {
        if let Some(bound) = self.newest.get(name).and_then(|kinds| kinds.last()) {
            return Some(*bound);
        }
        if self.host.value.contains(name) || (self.host.session && is_transcript(name)) {
            return Some(Bound::Value);
        }
        self.host.command.contains(name).then_some(Bound::Command)
    }

    /// Whether the name starts an expression.
    pub(super) fn is_value(&self, name: &str) -> bool {
        match self.bound(name) {
            Some(bound) => bound == Bound::Value,
            None => vocab::VALUE_NAMES.contains(&name),
        }
    }

    /// Whether the name is `it` or `out` where they mean nothing.
    pub(super) fn is_missing_transcript(&self, name: &str) -> bool {
        is_transcript(name) && self.bound(name).is_none()
    }

    pub(super) fn session(&self) -> bool {
        self.host.session
    }

    fn forget(&mut self, len: usize) {
        for (name, _) in self.declared.drain(len..) {
            if let Some(kinds) = self.newest.get_mut(&name) {
                kinds.pop();
            }
        }
    }
}

fn is_transcript(name: &str) -> bool {
    matches!(name, "it" | "out")
}
