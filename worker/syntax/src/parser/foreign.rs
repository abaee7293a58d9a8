//! Habits of other languages, recognised where they start or where they stop making sense.

use super::names::Bound;
use super::{Parse, Parser, Reject, teach};
use crate::Diag;
use crate::ast::Expr;
use crate::lex::{self, Tok, Token};
use crate::vocab;

impl Parser<'_> {
    /// Statements of other languages, recognised by their first word.
    pub(super) fn foreign_statement(&mut self, start: usize) -> Parse<()> {
        let end = lex::ident_end(self.src, start);
        let word = &self.src[start..end];
        let bound = self.scopes.bound(word);
        if word.is_empty() || bound == Some(Bound::Command) {
            return self.foreign_start(start);
        }
        let is_free = bound.is_none();
        let after = self.skip(end, false);
        let glued = self.byte(end);
        if is_free && vocab::BLOCK_WORDS.contains(&word) && !matches!(glued, b'.' | b'(' | b'=') {
            let ends = matches!(self.byte(after), 0 | b'\n' | b';' | b'}' | b')');
            if ends || matches!(word, "then" | "do" | "elif") {
                return Err(teach::block_word(word, start).into());
            }
        }
        if is_free && matches!(word, "def" | "function" | "func" | "fun") && after > end {
            let name_end = lex::ident_end(self.src, after);
            let next = self.skip(name_end, false);
            if name_end > after && matches!(self.byte(next), b'(' | b'{') {
                return Err(teach::foreign_fn(self.src, start, &self.src[after..name_end]).into());
            }
        }
        if is_free {
            if self.rest(after).starts_with(":= ") {
                return Err(Diag::new(after..after + 2, "no `:=`")
                    .hint(format!("`let {word} = ...`, or `var` for a variable that changes"))
                    .into());
            }
            let line = self.rest(after).lines().next().unwrap_or("").trim_end();
            if word == "case" && line.ends_with(" in") {
                return Err(Diag::new(start..after + line.len(), "no `case`").hint(teach::MATCH_FORM).into());
            }
        }
        for (sign, up) in [("++", true), ("--", false)] {
            let stops = |at: usize| matches!(self.byte(at), 0 | b'\n' | b';' | b'}');
            if self.rest(end).starts_with(sign) && !matches!(word, "g" | "c" | "clang") {
                let next = lex::skip_blank(self.src, end + 2, false, |_, _| {});
                if stops(next) {
                    return Err(teach::increment(word, start, end + 2, up).into());
                }
            }
        }
        Ok(())
    }

    fn foreign_start(&self, start: usize) -> Parse<()> {
        match self.byte(start) {
            b'}' => Err(Diag::new(start..start + 1, "unexpected `}`").hint("there is no block to close here").into()),
            b']' => Err(Diag::new(start..start + 1, "unexpected `]`").into()),
            b'|' => Err(teach::no_pipe(start, start + 1).into()),
            b'.' => teach::dot_command(self.src, start).map_or(Ok(()), |diag| Err(diag.into())),
            _ => Ok(()),
        }
    }

    /// `x++` in an expression.
    pub(super) fn increment(&self, left: &Expr, token: Token) -> Parse<()> {
        let (sign, up) = match token.kind {
            Tok::Op("+") => ("++", true),
            Tok::Op("-") => ("--", false),
            _ => return Ok(()),
        };
        if !self.rest(token.start).starts_with(sign) {
            return Ok(());
        }
        let next = lex::skip_blank(self.src, token.start + 2, false, |_, _| {});
        let ends = next >= self.src.len() || matches!(self.byte(next), b'\n' | b';' | b'}' | b')' | b']' | b',');
        if !up && !ends {
            return Ok(());
        }
        let name = left.span.text(self.src);
        if !ends {
            let what = Diag::new(token.start..token.start + 2, "no increment operator");
            return Err(what.hint("`+` joins strings and lists").into());
        }
        Err(teach::increment(name, token.start, token.start + 2, up).into())
    }

    /// `elif` and its like after the block of an `if`, and other words of blocks after a whole statement.
    pub(super) fn after_block(&self, token: Token) -> Option<Diag> {
        let word = self.text(token);
        let is_block_word = vocab::BLOCK_WORDS.contains(&word) || matches!(word, "elseif" | "elsif");
        is_block_word.then(|| teach::block_word(word, token.start))
    }

    /// What to write where an operand was expected and something of another language stands.
    pub(super) fn foreign_operand_hint(&self, token: Token) -> Option<String> {
        let before = &self.src[..token.start];
        match token.kind {
            Tok::Op("=" | "==") if before.ends_with("==") || before.ends_with("!=") => {
                Some("equality is `==`, its opposite `!=`".to_owned())
            }
            Tok::Ident if matches!(self.text(token), "return" | "break" | "continue") => {
                Some(format!("a statement goes in braces: `{{ {} }}`", self.text(token)))
            }
            _ => None,
        }
    }

    /// The head of a `for` that does not go on with `in`.
    pub(super) fn foreign_for(&mut self) -> Reject {
        let mut reject = self.unexpected("`in`");
        let at = self.next_start();
        let hint = match self.byte(at) {
            b',' => "a pattern takes several values: `for [i, x] in xs.enumerate() { }`",
            b'=' => "numbers are counted by a range: `for i in 0..3 { }`",
            _ => "`for x in xs { }`",
        };
        reject.diag.hint = Some(hint.to_owned());
        reject
    }

    /// Whether `[ ... ]` or `[[ ... ]]` as a test of other shells may start here.
    pub(super) fn test_bracket(&self, at: usize) -> bool {
        let line = self.rest(at).lines().next().unwrap_or("");
        let Some(inside) = line.strip_prefix("[[").or_else(|| line.strip_prefix('[')) else { return false };
        let words: Vec<&str> = inside.split(']').next().unwrap_or("").split_whitespace().collect();
        let flag = |word: &str| {
            let letters = word.strip_prefix('-').unwrap_or("");
            !letters.is_empty() && letters.len() <= 2 && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        };
        inside.starts_with([' ', '\t'])
            && words
                .iter()
                .any(|word| flag(word) || word.contains('$') || matches!(*word, "=" | "==" | "!=" | "=~" | "!"))
    }
}
