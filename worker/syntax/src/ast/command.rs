//! Commands and their arguments.

use super::{Block, Expr, Ident, Name, Span};

/// A command: a head followed by words.
#[derive(Debug, Clone, PartialEq)]
pub struct CmdCall {
    /// `NAME=value` before the head.
    pub env_prefix: Vec<EnvAssign>,
    /// Written with a leading `^`.
    pub forced: bool,
    /// What is run.
    pub head: Head,
    /// Arguments in order.
    pub args: Vec<Arg>,
    /// Redirects in order.
    pub redirects: Vec<Redirect>,
    /// Written with a trailing `&`.
    pub background: bool,
    /// The trailing block.
    pub block: Option<Block>,
    /// The whole command.
    pub span: Span,
}

/// The head of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// The word as written.
    pub text: Name,
    /// Whether it starts with `/`, `~/`, `./` or `../`, or is `~`.
    pub path: bool,
    /// Where it stands.
    pub span: Span,
}

/// `NAME=value` before a head.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvAssign {
    /// The variable.
    pub name: Ident,
    /// A word, string, group or joined argument.
    pub value: Arg,
    /// Name and value.
    pub span: Span,
}

/// One argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Arg {
    /// What it is.
    pub kind: ArgKind,
    /// Where it stands.
    pub span: Span,
}

/// What an argument is.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgKind {
    /// A plain word.
    Word(Name),
    /// A word that starts with `~/`, `./`, `../` or `/`, or is `~`; `~` is not expanded here.
    Path(Name),
    /// A word with wildcards, as written; `~` is not expanded here.
    Glob(Name),
    /// A string: [`super::ExprKind::Str`] or [`super::ExprKind::Interp`].
    Quoted(Box<Expr>),
    /// Exactly one `( )` group; the expression inside it, whose value itself is the argument.
    Group(Box<Expr>),
    /// `--name`, `--name=value`, `--name=`
    LongFlag {
        /// The name without dashes, as written.
        name: Name,
        /// What a program receives: `--name`, or `--name=` followed by the text of the value.
        raw: Name,
        /// The value.
        value: FlagValue,
    },
    /// `-abc`
    ShortFlags {
        /// `abc`
        letters: Name,
        /// `-abc`
        raw: Name,
    },
    /// `--`
    DashDash,
    /// `-`
    Dash,
    /// Several pieces that touch: the texts together are one argument.
    Joined {
        /// At least two pieces.
        pieces: Vec<Piece>,
        /// How the text is used.
        kind: JoinedKind,
    },
}

/// The value of a long flag.
#[derive(Debug, Clone, PartialEq)]
pub enum FlagValue {
    /// `--name`
    None,
    /// `--name=` with nothing attached: the next argument is the value.
    Next,
    /// `--name=value`: a word, string, group or joined argument.
    Given(Box<Arg>),
}

/// How the text of a joined argument is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinedKind {
    /// A plain word.
    Word,
    /// A path.
    Path,
    /// A pattern: wildcards count in bare pieces only.
    Glob,
    /// A word that starts with `-`.
    Flag,
}

/// One piece of a joined argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Where it stands.
    pub span: Span,
}

/// What a piece is.
#[derive(Debug, Clone, PartialEq)]
pub enum PieceKind {
    /// Bare text.
    Bare(Name),
    /// A string.
    Quoted(Box<Expr>),
    /// The expression inside a `( )` group.
    Group(Box<Expr>),
}

/// A redirect.
#[derive(Debug, Clone, PartialEq)]
pub struct Redirect {
    /// Which way.
    pub kind: RedirectKind,
    /// The file.
    pub target: Arg,
    /// Operator and file.
    pub span: Span,
}

/// Which way a redirect goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// `< file`
    In,
    /// `> file`
    Out,
    /// `>> file`
    Append,
}
