//! Notation for the tables of this folder, and short access to arguments that binding has already checked.

use shoal_value::{ErrorValue, Regex, Str, Value};

use crate::registry::{Args, Flag, Param, Types};

/// Something that can be called.
pub(crate) const FUNCTION: Types = Types::CLOSURE.or(Types::COMMAND);
/// A text or a regex.
pub(crate) const PATTERN: Types = Types::STR.or(Types::REGEX);
/// A text or a path.
pub(crate) const PATH_LIKE: Types = Types::STR.or(Types::PATH);

/// A parameter that must be given.
pub(crate) const fn need(name: &'static str, types: Types) -> Param {
    Param::required(name, types)
}

/// A parameter that may be left out.
pub(crate) const fn optional(name: &'static str, types: Types) -> Param {
    Param::optional(name, types)
}

/// All positional arguments that are left.
pub(crate) const fn rest(name: &'static str, types: Types) -> Param {
    Param::rest(name, types)
}

/// Writes a table of methods, one per row with its documentation above it:
///
/// ```text
/// /// What it does.
/// ///
/// /// shoal> "shoal".upper()
/// /// "SHOAL"
/// upper: STR, [], Plain(Types::STR), Pure, |recv, _| ...;
/// ```
///
/// The columns are name, receivers, parameters, kind of the result, effects, code. `Pure` stands for no effects and code
/// that gets no evaluator and can only fail with an error; `Text` for the same of a str, which it gets where it lies.
macro_rules! methods {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $on:expr, [$($param:expr),* $(,)?], $gives:expr, $touches:ident, $run:expr;
    )*) => {
        &[$($crate::registry::Method {
            name: $crate::methods::rows::plain(stringify!($name)),
            on: $on,
            params: &[$($param),*],
            gives: $crate::methods::rows::kind!($gives),
            touches: $crate::methods::rows::touches_of!($touches),
            doc: concat!($($doc, "\n"),*),
            surplus_hint: $crate::methods::rows::surplus_hint(stringify!($name)),
            of_text: $crate::methods::rows::of_text!($touches, $run),
            run: $crate::methods::rows::run_of!($touches, $run),
        }),*]
    };
}
pub(crate) use methods;

/// Writes a table of functions, like [`methods`] without receivers.
macro_rules! functions {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: [$($param:expr),* $(,)?], $gives:expr, $touches:ident, $run:expr;
    )*) => {
        &[$($crate::registry::Function {
            name: $crate::methods::rows::plain(stringify!($name)),
            params: &[$($param),*],
            gives: $crate::methods::rows::kind!($gives),
            touches: $crate::methods::rows::touches_of!($touches),
            doc: concat!($($doc, "\n"),*),
            run: $crate::methods::rows::function_of!($touches, $run),
        }),*]
    };
}
pub(crate) use functions;

/// Writes a table of commands, like [`methods`]: name and synopsis, then flags, what words become, the number of arguments,
/// whether the value comes in an `Outcome` or `Bare`, kind of the result, effects, code.
macro_rules! commands {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $synopsis:literal: [$($flag:expr),* $(,)?], $words:ident, $arity:expr, $wrap:ident, $gives:expr,
            $touches:ident, $run:expr;
    )*) => {
        &[$($crate::registry::Command {
            name: stringify!($name),
            flags: &[$($flag),*],
            words: $crate::registry::Words::$words,
            arity: $arity,
            outcome: matches!($crate::methods::rows::Wrap::$wrap, $crate::methods::rows::Wrap::Outcome),
            synopsis: $synopsis,
            gives: $crate::methods::rows::kind!($gives),
            touches: $crate::registry::Touches::$touches,
            doc: concat!($($doc, "\n"),*),
            run: $run,
        }),*]
    };
}
pub(crate) use commands;

/// How the value of a command comes back.
pub(crate) enum Wrap {
    /// As the `out` of an outcome.
    Outcome,
    /// As it is.
    Bare,
}

/// No upper limit on the number of arguments.
pub(crate) const MANY: usize = usize::MAX;

/// A flag that is on or off.
pub(crate) const fn switch(long: &'static str, short: &'static str) -> Flag {
    Flag { long, short, value: None }
}

