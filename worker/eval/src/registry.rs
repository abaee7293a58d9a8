//! How builtins are registered: static tables, one row per method, field, function, namespace or command.
//!
//! A row holds everything there is to know about a builtin: its name, parameters, documentation with transcript
//! examples, effects, the kind of its result, and the function that runs it. Binding of arguments is done once, here, from
//! the row's parameters; `docs/builtins.md` and the effect derivation read the same rows.

mod args;
mod lookup;
mod rows;
mod types;

pub use args::{Args, Given};
pub use lookup::{MethodRow, Registry, standard};
pub use rows::{
    Command, CommandArgs, Done, Field, Flag, Function, Gives, Method, Namespace, Need, OfText, Param, Touches, Words,
};
pub use types::Types;
