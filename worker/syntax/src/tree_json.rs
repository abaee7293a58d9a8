//! The tree as JSON, version 2: the form that clients see and that plans and journal rows store.
//!
//! Every node with alternatives is an object tagged by `kind`. Parentheses have no node. What the vocabulary has no kind
//! for is written with further members and kinds, which decoders accept: `implicit` and `thunk` of a lambda, `call` with
//! a callee that is no name, and `joined` arguments.

mod command;
mod expr;
mod pattern;
mod read;
mod stmt;

use serde_json::Value;

use crate::ast::{Program, Span};

pub use read::{Malformed, program as from_json};

/// A JSON object of the given members. Unlike `json!` it moves the values: copying them at each level would make the
/// work quadratic in the depth, and recursive.
macro_rules! object {
    ({ $($name:literal: $value:expr),* $(,)? }) => {{
        let mut members = serde_json::Map::new();
        $(members.insert($name.to_owned(), serde_json::Value::from($value));)*
        serde_json::Value::Object(members)
    }};
}
use object;

/// The version of the vocabulary.
pub const AST_VERSION: u32 = 2;

/// `{stmts: [...]}`
pub fn to_json(program: &Program) -> Value {
    object!({ "stmts": stmt::list(&program.stmts) })
}

/// An object with a kind, its members and its place.
fn node<const N: usize>(kind: &str, members: [(&str, Value); N], span: Span) -> Value {
    let mut object = serde_json::Map::with_capacity(N + 2);
    object.insert("kind".to_owned(), kind.into());
    object.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
    object.insert("span".to_owned(), place(span));
    Value::Object(object)
}

fn place(span: Span) -> Value {
    object!({ "start": span.start, "end": span.end })
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn array<T>(items: &[T], write: impl Fn(&T) -> Value) -> Value {
    Value::Array(items.iter().map(write).collect())
}

fn optional<T>(item: Option<&T>, write: impl Fn(&T) -> Value) -> Value {
    item.map_or(Value::Null, write)
}
