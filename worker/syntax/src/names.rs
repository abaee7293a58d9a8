//! The names a source is read with.

use std::collections::HashSet;

use crate::ast::Name;
use crate::{lex, vocab};

/// The names known before the first statement. They decide whether a line is a command or an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Names of `let`, `var`, `use`: they start expressions.
    pub value: HashSet<Name>,
    /// Names of `fn`, `alias`: they start commands.
    pub command: HashSet<Name>,
    /// A request of a session: `it` and `out` are values, and a first statement may start with `.NAME`.
    pub session: bool,
}

impl Names {
    /// No names, as for a script.
    pub fn script() -> Self {
        Self::default()
    }

    /// The names of a session.
    pub fn session(value: HashSet<Name>, command: HashSet<Name>) -> Self {
        Self { value, command, session: true }
    }
}

/// The name a module is bound to: the stem of its file, if that is an identifier and not reserved.
pub fn module_name(path: &str) -> Option<Name> {
    let file = path.rsplit('/').next()?;
    let stem = file.strip_suffix(".shl").unwrap_or(file);
    (lex::is_name(stem) && !vocab::is_keyword(stem)).then(|| stem.into())
}
