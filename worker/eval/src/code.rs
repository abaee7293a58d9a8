//! Compiled programs: a list of operations per function, for a machine with an operand stack and resolved variables.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use shoal_syntax::ast::{self, CmdCall, FnDecl};
use shoal_value::ops::BinaryOp;
use shoal_value::record::Shape;
use shoal_value::{Regex, Str, Value, error::Span};

use crate::command::{CommandSite, FeedSite};
use crate::registry::MethodRow;
use crate::scope::BindingKind;
use crate::types::Type;
use crate::vm::Formula;

/// One operation. Numbers are indices into the tables of the [`Code`] or [`Unit`], or targets of jumps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Nop,
    Const(u32),
    Int(i32),
    Null,
    Bool(bool),
    Pop,
    Dup,

    /// Pushes a local variable.
    Local(u32),
    SetLocal(u32),
    UpdateLocal(u32, BinaryOp),
    /// `Int`, `UpdateLocal`.
    UpdateLocalInt(BinaryOp, u16, i32),
    /// `Local` (the second), `UpdateLocal` (the first).
    UpdateLocals(BinaryOp, u16, u16),
    /// Makes the variable's cell anew, unbound.
    FreshCell(u32),
    /// Moves a parameter from its local into a new cell.
    BoxLocal(u32, u32),
    Cell(u32),
    SetCell(u32),
    UpdateCell(u32, BinaryOp),
    Captured(u32),
    /// Pushes the variable and jumps if it is bound by now.
    CapturedOr(u32, u32),
    SetCaptured(u32),
    UpdateCaptured(u32, BinaryOp),
    /// Pushes a name of the root scope, or what it means when unbound.
    Root(u32),
    /// The same as the receiver of a field, method or index: also runs a program.
    RootReceiver(u32),
    DeclareRoot(u32, BindingKind),
    AssignRoot(u32),
    UpdateRoot(u32, BinaryOp),

    Binary(BinaryOp),
    BinaryInt(BinaryOp, i32),
    /// `Local`, `Local`, `Binary`.
    BinaryLocals(BinaryOp, u16, u16),
    /// `Local`, `BinaryInt`.
    BinaryLocalInt(BinaryOp, u16, i32),
    /// `Local`, `Local`, a comparison, `JumpUnless`.
    UnlessLocals(BinaryOp, u16, u16, u32),
    /// `Local`, a comparison with an int, `JumpUnless`.
    UnlessLocalInt(BinaryOp, u16, i32, u32),
    /// A comparison with an int, `JumpUnless`.
    UnlessInt(BinaryOp, i32, u32),
    /// `Local`, `Field`.
    LocalField(u32, u32),
    Not,
    Negate,

    Jump(u32),
    /// A jump to an earlier place: counts a step.
    Loop(u32),
    JumpUnless(u32),
    /// Keeps the left operand and jumps if it decides; else drops it (echoing it first if set).
    And(u32, bool),
    Or(u32, bool),
    Coalesce(u32),
    /// Jumps over the rest of a `?.` access if the receiver is null.
    IfNull(u32),

    List(u32),
    Record(u32),
    /// As `Record`, for keys of which one repeats.
    RecordOf(u32),
    Interp(u32),
    Field(u32),
    Index,
    /// `out[n]`: indexes the transcript if `out` is unbound.
    OutIndex(u32),
    Method(u32),
    Call(u32),
    CallName(u32),
    Close(u32),
    CloseAlias(u32),
    /// Pushes a name of the root scope, or null if it is unbound.
    RootPeek(u32),
    Return,

    /// Raises `cmd_failed` if the value on top is a failed outcome.
    Check,
    /// `Check`, `Pop`.
    Settle,
    /// Hands the value on top to the sink and drops it.
    Echo(bool),
    Step,

    Iter,
    /// Opens a loop without items.
    Endless,
    IterNext(u32),
    IterDrop,
    /// Drops operands above the innermost loop, before leaving an expression in its midst.
    Cut,
    Try(u32),
    TryEnd,
    With(WithParts),
    WithEnd,

    /// Drops the top and jumps if it does not match the pattern; binds its names if it does.
    Match(u32, u32),
    Destructure(u32),
    /// Checks the value on top against an annotation.
    Expect(u32),
    /// Jumps if the parameter was given.
    Given(u32, u32),
    SetParam(u32),

    Command(u32),
    Feed(u32),
    Spawn(u32),
    Assert(u32),
    Use(u32),
    Plan(u32),
    EnvVar(u32),
    SetEnv(u32),
    Raise(u32),
    StatementBegin(u32),
    StatementEnd,
}