/// A flag with a value.
pub(crate) const fn setting(long: &'static str, types: Types) -> Flag {
    Flag { long, short: "", value: Some(types) }
}

/// A kind of result, written without its path.
macro_rules! kind {
    ($gives:expr) => {{
        #[allow(unused_imports, reason = "a row names one kind")]
        use $crate::registry::Gives::*;
        $gives
    }};
}
pub(crate) use kind;

macro_rules! touches_of {
    (Pure) => {
        $crate::registry::Touches::Nothing
    };
    (Text) => {
        $crate::registry::Touches::Nothing
    };
    ($touches:ident) => {
        $crate::registry::Touches::$touches
    };
}
pub(crate) use touches_of;

macro_rules! of_text {
    (Text, $run:expr) => {
        Some(|text, slot| {
            let run: $crate::methods::rows::TextMethod = $run;
            *slot = run(text)?;
            Ok(())
        })
    };
    ($touches:ident, $run:expr) => {
        None
    };
}
pub(crate) use of_text;

macro_rules! run_of {
    (Text, $run:expr) => {
        |_, recv, _| {
            let run: $crate::methods::rows::TextMethod = $run;
            Ok(run($crate::methods::text::text(&recv)?)?)
        }
    };
    (Pure, $run:expr) => {
        |_, recv, args| {
            let run: $crate::methods::rows::PureMethod = $run;
            Ok(run(recv, args)?)
        }
    };
    ($touches:ident, $run:expr) => {
        $run
    };
}
pub(crate) use run_of;

macro_rules! function_of {
    (Pure, $run:expr) => {
        |_, args| {
            let run: $crate::methods::rows::PureFunction = $run;
            Ok(run(args)?)
        }
    };
    ($touches:ident, $run:expr) => {
        $run
    };
}
pub(crate) use function_of;

/// Code of a method that only computes.
pub(crate) type PureMethod = fn(Value, Args) -> Result<Value, ErrorValue>;

/// The same of a str.
pub(crate) type TextMethod = fn(&str) -> Result<Value, ErrorValue>;

/// Code of a function that only computes.
pub(crate) type PureFunction = fn(Args) -> Result<Value, ErrorValue>;

/// A name without the `r#` that a reserved word of Rust needs.
pub(crate) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// What to write instead of an argument that programs expect a method to take.
pub(crate) const fn surplus_hint(name: &'static str) -> &'static str {
    match name.as_bytes() {
        b"sum" => "compute on each item first: `.map(f).sum()`",
        b"min" => "compute on each item first: `.map(f).min()`, or take the first of `.sort_by(f)`",
        b"max" => "compute on each item first: `.map(f).max()`, or take the last of `.sort_by(f)`",
        _ => "",
    }
}

/// Access to arguments whose presence and type binding has checked. What was not given reads as empty, zero or null.
pub(crate) trait Checked {
    /// A str.
    fn str_at(&self, at: usize) -> &str;
    /// An int.
    fn int_at(&self, at: usize) -> i64;
    /// A count; `type_error` if it is negative.
    fn count_at(&self, at: usize) -> Result<usize, ErrorValue>;
    /// Any value.
    fn value_at(&self, at: usize) -> &Value;
    /// A regex.
    fn regex_at(&self, at: usize) -> Option<&Regex>;
}

impl Checked for Args {
    fn str_at(&self, at: usize) -> &str {
        self.text(at).map_or("", |text| text)
    }

    fn int_at(&self, at: usize) -> i64 {
        self.int(at).unwrap_or(0)
    }

    fn count_at(&self, at: usize) -> Result<usize, ErrorValue> {
        Ok(self.count(at)?.unwrap_or(0))
    }

    fn value_at(&self, at: usize) -> &Value {
        self.peek(at).unwrap_or(&Value::Null)
    }

    fn regex_at(&self, at: usize) -> Option<&Regex> {
        match self.peek(at) {
            Some(Value::Regex(re)) => Some(re),
            _ => None,
        }
    }
}

/// Texts of a rest parameter of type str.
pub(crate) fn texts(values: Vec<Value>) -> Vec<Str> {
    values
        .into_iter()
        .filter_map(|value| match value {
            Value::Str(text) => Some(text),
            _ => None,
        })
        .collect()
}
