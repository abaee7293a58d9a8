//! What to say when something does not fit, and where to take up reading again.

use super::{Parse, Parser, Reject, teach};
use crate::Diag;
use crate::ast::{Expr, ExprKind, Stmt, StmtKind};
use crate::lex::{self, Tok, Token};
use crate::vocab;

/// After this many mistakes the rest is more likely misread than wrong.
const MAX_DIAGS: usize = 20;

impl Parser<'_> {
    /// All statements of the source, and the mistakes found on the way.
    pub(super) fn statements_of_program(&mut self) -> (Vec<Stmt>, Vec<Diag>) {
        let (mut stmts, mut diags): (Vec<Stmt>, Vec<Diag>) = (Vec::new(), Vec::new());
        loop {
            self.skip_terminators();
            let start = self.pos;
            if start >= self.src.len() {
                return (stmts, diags);
            }
            match self.program_statement(stmts.is_empty() && diags.is_empty()) {
                Ok(stmt) => stmts.push(stmt),
                Err(reject) => {
                    let stop = reject.fatal || !self.resume(start, &reject.diag);
                    let diag = self.finished(*reject.diag);
                    let open = diag.partial;
                    let repeated = diags.iter().any(is_block_word) && is_block_word(&diag);
                    if !repeated {
                        diags.push(diag);
                    }
                    if stop || open || diags.len() == MAX_DIAGS {
                        return (stmts, diags);
                    }
                }
            }
        }
    }

    fn program_statement(&mut self, first: bool) -> Parse<Stmt> {
        let start = self.pos;
        let continued = if first && self.scopes.session() { self.continued_result(start) } else { None };
        let stmt = match continued {
            Some(result) => {
                let expr = self.expr_from(result)?;
                Stmt { span: self.span_from(start), kind: StmtKind::Expr(expr) }
            }
            None => self.statement()?,
        };
        let at = self.next_start();
        if self.byte(at) == b'}' {
            return Err(Diag::new(at..at + 1, "unexpected `}`").hint("there is no block to close here").into());
        }
        self.end_of_statement(Some(&stmt))?;
        Ok(stmt)
    }

    /// Goes to the end of the line of the mistake, outside brackets and strings that were opened since `start`.
    /// False if there is no such place.
    fn resume(&mut self, start: usize, diag: &Diag) -> bool {
        let mut at = start;
        let mut open = 0_usize;
        while let Some(&byte) = self.src.as_bytes().get(at) {
            match byte {
                b'\n' | b';' if open == 0 && at >= diag.at.start => break,
                b'"' | b'\'' => {
                    let Some(end) = lex::quoted_end(self.src, at) else { return false };
                    at = end;
                    continue;
                }
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        self.pos = at;
        open == 0
    }

    /// Marks a diagnostic that more text could mend.
    fn finished(&self, mut diag: Diag) -> Diag {
        let at_end = diag.at.start >= self.src.trim_end().len();
        diag.partial |= diag.what.contains("unterminated")
            || diag.what.contains("unbalanced braces")
            || (at_end && diag.what.starts_with("expected"));
        diag
    }

    /// Something else was expected than the next token.
    pub(super) fn unexpected(&mut self, expected: &str) -> Reject {
        let token = match self.peek() {
            Ok(token) => token,
            Err(reject) => return reject,
        };
        if let Some(diag) = self.foreign_token(token) {
            return diag.into();
        }
        let (what, found) = (format!("expected {expected}"), self.shown(token));
        let mut diag = Diag::new(token.start..token.end, format!("{what}, found {found}"));
        diag.hint = self.word_operator_hint(token).or_else(|| self.foreign_operand_hint(token));
        diag.into()
    }

    /// Something else than a word was found among words.
    pub(super) fn unexpected_word(&mut self) -> Reject {
        let at = self.next_start();
        if self.byte(at) == b'|' {
            return teach::no_pipe(at, at + 1).into();
        }
        self.unexpected("an argument")
    }

    /// Tokens that are habits from elsewhere, wherever an operand has just ended.
    fn foreign_token(&self, token: Token) -> Option<Diag> {
        match token.kind {
            Tok::Op("|") => Some(teach::no_pipe(token.start, token.end)),
            Tok::Op("?") => Some(teach::ternary(self.src, token.start)),
            _ => None,
        }
    }

    fn word_operator_hint(&self, token: Token) -> Option<String> {
        let before = self.src[..token.start].trim_end();
        if before.ends_with("not") && !before[..before.len() - 3].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            return Some("the operator is `!`: `!x`".to_owned());
        }
        if token.kind != Tok::Ident {
            return None;
        }
        match self.text(token) {
            "and" => Some("the operator is `&&`".to_owned()),
            "or" => Some("the operator is `||`".to_owned()),
            "not" => Some("the operator is `!`: `!x`".to_owned()),
            _ => None,
        }
    }

    fn shown(&self, token: Token) -> String {
        match token.kind {
            Tok::Newline => "a newline".to_owned(),
            Tok::Eof if self.src.len() == token.start => "the end".to_owned(),
            Tok::Quote(_) => "a string".to_owned(),
            _ => format!("`{}`", self.text(token)),
        }
    }

    /// A statement ended and something follows on its line.
    pub(super) fn two_on_a_line(&mut self, stmt: Option<&Stmt>) -> Reject {
        let token = match self.peek() {
            Ok(token) => token,
            // A path or another word of a command is no token; the message below serves it better.
            Err(reject) if reject.diag.what.starts_with("unexpected character") => {
                let at = self.next_start();
                Token { kind: Tok::Ident, start: at, end: reject.diag.at.end.max(at) }
            }
            Err(reject) => return reject,
        };
        if let Some(diag) = self.foreign_token(token).or_else(|| self.after_block(token)) {
            return diag.into();
        }
        match token.kind {
            Tok::Op(close @ (")" | "]")) => {
                return Diag::new(token.start..token.end, format!("unexpected `{close}`")).into();
            }
            Tok::Op("=" | "+=" | "-=" | "*=" | "/=") if stmt.is_some_and(is_access) => {
                return Diag::new(token.start..token.end, "only a name or `env.NAME` can be assigned")
                    .hint("values are immutable: `x = x.set(\"field\", value)`")
                    .into();
            }
            _ => {}
        }
        let hint = self.separation_hint(stmt, token);
        Diag::new(token.start..token.end, "expected newline or `;` between statements").hint(hint).into()
    }

    fn separation_hint(&self, stmt: Option<&Stmt>, token: Token) -> String {
        if let Some(hint) = self.word_operator_hint(token) {
            return hint;
        }
        let line_end = self.src[token.start..].find(['\n', ';']).map_or(self.src.len(), |len| token.start + len);
        let rest = self.src[token.start..line_end].trim();
        let Some(stmt) = stmt else { return "put them on two lines".to_owned() };
        match &stmt.kind {
            StmtKind::Expr(Expr { kind: ExprKind::Var(name), .. }) => format!(
                "`{name}` is a value here: write `{name}({rest})` to call it, `^{name}` for the command of that name"
            ),
            StmtKind::Expr(expr) if is_word_like(expr) => {
                let text = expr.span.text(self.src);
                format!("for a command write `^{text} {rest}`, or wrap the command in parentheses")
            }
            _ if rest.starts_with("->") => "a lambda is written `x => x + 1`".to_owned(),
            _ if rest.starts_with("=~") => {
                "a text is matched by `.contains(re\"...\")` and `.capture(re\"...\")`".to_owned()
            }
            StmtKind::Expr(expr) if is_words(expr) && expr.span.text(self.src).starts_with('!') => {
                let words = expr.span.text(self.src)[1..].trim_start();
                format!("wrap the command in parentheses: `!({words} {rest})`")
            }
            StmtKind::Let { init, .. } | StmtKind::Assign { value: init, .. } | StmtKind::Return(Some(init))
                if is_words(init) =>
            {
                format!("wrap the command in parentheses: `({} {rest})`", init.span.text(self.src))
            }
            _ => format!("put `{rest}` on a line of its own; wrap a command in parentheses to use its value"),
        }
    }

    /// A block was expected.
    pub(super) fn missing_block(&mut self) -> Reject {
        let at = self.skip(self.pos, true);
        let at = if self.byte(at) == b';' { self.skip(at + 1, true) } else { at };
        let word = &self.src[at..lex::ident_end(self.src, at)];
        if vocab::BLOCK_WORDS.contains(&word) {
            return teach::block_word(word, at).into();
        }
        let line = self.next_start();
        if self.byte(line) == b'\n' && self.byte(at) == b'{' {
            return Diag::new(at..at + 1, "expected `{` on the same line as its head")
                .hint("move the `{` to the end of the line before")
                .into();
        }
        let mut reject = self.unexpected("`{`");
        if self.byte(line) != b'\n' && !reject.diag.what.starts_with("no ") {
            let hint = match self.byte(line) {
                b'=' => "the body is a block: `fn f(x) { x + 1 }`; a lambda is written `x => x + 1`",
                b':' => "what follows goes in braces: `if c { a }`",
                _ => "a command goes in parentheses here: `if (cmd word) { }`",
            };
            reject.diag.hint.get_or_insert_with(|| hint.to_owned());
        }
        reject
    }

    /// Adds to the mistake in a construct's head that a command there needs parentheses, if it looks like one.
    pub(super) fn explain_head(&mut self, mut reject: Reject, start: usize) -> Reject {
        let end = lex::ident_end(self.src, start);
        let line = self.rest(start).lines().next().unwrap_or("");
        let command = line.split('{').next().unwrap_or("").trim();
        let after = command.get(end - start..).unwrap_or("");
        let mut next = after.trim_start().chars();
        let word = match (next.next(), next.next()) {
            (Some('-' | '*' | '/' | '.' | '~'), Some(second)) => !second.is_whitespace(),
            _ => false,
        };
        if !reject.fatal && word && after.starts_with(' ') && self.command_starts(start) {
            reject.diag.hint = Some(format!("a command goes in parentheses here: `({command})`"));
        }
        reject
    }
}

fn is_block_word(diag: &Diag) -> bool {
    diag.what.starts_with("blocks are braces")
}

fn is_access(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Expr(expr) => matches!(expr.kind, ExprKind::Field { .. } | ExprKind::Index { .. }),
        _ => false,
    }
}

/// An expression that could have been meant as the first words of a command, `git` or `ls -l`.
fn is_words(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Binary { left, right, .. } => is_words(left) && is_words(right),
        ExprKind::Unary { operand, .. } => is_words(operand),
        _ => is_word_like(expr),
    }
}

/// An expression that could have been meant as the head of a command, `foo.sh`.
fn is_word_like(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Field { recv, .. } => is_word_like(recv),
        ExprKind::Var(_) => true,
        _ => false,
    }
}
