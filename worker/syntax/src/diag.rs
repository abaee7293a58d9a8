//! What the parser has to say about a source text: errors that teach, and notes.

use std::ops::Range;

/// The code of an error of syntax.
pub const PARSE_ERROR: &str = "parse_error";
/// The code of a source text over the size limit.
pub const TOO_LARGE: &str = "too_large";

/// An error. There is one for each mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diag {
    /// The bytes of the source it is about.
    pub at: Range<usize>,
    /// The message: what is wrong.
    pub what: String,
    /// What would be valid there.
    pub valid: Option<String>,
    /// What stands there.
    pub actual: Option<String>,
    /// What to write instead.
    pub hint: Option<String>,
    /// The source is the start of a valid text: an interactive front end may ask for more.
    pub partial: bool,
    /// [`PARSE_ERROR`], or [`TOO_LARGE`] for a source over the size limit.
    pub code: &'static str,
}

impl Diag {
    /// An error with only a place and a message.
    pub fn new(at: Range<usize>, what: impl Into<String>) -> Self {
        Self { at, what: what.into(), valid: None, actual: None, hint: None, partial: false, code: PARSE_ERROR }
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The message with what was expected and found, if it does not say so itself.
    pub fn message(&self) -> String {
        match (&self.valid, &self.actual) {
            (Some(valid), Some(actual)) => format!("{}: expected {valid}, found {actual}", self.what),
            (Some(valid), None) => format!("{}: expected {valid}", self.what),
            (None, _) => self.what.clone(),
        }
    }
}

impl std::fmt::Display for Diag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diag {}

/// A remark about a source that is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The bytes of the source it is about.
    pub at: Range<usize>,
    /// The remark.
    pub text: String,
}

/// The line and column, both from 1, of a byte offset; columns count characters. An offset beyond the text is its end.
pub fn line_col(src: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(src.len());
    while !src.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &src[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let src = "ab\néx\n";
        assert_eq!(line_col(src, 0), (1, 1));
        assert_eq!(line_col(src, 3), (2, 1));
        assert_eq!(line_col(src, 4), (2, 1));
        assert_eq!(line_col(src, 5), (2, 2));
        assert_eq!(line_col(src, 99), (3, 1));
    }

    #[test]
    fn a_message_says_what_was_expected() {
        let diag = Diag { valid: Some("an int".into()), actual: Some("`x`".into()), ..Diag::new(0..1, "bad") };
        assert_eq!(diag.hint("try 1").to_string(), "bad: expected an int, found `x`\nhint: try 1");
    }
}
