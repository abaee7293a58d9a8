//! What a command head stands for.

use shoal_value::handle::concrete;
use shoal_value::{Bytes, ErrorValue, Outcome, Str, Value, code, outcome::OutcomeBody, render};

use super::{Callee, CommandSite, Invocation, RedirectForm, Word, flag_text};
use crate::Ctx;
use crate::host::WriteMode;
use crate::machine::Machine;
use crate::registry::{Given, standard};
use crate::suggest;
use crate::unwind::Eval;
use crate::vm::{Call, Lambda, Linked, downcast};

impl Machine {
    /// Runs a command whose words lie on the stack.
    pub(crate) fn command_op(&mut self, site: &CommandSite, linked: &Linked) -> Eval<Call> {
        let mut invocation = self.invocation(site)?;
        let callee = match site.callee {
            Callee::None => None,
            Callee::Root(name) => linked.cell(name).value(),
            Callee::Value => self.stack.pop(),
            Callee::Maybe => self.stack.pop().filter(|value| !value.is_null()),
        };
        if let Some(more) = self.frames.last_mut().and_then(|frame| frame.more.as_mut()) {
            invocation.words.append(&mut more.appended);
        }
        self.invoke(invocation, callee)
    }

    /// Runs a command; `callee` is the binding its head has.
    pub(super) fn invoke(&mut self, invocation: Invocation<'_>, callee: Option<Value>) -> Eval<Call> {
        let site = invocation.site;
        if let Some(callee) = callee {
            return self.invoke_binding(invocation, callee);
        }
        if site.language.is_none() && !site.path {
            if let Some(command) = standard().command(&site.head) {
                let bypass = site.forced && self.forces_program(command, &invocation);
                if !bypass {
                    return self.invoke_builtin(command, invocation);
                }
            } else if !site.forced && (standard().function(&site.head).is_some()) {
                let name = &site.head;
                let error = ErrorValue::new(code::NOT_FOUND, format!("command not found: {name}"));
                return Err(error.with_hint(format!("{name} is a function: write {name}(...)")).into());
            }
        }
        if site.path && !site.forced && site.head.ends_with(".shl") {
            return self.run_script_head(invocation).map(Call::Done);
        }
        if self.was_bound_perhaps(&invocation) && self.find_bare_program(&site.head)?.is_none() {
            let error = ErrorValue::new(code::UNDEFINED_VAR, format!("undefined name `{}`", site.head));
            return Err(error.with_hint("the session's names were lost with its worker: bind it again").into());
        }
        self.invoke_program(invocation).map(Call::Done)
    }

    /// A lone word of a session whose names are gone: one of them, if it is no command.
    fn was_bound_perhaps(&self, invocation: &Invocation<'_>) -> bool {
        let Invocation { site, env, words, redirects, block, .. } = invocation;
        let lone = env.is_empty() && words.is_empty() && redirects.is_empty() && block.is_none();
        let plain = !site.forced && !site.path && site.language.is_none();
        lone && plain && self.transcript.as_ref().is_some_and(|transcript| transcript.lost_its_names())
    }

    fn invoke_binding(&mut self, invocation: Invocation<'_>, callee: Value) -> Eval<Call> {
        let Invocation { site, words, redirects, block, .. } = invocation;
        if !matches!(callee, Value::Closure(_) | Value::Command(_)) {
            if words.is_empty() && redirects.is_empty() && block.is_none() {
                return Ok(Call::Done(callee));
            }
            return Err(not_a_command(&site.head, &callee).into());
        }
        if redirects.iter().any(|(kind, _)| *kind == RedirectForm::In) {
            let text = format!("`{}` is a function: it takes no stdin", site.head);
            return Err(ErrorValue::arg_error(text)
                .with_hint(format!("pass the value: `{}(value)`", site.head))
                .into());
        }
        let floor = self.frames.len();
        let called = match &callee {
            Value::Closure(callable) if concrete::<Lambda>(&**callable).is_some() => {
                self.call_words(downcast(callable), words, block)
            }
            Value::Command(alias) => {
                let mut words = words;
                words.extend(block.map(Word::Value));
                self.call_alias(&**alias, words)
            }
            other => {
                let given = self.values_of(words, block)?;
                let n = given.len();
                self.stack.extend(given);
                self.call_with(other, n, Vec::new())
            }
        };
        if redirects.is_empty() {
            return called;
        }
        let value = self.finish(called, floor)?;
        self.redirect_value(&site.head, value, None, &redirects).map(Call::Done)
    }

    /// Words as plain values, for callables without typed parameters.
    fn values_of(&mut self, words: Vec<Word>, block: Option<Value>) -> Eval<Vec<Value>> {
        let mut values = Vec::new();
        for word in words {
            match word {
                Word::Plain(text) | Word::Text(text) => values.push(Value::Str(text)),
                Word::Value(value) => values.push(value),
                Word::Long { raw, value, .. } => values.push(Value::Str(flag_text(&raw, &value)?)),
                Word::Short { raw, .. } => values.push(Value::Str(raw)),
                Word::DashDash => {}
                Word::Glob(pattern) => {
                    let glob = self.glob_of(&pattern);
                    values.extend(self.expand_glob(&glob)?.into_iter().map(Value::Path));
                }
            }
        }
        values.extend(block);
        Ok(values)
    }

