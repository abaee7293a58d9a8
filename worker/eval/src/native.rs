//! Builtins that are part of the evaluator itself.

use crate::registry::{Command, Function, Method};

/// Method tables.
pub(crate) static METHODS: &[&[Method]] = &[];

/// Function tables.
pub(crate) static FUNCTIONS: &[&[Function]] = &[];

/// Command tables.
pub(crate) static COMMANDS: &[&[Command]] = &[];
