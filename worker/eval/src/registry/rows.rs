//! The rows of the tables of builtins.

use shoal_value::{Bytes, ErrorValue, Value, code};

use super::{Args, Types};
use crate::Ctx;
use crate::unwind::Eval;

/// A parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name, as in documentation and named arguments.
    pub name: &'static str,
    /// Types accepted without conversion; others are an error "argument `x`: expected T, found U".
    pub types: Types,
    /// Whether it must be given.
    pub need: Need,
    /// Code of the error for another type.
    pub misfit: &'static str,
}

/// Whether a parameter must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Yes; missing is `arg_error` "NAME requires ..." with this text, or the usual text if it is empty.
    Required(&'static str),
    /// No.
    Optional,
    /// All remaining positionals; must come last.
    Rest,
}

impl Param {
    /// A required parameter.
    pub const fn required(name: &'static str, types: Types) -> Self {
        Self { name, types, need: Need::Required(""), misfit: code::TYPE_ERROR }
    }

    /// A required parameter; when it is missing the message is "METHOD `requires`", such as "requires a prefix".
    pub const fn required_as(name: &'static str, types: Types, requires: &'static str) -> Self {
        Self { name, types, need: Need::Required(requires), misfit: code::TYPE_ERROR }
    }

    /// A required interval of a stream: a value of another type is `arg_error`, as an interval that is not positive is.
    pub const fn interval(name: &'static str, types: Types) -> Self {
        Self { name, types, need: Need::Required(""), misfit: code::ARG_ERROR }
    }

    /// An optional parameter.
    pub const fn optional(name: &'static str, types: Types) -> Self {
        Self { name, types, need: Need::Optional, misfit: code::TYPE_ERROR }
    }

    /// The rest of the positionals.
    pub const fn rest(name: &'static str, types: Types) -> Self {
        Self { name, types, need: Need::Rest, misfit: code::TYPE_ERROR }
    }
}

/// Effects of a builtin, for derivation. Closures passed to it count as called in every case but `Nothing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touches {
    /// None, and it calls no argument.
    Nothing,
    /// Those of the closures it is given.
    Closures,
    /// The clock.
    Time,
    /// Reads its receiver (a path or glob), or its path arguments; a command without them the working directory.
    Reads,
    /// Writes its path arguments.
    Writes,
    /// Deletes its path arguments.
    Deletes,
    /// Reads all path arguments but the last and writes the last (`cp`).
    Copies,
    /// As `Copies`, and deletes the sources (`mv`).
    Moves,
    /// Writes its last path argument (`ln`).
    Links,
    /// Reads environment variables: those named by its arguments, else all.
    Env,
    /// Reads the variable `PATH`.
    SearchPath,
    /// Changes the session.
    Session,
    /// Reads the journal.
    Journal,
    /// Reads the journal, writes and deletes files.
    Undo,
    /// Reads a resource named by its first argument (`uri`).
    Resource,
    /// Lists resources.
    ResourceList,
    /// As `Resource`, and changes the session.
    Watch,
    /// Anything.
    Opaque,
}

/// Kind of a result, for derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gives {
    /// Always a value of one of these types that holds no closure, task, stream, glob, channel, command or secret.
    Plain(Types),
    /// A value of the receiver's kind: the receiver itself or a part of it.
    Same,
    /// Some item or field of the receiver.
    Item,
    /// A list of the receiver's items.
    Items,
    /// Data of unknown type.
    Data,
    /// Unknown.
    Any,
}

/// A method.
#[derive(Clone, Copy)]
pub struct Method {
    /// Name.
    pub name: &'static str,
    /// Types it works on. Rows of one name must not share a type.
    pub on: Types,
    /// Parameters.
    pub params: &'static [Param],
    /// Result.
    pub gives: Gives,
    /// Effects.
    pub touches: Touches,
    /// Documentation: one sentence, then a transcript (`shoal> ` lines and the inline result under each).
    pub doc: &'static str,
    /// Hint of the error for surplus arguments; empty for none.
    pub surplus_hint: &'static str,
    /// Runs it on a text where it lies, if that is all it needs.
    pub of_text: Option<OfText>,
    /// Runs it on the receiver.
    pub run: fn(&mut Ctx<'_>, Value, Args) -> Eval<Value>,
}

/// Code of a method without parameters or effects on a text: it writes its value where it is to be.
pub type OfText = fn(&str, &mut Value) -> Result<(), ErrorValue>;

impl Method {
    /// A method without parameters or effects that gives data; change what differs with struct update syntax.
    pub const fn new(name: &'static str, on: Types, run: fn(&mut Ctx<'_>, Value, Args) -> Eval<Value>) -> Self {
        Self {
            name,
            on,
            params: &[],
            gives: Gives::Data,
            touches: Touches::Nothing,
            doc: "",
            surplus_hint: "",
            of_text: None,
            run,
        }
    }
}