impl Op {
    /// Where it may jump to.
    pub(crate) fn target(&self) -> Option<u32> {
        match *self {
            Self::Jump(to)
            | Self::Loop(to)
            | Self::JumpUnless(to)
            | Self::UnlessLocals(.., to)
            | Self::UnlessLocalInt(.., to)
            | Self::UnlessInt(.., to)
            | Self::And(to, _)
            | Self::Or(to, _)
            | Self::Coalesce(to)
            | Self::IfNull(to)
            | Self::IterNext(to)
            | Self::Try(to)
            | Self::Match(_, to)
            | Self::Given(_, to)
            | Self::CapturedOr(_, to) => Some(to),
            _ => None,
        }
    }

    /// The same with another target.
    #[must_use]
    pub(crate) fn with_target(self, target: u32) -> Self {
        match self {
            Self::Jump(_) => Self::Jump(target),
            Self::Loop(_) => Self::Loop(target),
            Self::JumpUnless(_) => Self::JumpUnless(target),
            Self::UnlessLocals(op, a, b, _) => Self::UnlessLocals(op, a, b, target),
            Self::UnlessLocalInt(op, a, n, _) => Self::UnlessLocalInt(op, a, n, target),
            Self::UnlessInt(op, n, _) => Self::UnlessInt(op, n, target),
            Self::And(_, echo) => Self::And(target, echo),
            Self::Or(_, echo) => Self::Or(target, echo),
            Self::Coalesce(_) => Self::Coalesce(target),
            Self::IfNull(_) => Self::IfNull(target),
            Self::IterNext(_) => Self::IterNext(target),
            Self::Try(_) => Self::Try(target),
            Self::Match(pattern, _) => Self::Match(pattern, target),
            Self::Given(param, _) => Self::Given(param, target),
            Self::CapturedOr(at, _) => Self::CapturedOr(at, target),
            op => op,
        }
    }
}

/// Parts of a `with` whose values are on the stack, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WithParts {
    pub(crate) cwd: bool,
    pub(crate) env: bool,
    pub(crate) reef: bool,
}

/// Byte range of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// One source text and the names of its root scope.
pub(crate) struct Unit {
    pub(crate) source: Str,
    names: OnceLock<Box<[Str]>>,
    lines: OnceLock<Box<[u32]>>,
}

impl Unit {
    pub(crate) fn new(source: Str) -> Arc<Self> {
        Arc::new(Self { source, names: OnceLock::new(), lines: OnceLock::new() })
    }

    /// Sets the names once the whole text is compiled.
    pub(crate) fn seal(&self, names: Vec<Str>) {
        // A unit is compiled once; a second seal would be of the same text.
        drop(self.names.set(names.into()));
    }

    pub(crate) fn names(&self) -> &[Str] {
        self.names.get().map_or(&[], |names| names)
    }

    /// The place with line and column.
    pub(crate) fn span(&self, place: Place) -> Span {
        let lines = self.lines.get_or_init(|| {
            let starts = self.source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at as u32 + 1);
            std::iter::once(0).chain(starts).collect()
        });
        let line = lines.partition_point(|start| *start <= place.start).max(1);
        let start = lines[line - 1] as usize;
        let column = self.source.get(start..place.start as usize).map_or(0, |text| text.chars().count());
        Span { start: place.start, end: place.end, line: line as u32, col: column as u32 + 1 }
    }

    /// Source text of a place.
    pub(crate) fn text(&self, place: Place) -> &str {
        self.source.get(place.start as usize..place.end as usize).unwrap_or("")
    }
}

/// What a code is the body of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// A program, script, module or sourced file.
    Program,
    /// `fn`.
    Function,
    /// A lambda.
    Lambda,
    /// A trailing block: ignores surplus arguments.
    Thunk,
    /// The body of `spawn`.
    Spawn,
    /// An alias: its call, with words to append.
    Alias,
}

impl CodeKind {
    /// Whether the directory and environment of the session are out of reach in it.
    pub(crate) fn is_function(self) -> bool {
        matches!(self, Self::Function | Self::Lambda | Self::Thunk)
    }
}

