//! The value type and what all values have in common.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::{
    Alias, Bytes, Callable, DateTime, ErrorValue, Glob, List, MAX_DEPTH, Outcome, Range, Record, Regex, StreamSource,
    Table, TaskHandle, TimeOfDay,
};

/// Shared text.
pub type Str = Arc<str>;

/// Any value of the language. Immutable; cloning shares the storage. The names of the variants are the names of the types.
#[derive(Clone)]
pub enum Value {
    /// Absence.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// Unicode text.
    Str(Str),
    /// A path of the operating system.
    Path(PathValue),
    /// A file pattern.
    Glob(Glob),
    /// A regular expression.
    Regex(Regex),
    /// An amount of bytes.
    Size(u64),
    /// A signed span of time in nanoseconds.
    Duration(i64),
    /// An instant with a zone.
    DateTime(DateTime),
    /// A time of day.
    Time(TimeOfDay),
    /// Bytes.
    Bytes(Bytes),
    /// Ordered values.
    List(List),
    /// Ordered string keys to values.
    Record(Record),
    /// Ordered records, drawn as columns.
    Table(Table),
    /// A range of ints.
    Range(Arc<Range>),
    /// A single-use source.
    Stream(Arc<dyn StreamSource>),
    /// A named channel of the session.
    Channel(Str),
    /// A caught error.
    Error(ErrorValue),
    /// The result of a command.
    Outcome(Outcome),
    /// A background computation.
    Task(Arc<dyn TaskHandle>),
    /// A function, lambda or builtin function.
    Closure(Arc<dyn Callable>),
    /// An alias.
    Command(Arc<dyn Alias>),
    /// Named material that is never shown.
    Secret(Str),
}

impl Value {
    /// A str.
    pub fn str(text: impl Into<Str>) -> Self {
        Self::Str(text.into())
    }

    /// A list. Fails with `too_large` if an item is nested too deep.
    pub fn list(items: Vec<Value>) -> Result<Self, ErrorValue> {
        List::new(items).map(Self::List)
    }

    /// A record. Fails with `too_large` if a value is nested too deep.
    pub fn record<K: Into<Str>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Result<Self, ErrorValue> {
        Record::new(pairs).map(Self::Record)
    }

    /// Name of its type, as used in annotations, patterns and messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Path(_) => "path",
            Self::Glob(_) => "glob",
            Self::Regex(_) => "regex",
            Self::Size(_) => "size",
            Self::Duration(_) => "duration",
            Self::DateTime(_) => "datetime",
            Self::Time(_) => "time",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Record(_) => "record",
            Self::Table(_) => "table",
            Self::Range(_) => "range",
            Self::Stream(_) => "stream",
            Self::Channel(_) => "channel",
            Self::Error(_) => "error",
            Self::Outcome(_) => "outcome",
            Self::Task(_) => "task",
            Self::Closure(_) => "closure",
            Self::Command(_) => "command",
            Self::Secret(_) => "secret",
        }
    }

    /// Levels of containers: 0 for a scalar or a live handle, 1 for a list of scalars.
    pub fn depth(&self) -> usize {
        match self {
            Self::List(list) => list.depth(),
            Self::Record(record) => record.depth(),
            Self::Table(table) => table.depth(),
            Self::Error(error) => error.depth(),
            Self::Outcome(outcome) => outcome.depth(),
            _ => 0,
        }
    }

    /// The text, if it is a str.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// Refuses `depth` beyond [`MAX_DEPTH`] with `too_large`.
pub(crate) fn check_depth(depth: usize) -> Result<usize, ErrorValue> {
    if depth <= MAX_DEPTH {
        return Ok(depth);
    }
    Err(ErrorValue::too_large(format!("value is nested deeper than {MAX_DEPTH} levels")))
}

/// Shown for debugging only: programs see `render`.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())?;
        match self {
            Self::Bool(v) => write!(f, "({v})"),
            Self::Int(v) => write!(f, "({v})"),
            Self::Float(v) => write!(f, "({v:?})"),
            Self::Str(v) => write!(f, "({v:?})"),
            Self::Path(v) => write!(f, "({:?})", v.display()),
            Self::Size(v) => write!(f, "({v})"),
            Self::Duration(v) => write!(f, "({v})"),
            Self::DateTime(v) => write!(f, "({})", **v),
            Self::Time(v) => write!(f, "({v:?})"),
            Self::Bytes(v) => write!(f, "({v:?})"),
            Self::List(v) => f.debug_list().entries(v.iter()).finish(),
            Self::Record(v) => f.debug_map().entries(v.iter()).finish(),
            Self::Table(v) => write!(f, "({:?})", v.rows()),
            Self::Range(v) => write!(f, "({v:?})"),
            Self::Error(v) => write!(f, "({v})"),
            Self::Channel(v) | Self::Secret(v) => write!(f, "({v})"),
            _ => Ok(()),
        }
    }
}

/// A path of the operating system: bytes that need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathValue(Arc<[u8]>);

impl PathValue {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its text, with what is not UTF-8 replaced.
    pub fn display(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Its text, if it is UTF-8.
    pub fn to_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }
}

impl fmt::Debug for PathValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.display())
    }
}

impl From<&str> for PathValue {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for PathValue {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<&[u8]> for PathValue {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for PathValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

value_from! {
    bool => Bool, i64 => Int, f64 => Float, &str => Str, String => Str, Str => Str, PathValue => Path, Glob => Glob,
    Regex => Regex, DateTime => DateTime, TimeOfDay => Time, Bytes => Bytes, List => List, Record => Record,
    Table => Table, Range => Range, ErrorValue => Error, Outcome => Outcome,
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