    /// Writes a value's bytes to the redirect's file; the outcome that stands for it.
    pub(super) fn redirect_value(
        &mut self,
        head: &str,
        value: Value,
        exact: Option<Bytes>,
        redirects: &[(RedirectForm, Value)],
    ) -> Eval<Value> {
        let (stderr, status) = match &value {
            Value::Outcome(outcome) => (outcome.stderr.clone(), Some(outcome.clone())),
            _ => (Bytes::empty(), None),
        };
        let bytes = match (exact, &value) {
            (Some(bytes), _) => bytes,
            (None, Value::Outcome(outcome)) if outcome.pid != Some(0) => outcome.stdout.clone(),
            (None, Value::Outcome(outcome)) => value_bytes(outcome.peek_out()),
            (None, value) => value_bytes(value),
        };
        let Some(held) = bytes.held() else {
            return Err(ErrorValue::too_large("the output is too large to be redirected from here").into());
        };
        for (kind, target) in redirects {
            let Value::Path(path) = target else { continue };
            let mode = if *kind == RedirectForm::Append { WriteMode::Append } else { WriteMode::Truncate };
            let ctx = Ctx::new(self);
            ctx.files().write(ctx.at(path), mode, held, ctx.cancel()).map_err(|e| ctx.file_error(&e, path))?;
        }
        let mut body = status.map_or_else(
            || OutcomeBody::builtin(Str::from(head), Value::Null, Bytes::empty(), 0),
            |outcome| outcome.body().clone(),
        );
        body.stdout = Bytes::empty();
        body.stderr = stderr;
        body.out = shoal_value::outcome::Out::Value(Value::Null);
        Ok(Value::Outcome(Outcome::new(body)))
    }

    /// The error of a program that does not exist.
    pub(crate) fn command_not_found(&self, head: &str) -> ErrorValue {
        let error = ErrorValue::new(code::NOT_FOUND, format!("command not found: {head}"));
        if head.contains('/') {
            return error;
        }
        if let Some(hint) = suggest::command(head) {
            return error.with_hint(hint);
        }
        let bound = self.root.names();
        let callables = bound.iter().filter(|(_, kind)| !kind.is_value()).map(|(name, _)| &**name);
        let mut candidates: Vec<&str> = callables.collect();
        standard().command_names().for_each(|name| candidates.push(name));
        match suggest::nearest(head, candidates.into_iter()) {
            Some(near) => error.with_hint(format!("did you mean '{near}'?")),
            None => error,
        }
    }

    /// A builtin called as a function with values.
    pub(crate) fn call_builtin_command(&mut self, name: &Str, given: Given) -> Eval<Value> {
        let site = CommandSite::bare(name.clone());
        let mut words: Vec<Word> = given.positional.into_iter().map(Word::Value).collect();
        for (flag, value) in given.named {
            let dashed = flag.replace('_', "-");
            let raw = format!("--{dashed}").into();
            words.push(match value {
                Value::Bool(false) => continue,
                Value::Bool(true) => Word::Long { name: dashed.into(), raw, value: super::FlagWord::None },
                value => {
                    Word::Long { name: dashed.into(), raw, value: super::FlagWord::Given(Box::new(Word::Value(value))) }
                }
            });
        }
        let invocation = Invocation { site: &site, env: Vec::new(), words, redirects: Vec::new(), block: None };
        let floor = self.frames.len();
        let called = self.invoke(invocation, None);
        self.finish(called, floor)
    }

    /// A builtin named alone in an expression.
    pub(crate) fn run_builtin_bare(&mut self, name: &Str) -> Eval<Value> {
        self.call_builtin_command(name, Given::default())
    }

    /// A program named alone as a receiver.
    pub(crate) fn run_program_bare(&mut self, name: &Str) -> Eval<Value> {
        self.call_program(name, Given::default())
    }

    /// A program called as a function with values.
    pub(crate) fn call_program(&mut self, name: &Str, given: Given) -> Eval<Value> {
        if let Some((argument, _)) = given.named.first() {
            return Err(ErrorValue::arg_error(format!("unknown argument `{argument}`: {name} is a program")).into());
        }
        let mut site = CommandSite::bare(name.clone());
        site.forced = true;
        let words = given.positional.into_iter().map(Word::Value).collect();
        self.invoke_program(Invocation { site: &site, env: Vec::new(), words, redirects: Vec::new(), block: None })
    }
}

fn not_a_command(head: &str, value: &Value) -> ErrorValue {
    ErrorValue::type_error(format!("`{head}`: {} is not a command", value.type_name()))
        .with_hint(format!("`^{head}` runs the program of that name"))
}

/// Bytes a value is written as by a redirect and shown as by a structured builtin.
pub(crate) fn value_bytes(value: &Value) -> Bytes {
    let text = match value {
        Value::Null => return Bytes::empty(),
        Value::Bytes(bytes) => return bytes.clone(),
        Value::Str(text) => text.to_string(),
        other => render::inline(other),
    };
    let text = if text.ends_with('\n') { text } else { text + "\n" };
    Bytes::from(text.into_bytes())
}