/// A field of a type other than record, outcome and error. Paths' fields are methods that [`Method`] rows allow as fields
/// by having no required parameter, so they need no row here.
#[derive(Clone, Copy)]
pub struct Field {
    /// Name.
    pub name: &'static str,
    /// Types that have it.
    pub on: Types,
    /// Result.
    pub gives: Gives,
    /// Effects.
    pub touches: Touches,
    /// One sentence.
    pub doc: &'static str,
    /// Reads it.
    pub run: fn(&mut Ctx<'_>, &Value) -> Eval<Value>,
}

/// A builtin function, on its own or in a namespace.
#[derive(Clone, Copy)]
pub struct Function {
    /// Name without the namespace.
    pub name: &'static str,
    /// Parameters.
    pub params: &'static [Param],
    /// Result.
    pub gives: Gives,
    /// Effects.
    pub touches: Touches,
    /// Documentation, as of [`Method::doc`].
    pub doc: &'static str,
    /// Runs it.
    pub run: fn(&mut Ctx<'_>, Args) -> Eval<Value>,
}

/// A namespace: unbound, its name is a record of its functions and constants.
#[derive(Clone, Copy)]
pub struct Namespace {
    /// Name.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Functions in order.
    pub functions: &'static [Function],
    /// Constants in order.
    pub constants: &'static [(&'static str, f64)],
    /// Members known only to the host (`config.KEY`), looked up after the others; a missing one is null.
    pub dynamic: Option<fn(&mut Ctx<'_>, &str) -> Eval<Value>>,
}

/// A flag of a builtin command.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Long name without dashes, with `-` between words.
    pub long: &'static str,
    /// Short letters, such as `rR`; may be empty.
    pub short: &'static str,
    /// Types of its value; `None` for a flag that is on or off.
    pub value: Option<Types>,
}

/// What the words of a builtin command become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    /// Values as they are; globs expand, lists in groups spread to one argument per item.
    Values,
    /// Paths; globs expand, lists spread.
    Paths,
    /// A path first, then values (`head`, `save`).
    PathThenValues,
    /// Durations.
    Durations,
    /// Texts.
    Texts,
}

/// A builtin command.
#[derive(Clone, Copy)]
pub struct Command {
    /// Name.
    pub name: &'static str,
    /// Flags.
    pub flags: &'static [Flag],
    /// What its words become.
    pub words: Words,
    /// Smallest and largest number of arguments after expansion; fewer or more are `arg_error`.
    pub arity: (usize, usize),
    /// Whether the result is an outcome whose `out` is the value; else the value itself.
    pub outcome: bool,
    /// One line: `cp [-r|--recursive] SRC... DST`.
    pub synopsis: &'static str,
    /// Result (inside the outcome).
    pub gives: Gives,
    /// Effects.
    pub touches: Touches,
    /// Documentation, as of [`Method::doc`].
    pub doc: &'static str,
    /// Runs it.
    pub run: fn(&mut Ctx<'_>, CommandArgs) -> Eval<Done>,
}

/// Arguments of a builtin command after expansion and conversion.
#[derive(Clone, Debug, Default)]
pub struct CommandArgs {
    /// Positionals.
    pub args: Vec<Value>,
    /// Flags given: long name and value (`true` for a flag that is on or off).
    pub flags: Vec<(&'static str, Value)>,
    /// Whether some glob word matched nothing.
    pub unmatched: bool,
}

impl CommandArgs {
    /// Whether the flag with this long name is on.
    pub fn on(&self, long: &str) -> bool {
        self.flags.iter().any(|(name, value)| *name == long && matches!(value, Value::Bool(true)))
    }

    /// Value of the flag with this long name.
    pub fn flag(&self, long: &str) -> Option<&Value> {
        self.flags.iter().rev().find(|(name, _)| *name == long).map(|(_, value)| value)
    }
}

/// Result of a builtin command.
#[derive(Clone, Debug)]
pub struct Done {
    /// Value.
    pub out: Value,
    /// Exact standard output where it is not just the value as bytes (`cat`).
    pub stdout: Option<Bytes>,
}

impl From<Value> for Done {
    fn from(out: Value) -> Self {
        Self { out, stdout: None }
    }
}
