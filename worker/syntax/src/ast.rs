//! The tree of a program. Every node has the half-open byte range of the source it was read from.
//!
//! Names are not resolved here: a [`ExprKind::Var`] may be a binding, a namespace or a command, decided when it is
//! compiled or evaluated. What the tree does fix is whether something is a command ([`ExprKind::Cmd`]) or an expression.

use std::ops::Range;
use std::sync::Arc;

mod command;
mod pattern;
mod stmt;
mod types;

pub use command::{
    Arg, ArgKind, CmdCall, EnvAssign, FlagValue, Head, JoinedKind, Piece, PieceKind, Redirect, RedirectKind,
};
pub use pattern::{FieldPattern, Pattern, PatternKind, RestPattern};
pub use stmt::{AssignOp, Block, FnDecl, Param, Program, RestParam, Stmt, StmtKind, Target};
pub use types::{TypeExpr, TypeName};

/// A shared name or text.
pub type Name = Arc<str>;

/// A half-open byte range of the source text. Sources are at most 16 MiB, so 32 bits are enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of `start..end`; offsets beyond 32 bits are clamped.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(end) }
    }

    /// The span as a range for slicing the source.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The source text of the span; empty if it does not lie in `src`.
    pub fn text(self, src: &str) -> &str {
        src.get(self.range()).unwrap_or("")
    }
}

