//! Reading the JSON form back into a tree. Names are not looked at again: a `cmd` is a command, a `var` a name.

mod command;
mod expr;
mod pattern;
mod stmt;

use serde_json::{Map, Value};

use crate::ast::{Ident, Name, Program, Span};
use crate::nesting::with_stack;
use crate::{MAX_NESTING, ast};

/// Why a JSON value is no tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Where, as member names and indexes: `stmts[0].expr.lhs`.
    pub path: String,
    /// What is expected there.
    pub what: String,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = if self.path.is_empty() { "the tree" } else { &self.path };
        write!(f, "{path}: expected {}", self.what)
    }
}

impl std::error::Error for Malformed {}

type Read<T> = Result<T, Malformed>;

/// The tree of `{stmts: [...]}`.
pub fn program(value: &Value) -> Result<Program, Malformed> {
    let node = Node::of(value, 0)?;
    Ok(Program { stmts: node.list("stmts", stmt::stmt)?, span: node.span() })
}

fn malformed<T>(what: &str) -> Read<T> {
    Err(Malformed { path: String::new(), what: what.to_owned() })
}

/// An object that is being read, and how deep it lies.
#[derive(Clone, Copy)]
struct Node<'v> {
    members: &'v Map<String, Value>,
    depth: usize,
}

/// Levels of objects for a level of nesting: an expression lies in a statement in a block.
const OBJECTS_PER_LEVEL: usize = 4;

impl<'v> Node<'v> {
    fn of(value: &'v Value, depth: usize) -> Read<Self> {
        if depth > MAX_NESTING * OBJECTS_PER_LEVEL {
            return malformed("less nesting");
        }
        match value {
            Value::Object(members) => Ok(Self { members, depth }),
            _ => malformed("an object"),
        }
    }

    /// The member; an absent one is null.
    fn member(&self, name: &str) -> &'v Value {
        self.members.get(name).unwrap_or(&Value::Null)
    }

    fn kind(&self) -> Read<&'v str> {
        self.str("kind")
    }

    fn str(&self, name: &str) -> Read<&'v str> {
        self.member(name).as_str().map_or_else(|| malformed("a string"), Ok).map_err(|error| error.inside(name))
    }

    fn name(&self, name: &str) -> Read<Name> {
        self.str(name).map(Into::into)
    }

    /// A name whose place is not kept apart from its node's.
    fn ident(&self, name: &str) -> Read<Ident> {
        Ok(Ident { name: self.name(name)?, span: self.span() })
    }

    fn flag(&self, name: &str) -> bool {
        self.member(name).as_bool().unwrap_or(false)
    }

    fn int(&self, name: &str) -> Read<i64> {
        self.member(name).as_i64().map_or_else(|| malformed("an int"), Ok).map_err(|error| error.inside(name))
    }

    /// The place; an absent one is empty.
    fn span(&self) -> Span {
        let offset = |name: &str| {
            let offset = self.member("span").get(name).and_then(Value::as_u64).unwrap_or(0);
            u32::try_from(offset).unwrap_or(u32::MAX)
        };
        Span { start: offset("start"), end: offset("end") }
    }

    fn child<T>(&self, name: &str, read: impl FnOnce(Node<'v>) -> Read<T>) -> Read<T> {
        let depth = self.depth + 1;
        let child = Node::of(self.member(name), depth);
        child.and_then(|child| with_stack(|| read(child))).map_err(|error| error.inside(name))
    }

    fn optional<T>(&self, name: &str, read: impl FnOnce(Node<'v>) -> Read<T>) -> Read<Option<T>> {
        if self.member(name).is_null() { Ok(None) } else { self.child(name, read).map(Some) }
    }

    /// A list of objects; an absent one is empty.
    fn list<T>(&self, name: &str, read: impl Fn(Node<'v>) -> Read<T>) -> Read<Vec<T>> {
        let items = match self.member(name) {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            _ => return malformed("a list").map_err(|error: Malformed| error.inside(name)),
        };
        let mut out = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let item = Node::of(item, self.depth + 1).and_then(|item| with_stack(|| read(item)));
            out.push(item.map_err(|error| error.inside(&format!("{name}[{index}]")))?);
        }
        Ok(out)
    }

    fn block(&self, name: &str) -> Read<ast::Block> {
        self.child(name, |block| Ok(ast::Block { stmts: block.list("stmts", stmt::stmt)?, span: block.span() }))
    }

    fn expr(&self, name: &str) -> Read<Box<ast::Expr>> {
        self.child(name, expr::expr).map(Box::new)
    }

    fn optional_expr(&self, name: &str) -> Read<Option<Box<ast::Expr>>> {
        Ok(self.optional(name, expr::expr)?.map(Box::new))
    }
}

impl Malformed {
    fn inside(mut self, member: &str) -> Self {
        let join = if self.path.is_empty() { "" } else { "." };
        self.path = format!("{member}{join}{}", self.path);
        self
    }
}
