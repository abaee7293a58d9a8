//! Commands: environment prefixes, head, arguments, redirects, trailing block.

use super::{Context, Parse, Parser, Reject, teach, words};
use crate::ast::{ArgKind, CmdCall, EnvAssign, Expr, ExprKind, Head, Ident, Redirect, RedirectKind};
use crate::lex;
use crate::vocab;
use crate::{Diag, Note};

impl Parser<'_> {
    /// A command as an expression.
    pub(super) fn command(&mut self) -> Parse<Expr> {
        let call = self.command_call()?;
        let span = call.span;
        Ok(Expr::new(ExprKind::Cmd(Box::new(call)), span))
    }

    pub(super) fn command_call(&mut self) -> Parse<CmdCall> {
        let start = self.next_start();
        let mut env_prefix = Vec::new();
        loop {
            let at = self.next_start();
            if !self.is_env_prefix(at) {
                break;
            }
            env_prefix.push(self.env_assign(at)?);
        }
        let at = self.next_start();
        let forced = self.byte(at) == b'^';
        let head = self.head(at + usize::from(forced))?;
        let mut call = CmdCall {
            env_prefix,
            forced,
            head,
            args: Vec::new(),
            redirects: Vec::new(),
            background: false,
            block: None,
            span: self.span_from(start),
        };
        if !self.nested_command(&mut call)? {
            self.arguments(&mut call)?;
        }
        call.span = self.span_from(start);
        Ok(call)
    }

    fn env_assign(&mut self, at: usize) -> Parse<EnvAssign> {
        let end = lex::ident_end(self.src, at);
        let span = crate::ast::Span::new(at, end);
        let name = Ident { name: self.src[at..end].into(), span };
        self.pos = end + 1;
        let value = self.env_value()?;
        Ok(EnvAssign { name, value, span: self.span_from(at) })
    }

    fn head(&mut self, at: usize) -> Parse<Head> {
        self.pos = at;
        if at >= self.src.len() || words::ends_word(self.src, at) {
            return Err(self.unexpected("a command"));
        }
        let text = self.bare_word(true)?;
        let span = self.span_from(at);
        match self.byte(self.pos) {
            b'{' => Err(teach::no_brace_expansion(self.src, at, self.pos).into()),
            b'(' | b'"' | b'\'' => {
                let hint = match (self.byte(self.pos), &self.src[at..self.pos]) {
                    (b'"' | b'\'', "f" | "r" | "b" | "u") => "strings have no prefix: \"{x}\" has holes, '...' is raw",
                    _ => "for a computed name write `run(name, args...)`",
                };
                Err(Diag::new(at..self.pos + 1, "the name of a command is one plain word").hint(hint).into())
            }
            _ => Ok(Head { path: self.is_path_head(at), text, span }),
        }
    }

    /// `plan cmd ...`: the rest of the line is a command, kept as one group argument.
    fn nested_command(&mut self, call: &mut CmdCall) -> Parse<bool> {
        let taker = vocab::COMMAND_TAKERS.contains(&&*call.head.text);
        if !taker || call.forced || self.scopes.bound(&call.head.text).is_some() {
            return Ok(false);
        }
        let at = self.next_start();
        if !self.command_starts(at) {
            return Ok(false);
        }
        let command = self.nested(Self::command)?;
        call.args.push(words::group_arg(command));
        Ok(true)
    }

    fn arguments(&mut self, call: &mut CmdCall) -> Parse<()> {
        loop {
            let before = self.pos;
            let Some(at) = self.next_argument() else { return Ok(()) };
            match self.byte(at) {
                b'&' => {
                    self.ampersand(at)?;
                    self.pos = at + 1;
                    call.background = true;
                    return self.block_after(call);
                }
                b'{' if self.cx.head => return Ok(()),
                b'{' if at == before => return Err(teach::no_brace_expansion(self.src, at, at).into()),
                b'{' => return self.block_after(call),
                b'|' => return Err(teach::no_pipe(at, at + 1).into()),
                b'<' | b'>' => {
                    let redirect = self.redirect(at)?;
                    call.redirects.push(redirect);
                }
                _ => self.push_argument(call, at)?,
            }
        }
    }

    /// The start of the next argument; none where the command ends.
    fn next_argument(&mut self) -> Option<usize> {
        let at = self.next_start();
        if at >= self.src.len() || matches!(self.byte(at), b'\n' | b';' | b')' | b'}') {
            return None;
        }
        let rest = self.rest(at);
        if rest.starts_with("&&") || rest.starts_with("||") {
            return None;
        }
        let new_line = self.cx.newlines && self.src[self.pos..at].contains('\n');
        if new_line && (self.continues_on_next_line() || self.src[at..lex::ident_end(self.src, at)] == *"catch") {
            return None;
        }
        Some(at)
    }

    fn push_argument(&mut self, call: &mut CmdCall, at: usize) -> Parse<()> {
        let digits = self.rest(at).bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && matches!(self.byte(at + digits), b'>' | b'<') {
            return Err(teach::fd_redirect(self.src, at).into());
        }
        let arg = self.argument(at)?;
        let echoes = matches!(&*call.head.text, "echo" | "apply") && !call.forced;
        if let Some(word) = words::lone_word(&arg)
            && echoes
            && self.scopes.bound(word) == Some(super::names::Bound::Value)
        {
            let text = format!("`{word}` is a variable: write ({word})");
            self.notes.push(Note { at: arg.span.range(), text });
        }
        call.args.push(arg);
        Ok(())
    }

    /// `&` that is no `&&`: puts the command in the background.
    fn ampersand(&self, at: usize) -> Parse<()> {
        if self.byte(at + 1) == b'>' {
            return Err(teach::stream_merge(self.src, at).into());
        }
        Ok(())
    }

    /// The trailing block, if there is one, and the end of the command.
    fn block_after(&mut self, call: &mut CmdCall) -> Parse<()> {
        if self.at_op("{") && !self.cx.head {
            let open = self.next_start();
            let cx = Context { item: false, ..self.cx };
            let block = self.within(cx, |p| p.block(false));
            call.block = Some(block.map_err(|reject| teach::brace_list(self.src, open).map_or(reject, Into::into))?);
            return match self.next_argument() {
                None => Ok(()),
                Some(at) => Err(self.words_after_block(open, at)),
            };
        }
        match self.next_argument() {
            Some(at) if call.background && !(self.cx.head && self.byte(at) == b'{') => {
                Err(teach::words_after_ampersand(self.src, at).into())
            }
            _ => Ok(()),
        }
    }

    fn words_after_block(&self, open: usize, at: usize) -> Reject {
        if self.byte(at) == b'.' && at == self.pos {
            return Diag::new(at..at + 1, "to call a method on a command, wrap the command in parentheses")
                .hint("`(name { ... }).method()`")
                .into();
        }
        teach::no_brace_expansion(self.src, open, open).into()
    }

    fn redirect(&mut self, at: usize) -> Parse<Redirect> {
        if let Some(diag) = teach::foreign_redirect(self.src, at) {
            return Err(diag.into());
        }
        let (kind, len) = match self.byte(at) {
            b'<' => (RedirectKind::In, 1),
            _ if self.byte(at + 1) == b'>' => (RedirectKind::Append, 2),
            _ => (RedirectKind::Out, 1),
        };
        self.pos = at + len;
        let target_at = self.next_start();
        if target_at >= self.src.len() || matches!(self.byte(target_at), b'&' | b'<' | b'>' | b'|' | b'{') {
            if let Some(diag) = teach::foreign_redirect(self.src, at) {
                return Err(diag.into());
            }
            return Err(self.unexpected("a file after the redirect"));
        }
        let target = self.argument(target_at)?;
        if matches!(target.kind, ArgKind::DashDash) {
            return Err(Diag::new(target.span.range(), "a redirect needs a file").into());
        }
        Ok(Redirect { kind, target, span: self.span_from(at) })
    }
}
