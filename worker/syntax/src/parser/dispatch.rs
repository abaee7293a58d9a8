//! Is it a command or an expression? Decided from the text at a place and the names that are bound.

use super::Parser;
use crate::lex;
use crate::vocab;

/// How a statement starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// `let`, `for`, ...
    Keyword,
    /// `name op value`, `env.NAME op value`
    Assignment,
    /// `assert cond`
    Assert,
    Command,
    Expression,
}

impl Parser<'_> {
    /// The reading of the statement that starts at `at`.
    pub(super) fn statement_start(&mut self, at: usize) -> Start {
        if self.is_path_head(at) {
            return Start::Command;
        }
        let end = lex::ident_end(self.src, at);
        if end == at {
            return if self.byte(at) == b'^' { Start::Command } else { Start::Expression };
        }
        let word = &self.src[at..end];
        if self.is_tagged(word, end) {
            return Start::Expression;
        }
        match word {
            "let" | "var" | "fn" | "alias" | "use" | "export" | "return" | "break" | "continue" | "for" | "while" => {
                Start::Keyword
            }
            _ if vocab::is_keyword(word) || self.is_lang_block(word, end) => Start::Expression,
            _ if self.is_env_prefix(at) => Start::Command,
            "env" if self.is_env_assignment(end) => Start::Assignment,
            _ if self.assignment_op(end).is_some() => Start::Assignment,
            _ => self.name_start(word, end),
        }
    }

    /// The reading of a statement that starts with the unreserved name `word`, which ends at `end`.
    fn name_start(&mut self, word: &str, end: usize) -> Start {
        if self.is_glued_access(end) || self.scopes.is_value(word) || self.is_arrow(end) {
            return Start::Expression;
        }
        if self.scopes.is_missing_transcript(word) {
            return Start::Expression;
        }
        let blank = matches!(self.byte(end), b' ' | b'\t');
        if word == "assert" && blank && self.scopes.bound(word).is_none() && self.has_more_on_line(end) {
            return Start::Assert;
        }
        if self.is_lone_namespace(word, end) { Start::Expression } else { Start::Command }
    }

    /// Whether a command starts at `at`, inside `( )`, as right operand of `&&` or `||`, or as argument of `.feed(`.
    pub(super) fn command_starts(&mut self, at: usize) -> bool {
        if self.byte(at) == b'^' || self.is_path_head(at) {
            return true;
        }
        let end = lex::ident_end(self.src, at);
        let word = &self.src[at..end];
        let literal = self.is_tagged(word, end);
        if word.is_empty() || literal || vocab::is_keyword(word) || self.is_lang_block(word, end) {
            return false;
        }
        if self.is_env_prefix(at) {
            return true;
        }
        !(self.is_glued_access(end)
            || self.is_arrow(end)
            || self.is_lone_namespace(word, end)
            || self.scopes.is_value(word)
            || self.scopes.is_missing_transcript(word))
    }

    /// Whether the raw text is a path that can be run: `/`, `~/`, `./`, `../` or `~` alone.
    pub(super) fn is_path_head(&self, at: usize) -> bool {
        let rest = self.rest(at);
        rest.starts_with('~') || ["/", "./", "../"].iter().any(|start| rest.starts_with(start))
    }

    /// Whether an interpreter's name is followed by its program.
    pub(super) fn is_lang_block(&mut self, word: &str, end: usize) -> bool {
        if !vocab::is_interpreter(word) {
            return false;
        }
        let next = self.skip(end, false);
        self.byte(next) == b'{' || self.byte(end) == b'\''
    }

    /// `re"..."`, `t"..."`
    fn is_tagged(&self, word: &str, end: usize) -> bool {
        matches!(word, "re" | "t") && self.byte(end) == b'"'
    }

    /// `. ?. ( [` directly after a name.
    fn is_glued_access(&self, end: usize) -> bool {
        matches!(self.byte(end), b'.' | b'(' | b'[') || self.rest(end).starts_with("?.")
    }

    fn is_arrow(&mut self, end: usize) -> bool {
        let next = self.skip(end, false);
        self.rest(next).starts_with("=>")
    }

    /// A namespace name with nothing after it.
    fn is_lone_namespace(&mut self, word: &str, end: usize) -> bool {
        vocab::is_namespace(word) && self.scopes.bound(word).is_none() && !self.has_more_on_line(end)
    }

    fn has_more_on_line(&mut self, end: usize) -> bool {
        let next = self.skip(end, false);
        !matches!(self.byte(next), 0 | b'\n' | b';' | b'}' | b')')
    }

    /// The assignment operator after a target that ends at `end`.
    pub(super) fn assignment_op(&mut self, end: usize) -> Option<&'static str> {
        let next = self.skip(end, false);
        let rest = self.rest(next);
        if rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>") {
            return Some("=");
        }
        ["+=", "-=", "*=", "/="].into_iter().find(|op| rest.starts_with(op))
    }

    fn is_env_assignment(&mut self, end: usize) -> bool {
        if self.byte(end) != b'.' || self.scopes.bound("env").is_some() {
            return false;
        }
        let field_end = lex::ident_end(self.src, end + 1);
        field_end > end + 1 && self.assignment_op(field_end).is_some()
    }

    /// `NAME=value`, then blank space, then another `NAME=value` or something that can be a head.
    pub(super) fn is_env_prefix(&mut self, at: usize) -> bool {
        let mut at = at;
        loop {
            let name_end = lex::ident_end(self.src, at);
            let rest = self.rest(name_end);
            if name_end == at || !rest.starts_with('=') || rest.starts_with("==") || rest.starts_with("=>") {
                return false;
            }
            let value_end = self.raw_argument_end(name_end + 1);
            let next = self.skip(value_end, self.cx.newlines);
            if value_end == name_end + 1 || next == value_end {
                return false;
            }
            let word_end = lex::ident_end(self.src, next);
            if self.byte(next) == b'^' || self.is_path_head(next) {
                return true;
            }
            if word_end == next || vocab::is_keyword(&self.src[next..word_end]) {
                return false;
            }
            if self.byte(word_end) != b'=' {
                return true;
            }
            at = next;
        }
    }

    /// The end of the argument that starts at `at`, without reading what is in it.
    fn raw_argument_end(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            end = match self.byte(end) {
                b'"' | b'\'' => match lex::quoted_end(self.src, end) {
                    Some(close) => close,
                    None => return end,
                },
                b'(' => match lex::balanced_end(self.src, end) {
                    Some(close) => close,
                    None => return end,
                },
                _ if end >= self.src.len() || super::words::ends_word(self.src, end) => return end,
                _ => end + 1,
            };
        }
    }
}
