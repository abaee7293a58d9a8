//! Type annotations.

use super::Span;

/// An annotation, `list<int>?`.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeExpr {
    /// The type.
    pub name: TypeName,
    /// Its arguments.
    pub args: Vec<TypeExpr>,
    /// Written with `?`: null is accepted.
    pub optional: bool,
    /// The annotation.
    pub span: Span,
}

macro_rules! type_names {
    ($($variant:ident = $text:literal),* $(,)?) => {
        /// The name of a type, as in annotations, type patterns and error texts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum TypeName {
            $(#[doc = concat!("`", $text, "`")] $variant),*
        }

        impl TypeName {
            /// Every name.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// As it is written.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }
    };
}

type_names! {
    Any = "any", Null = "null", Bool = "bool", Int = "int", Float = "float", Str = "str", Path = "path", Glob = "glob",
    Regex = "regex", Size = "size", Duration = "duration", DateTime = "datetime", Time = "time", Bytes = "bytes",
    List = "list", Record = "record", Table = "table", Range = "range", Stream = "stream", Channel = "channel",
    Error = "error", Outcome = "outcome", Task = "task", Closure = "closure", Command = "command", Secret = "secret",
}

impl TypeName {
    /// The type of that name.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| name.as_str() == text)
    }
}

impl std::fmt::Display for TypeExpr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name.as_str())?;
        for (i, arg) in self.args.iter().enumerate() {
            write!(f, "{}{arg}", if i == 0 { "<" } else { ", " })?;
        }
        if !self.args.is_empty() {
            f.write_str(">")?;
        }
        if self.optional { f.write_str("?") } else { Ok(()) }
    }
}
