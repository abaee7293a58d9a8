//! What is known of a value without running anything.

use std::sync::Arc;

use shoal_syntax::ast::{Block, CmdCall, FnDecl, Lambda};
use shoal_value::Value;

use crate::registry::Types;
use crate::scope::Root;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One of these types, and no closure, task, stream, glob, channel, command or secret inside.
    Plain(Types),
    /// Holds no such thing, but its type is unknown.
    Data,
    /// A stream made by the program: what pulling it runs is counted where it was made.
    Stream {
        /// Its items hold nothing that runs.
        data: bool,
    },
    /// A task.
    Task,
    /// A channel.
    Channel,
    /// A glob.
    Glob,
    /// Anything.
    Any,
}

impl Kind {
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Plain(a), Self::Plain(b)) => Self::Plain(a.or(b)),
            (Self::Plain(_) | Self::Data, Self::Plain(_) | Self::Data) => Self::Data,
            (Self::Stream { .. }, Self::Stream { .. }) => Self::Stream { data: false },
            _ => Self::Any,
        }
    }

    /// The kind of an item, field or part.
    pub(super) fn item(self) -> Self {
        match self {
            Self::Plain(types) if types == Types::RANGE => Self::Plain(Types::INT),
            Self::Plain(types) if types == Types::STR => Self::Plain(Types::STR),
            Self::Plain(_) | Self::Data => Self::Data,
            Self::Glob => Self::Plain(Types::PATH),
            Self::Stream { data: true } => Self::Data,
            Self::Stream { data: false } | Self::Task | Self::Channel | Self::Any => Self::Any,
        }
    }

    pub(super) fn is_data(self) -> bool {
        matches!(self, Self::Plain(_) | Self::Data)
    }

    /// The kind of a value that is there.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Glob(_) => Self::Glob,
            Value::Task(_) => Self::Task,
            Value::Channel(_) => Self::Channel,
            value if is_data(value) => Self::Plain(Types::of(value)),
            _ => Self::Any,
        }
    }
}

fn is_data(value: &Value) -> bool {
    match value {
        Value::List(list) => list.iter().all(is_data),
        Value::Record(record) => record.values().iter().all(is_data),
        Value::Table(table) => table.rows().iter().all(|row| row.values().iter().all(is_data)),
        Value::Closure(_)
        | Value::Command(_)
        | Value::Stream(_)
        | Value::Task(_)
        | Value::Glob(_)
        | Value::Channel(_)
        | Value::Secret(_) => false,
        _ => true,
    }
}

/// A callable whose body is known.
#[derive(Clone)]
pub(super) enum Body {
    Function(Arc<FnDecl>),
    Lambda(Arc<Lambda>),
    Alias(Arc<CmdCall>),
    Block(Arc<Block>),
    /// A builtin function.
    Builtin(&'static crate::registry::Function),
}

impl Body {
    /// Identity, to see that a body is being analysed already.
    pub(super) fn address(&self) -> usize {
        match self {
            Self::Function(decl) => Arc::as_ptr(decl) as usize,
            Self::Lambda(lambda) => Arc::as_ptr(lambda) as usize,
            Self::Alias(call) => Arc::as_ptr(call) as usize,
            Self::Block(block) => Arc::as_ptr(block) as usize,
            Self::Builtin(row) => std::ptr::from_ref(*row) as usize,
        }
    }
}

/// A callable and where its free names are looked up.
#[derive(Clone)]
pub(super) struct Closure {
    pub(super) body: Body,
    /// Scopes around it, for one written in the program.
    pub(super) scopes: usize,
    /// The root scope it keeps, for one of a module.
    pub(super) root: Option<Arc<Root>>,
}

/// What is known of a value.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) kind: Kind,
    /// The value itself, if it does not depend on a run.
    pub(super) value: Option<Value>,
    pub(super) closure: Option<Closure>,
}

impl Known {
    pub(super) fn kind(kind: Kind) -> Self {
        Self { kind, value: None, closure: None }
    }

    pub(super) fn any() -> Self {
        Self::kind(Kind::Any)
    }

    pub(super) fn data() -> Self {
        Self::kind(Kind::Data)
    }

    pub(super) fn plain(types: Types) -> Self {
        Self::kind(Kind::Plain(types))
    }

    pub(super) fn fixed(value: Value) -> Self {
        Self { kind: Kind::of(&value), value: Some(value), closure: None }
    }

    pub(super) fn text(&self) -> Option<String> {
        match self.value.as_ref()? {
            Value::Str(text) => Some(text.to_string()),
            Value::Path(path) => path.to_str().map(str::to_owned),
            _ => None,
        }
    }

    pub(super) fn join(&self, other: &Self) -> Self {
        Self::kind(self.kind.join(other.kind))
    }
}
