//! Errors of the language: what `catch` binds and what every operation of this crate fails with.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::{Bytes, Outcome, Str, code};

/// A place in the submitted source: byte offsets, and the 1-based line and column of the start (0 if not known).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Byte offset of the first byte.
    pub start: u32,
    /// Byte offset after the last byte.
    pub end: u32,
    /// Line of `start`, counted from 1; 0 if not known.
    pub line: u32,
    /// Column of `start` in Unicode scalars, counted from 1; 0 if not known.
    pub col: u32,
}

/// What an [`ErrorValue`] holds.
#[derive(Clone, Debug)]
pub struct ErrorBody {
    /// Stable code, one of [`code::ALL`] or the program's own `[a-z][a-z0-9_]*`.
    pub code: Str,
    /// One sentence: what is wrong, and with what.
    pub msg: Str,
    /// What to do instead.
    pub hint: Option<Str>,
    /// Where in the source; the innermost place wins.
    pub span: Option<Span>,
    /// Standard error of the failed command.
    pub stderr: Option<Bytes>,
    /// Standard output of the failed command.
    pub stdout: Option<Bytes>,
    /// Exit status of the failed command.
    pub status: Option<i64>,
    /// The failed command itself.
    pub outcome: Option<Outcome>,
}

/// An error as a value. Cloning shares it; the `with` methods copy only when it is shared.
#[derive(Clone, Debug)]
pub struct ErrorValue(Arc<ErrorBody>);

impl ErrorValue {
    /// An error with this code and message and nothing else.
    pub fn new(code: impl Into<Str>, msg: impl Into<Str>) -> Self {
        Self(Arc::new(ErrorBody {
            code: code.into(),
            msg: msg.into(),
            hint: None,
            span: None,
            stderr: None,
            stdout: None,
            status: None,
            outcome: None,
        }))
    }

    /// Code `type_error`.
    pub fn type_error(msg: impl Into<Str>) -> Self {
        Self::new(code::TYPE_ERROR, msg)
    }

    /// Code `arg_error`.
    pub fn arg_error(msg: impl Into<Str>) -> Self {
        Self::new(code::ARG_ERROR, msg)
    }

    /// Code `field_missing`.
    pub fn field_missing(msg: impl Into<Str>) -> Self {
        Self::new(code::FIELD_MISSING, msg)
    }

    /// Code `overflow`.
    pub fn overflow(msg: impl Into<Str>) -> Self {
        Self::new(code::OVERFLOW, msg)
    }

    /// Code `too_large`.
    pub fn too_large(msg: impl Into<Str>) -> Self {
        Self::new(code::TOO_LARGE, msg)
    }

    /// Code `div_zero`, with the one message it has.
    pub fn div_zero() -> Self {
        Self::new(code::DIV_ZERO, "division by zero")
    }

    /// With this hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<Str>) -> Self {
        self.with(|body| body.hint = Some(hint.into()))
    }

    /// With this span, unless it has one already: the innermost place wins.
    #[must_use]
    pub fn or_span(self, span: Span) -> Self {
        if self.span.is_some() { self } else { self.with(|body| body.span = Some(span)) }
    }

    /// With any change to its members.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut ErrorBody)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Levels of containers below and including this error.
    pub(crate) fn depth(&self) -> usize {
        1 + self.outcome.as_ref().map_or(0, Outcome::depth)
    }
}

impl Deref for ErrorValue {
    type Target = ErrorBody;

    fn deref(&self) -> &ErrorBody {
        &self.0
    }
}

impl fmt::Display for ErrorValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.msg)
    }
}

impl std::error::Error for ErrorValue {}