/// The tree of a function.
#[derive(Clone)]
pub(crate) enum Tree {
    /// A program, or a body without parameters that only its own program can call.
    None,
    Function(Arc<FnDecl>),
    Lambda(Arc<ast::Lambda>),
    Alias(Arc<CmdCall>),
}

/// The body of a function or program.
pub(crate) struct Code {
    pub(crate) unit: Arc<Unit>,
    pub(crate) kind: CodeKind,
    pub(crate) name: Option<Str>,
    pub(crate) doc: Option<Str>,
    pub(crate) place: Place,
    /// What it was compiled from, for the derivation of effects.
    pub(crate) tree: Tree,
    pub(crate) params: Box<[Parameter]>,
    pub(crate) rest: Option<Rest>,
    pub(crate) ret: Option<Type>,
    pub(crate) ops: Box<[Op]>,
    pub(crate) places: Box<[Place]>,
    pub(crate) locals: u32,
    pub(crate) cells: u32,
    pub(crate) captures: Box<[Capture]>,
    pub(crate) tables: Tables,
    /// Names exported, in order.
    pub(crate) exports: Box<[Str]>,
    /// Whether all parameters are required and unchecked, so that positionals can be bound by moving them.
    pub(crate) simple: bool,
    /// Whether it can run without a frame, as far as is known: cleared when it turns out to need one.
    pub(crate) leaf: AtomicBool,
    /// It as a tree, for the items of collections; made when it is first asked for.
    pub(crate) formula: OnceLock<Option<Arc<Formula>>>,
}

/// What operations refer to.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) consts: Vec<Value>,
    pub(crate) codes: Vec<Arc<Code>>,
    pub(crate) shapes: Vec<Arc<Shape>>,
    pub(crate) names: Vec<Str>,
    pub(crate) methods: Vec<MethodSite>,
    pub(crate) calls: Vec<CallSite>,
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) expects: Vec<(Str, Type)>,
    pub(crate) commands: Vec<Arc<CommandSite>>,
    pub(crate) feeds: Vec<Arc<FeedSite>>,
    pub(crate) raises: Vec<shoal_value::ErrorValue>,
    pub(crate) places: Vec<Place>,
    pub(crate) uses: Vec<UseSite>,
    pub(crate) plans: Vec<PlanSite>,
}

/// A parameter of a function.
#[derive(Clone)]
pub(crate) struct Parameter {
    pub(crate) name: Str,
    pub(crate) ty: Option<Type>,
    pub(crate) has_default: bool,
}

/// The rest parameter of a function; its local comes after those of the parameters.
#[derive(Clone)]
pub(crate) struct Rest {
    pub(crate) name: Str,
    /// Type of its items.
    pub(crate) item: Option<Type>,
}

/// Where a closure takes a captured variable from when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// A cell of the frame that makes it.
    Cell(u32),
    /// A captured variable of that frame's function.
    Captured(u32),
}

/// A method call.
pub(crate) struct MethodSite {
    pub(crate) name: Str,
    pub(crate) row: Option<&'static MethodRow>,
    pub(crate) positional: u32,
    pub(crate) named: Box<[Str]>,
}

/// A call of a value or of a name of the root scope.
pub(crate) struct CallSite {
    /// Index of the name in the unit; unused for a value.
    pub(crate) name: u32,
    pub(crate) positional: u32,
    pub(crate) named: Box<[Str]>,
}

/// `use`.
pub(crate) struct UseSite {
    /// The name it binds, for messages.
    pub(crate) name: Option<Str>,
}

/// `plan`: the program that is not run.
pub(crate) struct PlanSite {
    pub(crate) program: Arc<ast::Program>,
    pub(crate) place: Place,
}

/// A variable a pattern binds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Local(u32),
    Cell(u32),
    Root(u32, BindingKind),
}

/// A pattern.
#[derive(Debug)]
pub(crate) enum Pattern {
    Any,
    Bind(Target),
    Literal(Value),
    Regex(Regex),
    Range { start: i64, end: i64, inclusive: bool },
    Type(crate::registry::Types, Option<Target>),
    Record(Box<[(Str, Pattern)]>),
    List { items: Box<[Pattern]>, rest: Option<Option<Target>> },
    Either(Box<[Pattern]>),
}
