//! Globs and regular expressions.

use std::fmt;
use std::sync::Arc;

use crate::{ErrorValue, PathValue, Str};

/// A file pattern with the directory it was made in. Its matches are found by the evaluator.
#[derive(Clone, Debug)]
pub struct Glob(Arc<GlobBody>);

#[derive(Debug)]
struct GlobBody {
    pattern: Str,
    cwd: PathValue,
    hidden: bool,
    follow: bool,
}

impl Glob {
    /// A pattern made in `cwd`; `hidden` also matches names with a leading dot.
    pub fn new(pattern: impl Into<Str>, cwd: PathValue, hidden: bool) -> Self {
        Self(Arc::new(GlobBody { pattern: pattern.into(), cwd, hidden, follow: false }))
    }

    /// The same glob whose `**` follows symbolic links to directories.
    #[must_use]
    pub fn following(&self, follow: bool) -> Self {
        let GlobBody { pattern, cwd, hidden, .. } = &*self.0;
        Self(Arc::new(GlobBody { pattern: pattern.clone(), cwd: cwd.clone(), hidden: *hidden, follow }))
    }

    /// Pattern text as written.
    pub fn pattern(&self) -> &Str {
        &self.0.pattern
    }

    /// Directory in which it was made.
    pub fn cwd(&self) -> &PathValue {
        &self.0.cwd
    }

    /// Whether names with a leading dot match.
    pub fn hidden(&self) -> bool {
        self.0.hidden
    }

    /// Whether `**` follows symbolic links to directories.
    pub fn follow(&self) -> bool {
        self.0.follow
    }
}

/// A compiled regular expression with its source.
#[derive(Clone)]
pub struct Regex(Arc<regex::Regex>);

impl Regex {
    /// Compiles `src`. Fails with `arg_error` that names the first thing wrong with it.
    pub fn new(src: &str) -> Result<Self, ErrorValue> {
        regex::Regex::new(src).map(|re| Self(Arc::new(re))).map_err(|e| {
            let text = e.to_string();
            let reason = text.lines().last().unwrap_or("").trim_start_matches("error: ").to_owned();
            ErrorValue::arg_error(format!("invalid regex \"{src}\": {reason}"))
        })
    }

    /// Source text.
    pub fn src(&self) -> &str {
        self.0.as_str()
    }

    /// The compiled expression.
    pub fn compiled(&self) -> &regex::Regex {
        &self.0
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "re{:?}", self.src())
    }
}
