//! Statements, blocks and declarations.

use std::sync::Arc;

use super::{Arg, CmdCall, Expr, Ident, Name, Pattern, Span, TypeExpr};

/// A whole source text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Its statements.
    pub stmts: Vec<Stmt>,
    /// The whole text.
    pub span: Span,
}

/// `{ ... }` with statements.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its statements.
    pub stmts: Vec<Stmt>,
    /// From `{` to `}`.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands.
    pub span: Span,
}

/// What a statement is.
#[derive(Debug, Clone, PartialEq)]
pub enum StmtKind {
    /// `let`, `var`, with `export` or without.
    Let {
        /// A name, `_`, a list pattern or a record pattern.
        pattern: Pattern,
        /// The annotation; only on a name.
        ty: Option<TypeExpr>,
        /// The value.
        init: Expr,
        /// `var`
        mutable: bool,
        /// `export`
        exported: bool,
    },
    /// `fn`
    Fn(Arc<FnDecl>),
    /// `alias name = command`
    Alias {
        /// The name.
        name: Ident,
        /// The stored call.
        target: Arc<CmdCall>,
    },
    /// `use path [as name]`
    Use {
        /// The path: a word, path, string or group.
        path: Arg,
        /// The name to bind instead of the file's stem.
        alias: Option<Ident>,
    },
    /// `target op value`
    Assign {
        /// What is assigned.
        target: Target,
        /// Which way.
        op: AssignOp,
        /// The right side.
        value: Expr,
    },
    /// `return [value]`
    Return(Option<Expr>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `for pattern in iter { }`
    For {
        /// A name, `_`, a list pattern or a record pattern.
        pattern: Pattern,
        /// What is gone through.
        iter: Expr,
        /// The body.
        body: Block,
    },
    /// `while cond { }`
    While {
        /// The condition.
        cond: Expr,
        /// The body.
        body: Block,
    },
    /// `assert cond [msg]`; `assert(cond, msg)` is a call.
    Assert {
        /// The condition; its span gives the text of the error.
        cond: Expr,
        /// The message.
        msg: Option<Expr>,
    },
    /// An expression or a command.
    Expr(Expr),
}

/// What can be assigned.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A variable.
    Name(Ident),
    /// `env.NAME`
    Env(Ident),
}

/// An assignment operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=`
    Sub,
    /// `*=`
    Mul,
    /// `/=`
    Div,
}

impl AssignOp {
    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Set => "=",
            Self::Add => "+=",
            Self::Sub => "-=",
            Self::Mul => "*=",
            Self::Div => "/=",
        }
    }
}

/// A function.
#[derive(Debug, Clone, PartialEq)]
pub struct FnDecl {
    /// Its name.
    pub name: Ident,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// `...name`
    pub rest: Option<RestParam>,
    /// `-> type`
    pub ret: Option<TypeExpr>,
    /// The body.
    pub body: Block,
    /// The comment lines directly above, without `#` and one space.
    pub doc: Option<Name>,
    /// `export`
    pub exported: bool,
    /// From `fn` to the end of the body.
    pub span: Span,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: Ident,
    /// The annotation.
    pub ty: Option<TypeExpr>,
    /// The value when no argument is given.
    pub default: Option<Expr>,
    /// The parameter.
    pub span: Span,
}

/// A rest parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct RestParam {
    /// Its name.
    pub name: Ident,
    /// The annotation, of the items or of the whole list.
    pub ty: Option<TypeExpr>,
    /// From `...` to the end.
    pub span: Span,
}
