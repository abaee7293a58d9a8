//! Builtin commands, functions and namespaces.

use crate::registry::{Command, Function, Namespace};

/// Command tables of all families.
pub(crate) static COMMANDS: &[&[Command]] = &[];

/// Function tables of all families.
pub(crate) static FUNCTIONS: &[&[Function]] = &[];

/// Namespaces.
pub(crate) static NAMESPACES: &[&Namespace] = &[];
