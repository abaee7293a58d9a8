//! Commands: words, flags, redirects, and what a head stands for.

mod builtin;
mod external;
mod feed;
mod function;
mod resolve;
mod words;

use shoal_syntax::ast::JoinedKind;
use shoal_value::{Str, Value};

pub(crate) use external::{Found, find_program, on_path};
pub(crate) use feed::{FeedSite, line_bytes};
pub(crate) use function::AliasValue;
pub(crate) use words::{argument_text, flag_text, push_arguments};

/// A command as compiled. The values of its words lie on the stack in the order of the forms, below the closure of its
/// block and above its callee.
pub(crate) struct CommandSite {
    pub(crate) head: Str,
    pub(crate) path: bool,
    pub(crate) forced: bool,
    pub(crate) callee: Callee,
    pub(crate) env: Box<[(Str, ArgForm)]>,
    pub(crate) args: Box<[ArgForm]>,
    pub(crate) redirects: Box<[(RedirectForm, ArgForm)]>,
    pub(crate) block: bool,
    /// Number of values on the stack, without callee and block.
    pub(crate) values: u32,
    pub(crate) language: Option<Language>,
}

impl CommandSite {
    /// A head without words.
    pub(crate) fn bare(head: Str) -> Self {
        Self {
            head,
            path: false,
            forced: false,
            callee: Callee::None,
            env: Box::default(),
            args: Box::default(),
            redirects: Box::default(),
            block: false,
            values: 0,
            language: None,
        }
    }
}

/// Where the binding of a head is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// There is none.
    None,
    /// Maybe a name of the root scope.
    Root(u32),
    /// On the stack.
    Value,
    /// On the stack, null if it is unbound.
    Maybe,
}

/// A block of an interpreter.
#[derive(Clone, Debug)]
pub(crate) struct Language {
    pub(crate) tool: Str,
    pub(crate) text: Str,
}

/// An argument as compiled.
#[derive(Clone, Debug)]
pub(crate) enum ArgForm {
    Word(Str),
    Path(Str),
    Glob(Str),
    Quoted,
    Group,
    Long { name: Str, raw: Str, value: FlagForm },
    Short { letters: Str, raw: Str },
    DashDash,
    Joined { pieces: Box<[PieceForm]>, kind: JoinedKind },
}

/// The value of a long flag as compiled.
#[derive(Clone, Debug)]
pub(crate) enum FlagForm {
    None,
    Next,
    Given(Box<ArgForm>),
}

/// A piece of a joined argument as compiled.
#[derive(Clone, Debug)]
pub(crate) enum PieceForm {
    Bare(Str),
    Value,
}

/// Which way a redirect goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectForm {
    In,
    Out,
    Append,
}

/// An argument with its value.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    /// A bare word, coerced where a type is known. Paths have `~` expanded.
    Plain(Str),
    /// A pattern; literal pieces are escaped.
    Glob(Str),
    /// A quoted or joined text, which is data.
    Text(Str),
    /// A group's value.
    Value(Value),
    Long {
        name: Str,
        raw: Str,
        value: FlagWord,
    },
    Short {
        letters: Str,
        raw: Str,
    },
    DashDash,
}

/// The value of a long flag.
#[derive(Clone, Debug)]
pub(crate) enum FlagWord {
    None,
    Next,
    Given(Box<Word>),
}

/// A command with the values of its words.
pub(crate) struct Invocation<'a> {
    pub(crate) site: &'a CommandSite,
    pub(crate) env: Vec<(Str, Word)>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirects: Vec<(RedirectForm, Value)>,
    pub(crate) block: Option<Value>,
}