/// A name with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Ident {
    /// The text.
    pub name: Name,
    /// Where it stands.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An integer literal.
    Int(i64),
    /// A float literal.
    Float(f64),
    /// A string without holes, escapes resolved and dedented.
    Str(Name),
    /// A size literal in bytes.
    Size(u64),
    /// A duration literal in nanoseconds.
    Duration(i64),
    /// A time of day.
    Time {
        /// 0 to 23.
        hour: u8,
        /// 0 to 59.
        minute: u8,
        /// 0 to 59.
        second: u8,
    },
    /// The text of `t"..."`, not yet read as a datetime (a bad one is an evaluation error).
    DateTime(Name),
    /// The pattern of `re"..."`, not yet compiled (a bad one is an evaluation error).
    Regex(Name),
    /// A string with holes.
    Interp(Vec<InterpPart>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{a: 1, b}`; a shorthand field has a [`ExprKind::Var`] value with the span of its name.
    Record(Vec<RecordField>),
    /// `a..b`, `a..=b`
    Range {
        /// First number.
        start: Box<Expr>,
        /// The end.
        end: Box<Expr>,
        /// Whether the end belongs to the range.
        inclusive: bool,
    },
    /// A lone name.
    Var(Name),
    /// The implicit item: the argument of the nearest enclosing [`LambdaKind::Item`] lambda.
    Item,
    /// `recv.name`, `recv?.name`
    Field {
        /// The receiver.
        recv: Box<Expr>,
        /// The field.
        name: Ident,
        /// Written `?.`.
        optional: bool,
    },
    /// `recv[index]`
    Index {
        /// The receiver.
        recv: Box<Expr>,
        /// The index.
        index: Box<Expr>,
    },
    /// `recv.name(args)`, `recv.name { }`
    Method {
        /// The receiver.
        recv: Box<Expr>,
        /// The method.
        name: Ident,
        /// Its arguments.
        args: Args,
        /// Written `?.`.
        optional: bool,
    },
    /// `callee(args)`; the callee of a call by name is a [`ExprKind::Var`].
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// Its arguments.
        args: Args,
    },
    /// A lambda, a trailing block, or an argument with an implicit item.
    Lambda(Arc<Lambda>),
    /// `!x`, `-x`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `a + b` and the rest of the operator table but ranges.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `( ... )`; holds a [`ExprKind::Cmd`] when a command was written inside.
    Group(Box<Expr>),
    /// `{ ... }` as an expression.
    Block(Block),
    /// `if cond { } else ...`
    If {
        /// The condition.
        cond: Box<Expr>,
        /// The block for true.
        then: Block,
        /// A [`ExprKind::Block`] or a further [`ExprKind::If`].
        otherwise: Option<Box<Expr>>,
    },
    /// `match scrutinee { arms }`
    Match {
        /// The value that is matched.
        scrutinee: Box<Expr>,
        /// The arms in order.
        arms: Vec<MatchArm>,
    },
    /// `try { } catch name { }`; `catch _` has no binder.
    Try {
        /// The body.
        body: Block,
        /// The name the error is bound to.
        binder: Option<Ident>,
        /// The handler.
        handler: Block,
    },
    /// `expr catch [name] handler`
    Catch {
        /// What may fail.
        expr: Box<Expr>,
        /// The name the error is bound to.
        binder: Option<Ident>,
        /// The handler.
        handler: Box<Expr>,
    },
    /// `with cwd: ..., env: ..., reef: ... { }`
    With {
        /// The directory.
        cwd: Option<Box<Expr>>,
        /// Variables of the environment.
        env: Option<Box<Expr>>,
        /// Versions of tools.
        reef: Option<Box<Expr>>,
        /// The body.
        body: Block,
    },
    /// `spawn { }`
    Spawn(Block),
    /// A command.
    Cmd(Box<CmdCall>),
    /// `sh { ... }`, `python'''...'''`
    LangBlock {
        /// The interpreter's name.
        tool: Name,
        /// The program, dedented and trimmed.
        text: Name,
    },
}

/// One part of a string with holes.
#[derive(Debug, Clone, PartialEq)]
pub enum InterpPart {
    /// Literal text, escapes resolved and dedented.
    Lit(Name),
    /// A hole; holds a [`ExprKind::Cmd`] when a command was written inside.
    Hole(Expr),
}

/// One field of a record literal.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordField {
    /// The key.
    pub name: Ident,
    /// The value.
    pub value: Expr,
    /// Written as a bare name.
    pub shorthand: bool,
    /// Key and value.
    pub span: Span,
}

/// Arguments of a call. A trailing block is the last positional one, a [`LambdaKind::Thunk`] lambda.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Args {
    /// Positional arguments in order. In the argument of `.feed(` a bare [`ExprKind::Cmd`] may stand.
    pub pos: Vec<Expr>,
    /// Named arguments in order.
    pub named: Vec<NamedArg>,
    /// From `(` to `)` or the end of the trailing block.
    pub span: Span,
}

/// A named argument.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedArg {
    /// The parameter it is for.
    pub name: Ident,
    /// The value.
    pub value: Expr,
    /// Name and value.
    pub span: Span,
}

/// A lambda. Its place is the span of its expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Lambda {
    /// How it was written, and whether surplus arguments are ignored.
    pub kind: LambdaKind,
    /// Parameters; empty for [`LambdaKind::Thunk`] and [`LambdaKind::Item`].
    pub params: Vec<LambdaParam>,
    /// The body.
    pub body: Expr,
}

/// How a lambda was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LambdaKind {
    /// `x => body`, `(a, b) => body`
    Explicit,
    /// A trailing block of a call: no parameters, surplus arguments are ignored.
    Thunk,
    /// A positional argument with an implicit item: one parameter, read by [`ExprKind::Item`].
    Item,
}

/// A parameter of a lambda. Its pattern is a name, a list pattern or a record pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct LambdaParam {
    /// What the argument is bound to.
    pub pattern: Pattern,
    /// The annotation; only on names.
    pub ty: Option<TypeExpr>,
    /// Pattern and annotation.
    pub span: Span,
}

/// An arm of `match`. All patterns bind the same names.
#[derive(Debug, Clone, PartialEq)]
pub struct MatchArm {
    /// The alternatives, at least one.
    pub patterns: Vec<Pattern>,
    /// `if guard`
    pub guard: Option<Expr>,
    /// The value of the arm.
    pub body: Expr,
    /// The arm.
    pub span: Span,
}

/// A prefix operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `-`
    Neg,
}

/// An infix operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `in`
    In,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `??`
    Coalesce,
}

impl BinaryOp {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::In => "in",
            Self::And => "&&",
            Self::Or => "||",
            Self::Coalesce => "??",
        }
    }
}

impl Expr {
    /// An expression of a kind at a place.
    pub fn new(kind: ExprKind, span: Span) -> Self {
        Self { kind, span }
    }

    /// The expression without the parentheses around it.
    pub fn ungrouped(&self) -> &Self {
        let mut inner = self;
        while let ExprKind::Group(next) = &inner.kind {
            inner = next;
        }
        inner
    }
}
