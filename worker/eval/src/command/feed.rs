//! `feed`: a value as the standard input of a program, and programs joined by pipes.

use std::sync::Arc;

use shoal_value::outcome::Out;
use shoal_value::{Bytes, ErrorValue, Outcome, Value, code, json, render};

use super::{Callee, CommandSite, Invocation};
use crate::code::Place;
use crate::host::{Input, Output, Program};
use crate::machine::Machine;
use crate::registry::standard;
use crate::stream;
use crate::unwind::Eval;
use crate::vm::Linked;

/// A feed as compiled: the fed value, the words of the stages, and a value given as the argument lie on the stack.
pub(crate) struct FeedSite {
    pub(crate) stages: Vec<Arc<CommandSite>>,
    /// Whether a value below the words is fed.
    pub(crate) fed: bool,
    /// Whether the value on top is fed: `cmd.feed(value)`.
    pub(crate) value_last: bool,
    pub(crate) place: Place,
}

impl Machine {
    pub(crate) fn feed_op(&mut self, site: &FeedSite, linked: &Linked) -> Eval<Value> {
        self.here = site.place;
        let last = if site.value_last { self.stack.pop() } else { None };
        let mut invocations = Vec::with_capacity(site.stages.len());
        let mut callee = None;
        for stage in site.stages.iter().rev() {
            invocations.push(self.invocation(stage)?);
            callee = match stage.callee {
                Callee::None => None,
                Callee::Root(name) => linked.cell(name).value(),
                Callee::Value | Callee::Maybe => self.stack.pop().filter(|value| !value.is_null()),
            };
        }
        let fed = if site.fed { self.stack.pop() } else { last };
        let mut invocations = invocations.into_iter().rev().peekable();
        let mut input = fed;
        if input.is_none()
            && let Some(first) = invocations.peek()
            && !is_external(first, callee.as_ref())
            && let Some(first) = invocations.next()
        {
            let floor = self.frames.len();
            let called = self.invoke(first, callee);
            input = Some(self.finish(called, floor)?);
        }
        let mut programs = Vec::new();
        let mut redirect = Vec::new();
        for invocation in invocations {
            redirect.clone_from(&invocation.redirects);
            programs.push(self.program(invocation)?);
        }
        self.feed_programs(input, programs, &redirect)
    }

    fn feed_programs(
        &mut self,
        input: Option<Value>,
        programs: Vec<Program>,
        redirects: &[(super::RedirectForm, Value)],
    ) -> Eval<Value> {
        let stdout = redirects.iter().rev().find_map(|(kind, target)| match (kind, target) {
            (super::RedirectForm::Out, Value::Path(path)) => Some(Output::File { path: path.clone(), append: false }),
            (super::RedirectForm::Append, Value::Path(path)) => Some(Output::File { path: path.clone(), append: true }),
            _ => None,
        });
        let stdout = stdout.unwrap_or(Output::Capture);
        match input {
            None => self.launch(programs, Input::Null, stdout),
            Some(Value::Stream(source)) => {
                // The stream runs the program's closures, so it is pulled by a machine of its own on this thread.
                let mut items = stream::take(self, &source)?;
                let mut machine = self.child();
                let mut pull = || match items.next(&mut machine)? {
                    Some(item) => Ok(Some(line_bytes(&item)?)),
                    None => Ok(None),
                };
                self.launch(programs, Input::Pull(&mut pull), stdout)
            }
            Some(value) => {
                let bytes = feed_bytes(&value)?;
                self.launch(programs, Input::Bytes(bytes), stdout)
            }
        }
    }
}

/// Whether a command written as a receiver is a program, so that its output can flow by a pipe.
fn is_external(invocation: &Invocation<'_>, callee: Option<&Value>) -> bool {
    let site = invocation.site;
    let builtin = standard().command(&site.head).is_some() && site.language.is_none() && !site.path;
    callee.is_none() && !builtin && !(site.path && site.head.ends_with(".shl"))
}

/// The bytes of a value as standard input.
pub(crate) fn feed_bytes(value: &Value) -> Result<Bytes, ErrorValue> {
    let text = match value {
        Value::Str(text) => text.to_string(),
        Value::Bytes(Bytes::Cut(_)) => {
            return Err(ErrorValue::too_large("these bytes were cut when they were captured and cannot be fed"));
        }
        Value::Bytes(bytes) => return Ok(bytes.clone()),
        Value::Int(_)
        | Value::Float(_)
        | Value::Bool(_)
        | Value::Size(_)
        | Value::Duration(_)
        | Value::DateTime(_)
        | Value::Time(_) => render::inline(value),
        Value::List(list) if list.iter().all(|item| matches!(item, Value::Str(_))) => {
            list.iter().filter_map(Value::as_str).flat_map(|line| [line, "\n"]).collect()
        }
        Value::List(_) | Value::Record(_) | Value::Table(_) | Value::Range(_) => json::stringify(value)?,
        Value::Outcome(outcome) => return outcome_bytes(outcome),
        Value::Path(_) => {
            return Err(ErrorValue::type_error("a path is a name, not the contents of the file")
                .with_hint("write `p.read.feed(...)`"));
        }
        Value::Secret(_)
        | Value::Task(_)
        | Value::Closure(_)
        | Value::Error(_)
        | Value::Glob(_)
        | Value::Regex(_)
        | Value::Channel(_) => {
            let text = format!("{} cannot be the input of a program", value.type_name());
            return Err(ErrorValue::new(code::FEED_ERROR, text));
        }
        Value::Null | Value::Command(_) | Value::Stream(_) => {
            let text = format!("{} cannot be the input of a program", value.type_name());
            return Err(ErrorValue::type_error(text));
        }
    };
    Ok(Bytes::from(text.into_bytes()))
}

fn outcome_bytes(outcome: &Outcome) -> Result<Bytes, ErrorValue> {
    if !outcome.ok {
        return Err(outcome.failure().with_hint("feed what it printed with `.stdout.feed(...)`"));
    }
    match &outcome.body().out {
        Out::Value(value @ (Value::List(_) | Value::Record(_) | Value::Table(_))) => {
            Ok(Bytes::from(json::stringify(value)?.into_bytes()))
        }
        _ => match &outcome.stdout {
            Bytes::Cut(_) => Err(ErrorValue::too_large("the output was cut when it was captured and cannot be fed")),
            bytes => Ok(bytes.clone()),
        },
    }
}

/// One item of a stream as a line.
pub(crate) fn line_bytes(item: &Value) -> Result<Vec<u8>, ErrorValue> {
    let mut bytes = match item {
        Value::Str(text) => text.as_bytes().to_vec(),
        Value::Bytes(bytes) => match bytes.held() {
            Some(held) => held.to_vec(),
            None => return Err(ErrorValue::too_large("stored or cut bytes cannot be an item here")),
        },
        other => json::stringify(other)?.into_bytes(),
    };
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    Ok(bytes)
}
