//! What names mean when they are evaluated: fields, methods, calls, lone names.

use shoal_value::{ErrorValue, Record, Value, access, code};

use super::frame::Linked;
use super::run::Call;
use crate::Ctx;
use crate::code::{CallSite, MethodSite};
use crate::dispatch;
use crate::machine::Machine;
use crate::native;
use crate::registry::{Args, Given, Types, standard};
use crate::suggest;
use crate::unwind::Eval;

impl Machine {
    /// A lone name of the root scope; `receiver` if a field, method or index follows.
    pub(super) fn root_value(&mut self, linked: &Linked, name: u32, receiver: bool) -> Eval<Call> {
        if let Some(value) = linked.cell(name).value() {
            return Ok(Call::Done(value));
        }
        let name = linked.name(name).clone();
        match &*name {
            "now" | "today" => {
                if let Some(function) = standard().function(&name) {
                    return (function.run)(&mut Ctx::new(self), Args::none()).map(Call::Done);
                }
            }
            "env" if receiver => return native::env_record(self).map(Call::Done),
            "it" if self.transcript.is_some() => return self.newest().map(Call::Done),
            "out" if self.transcript.is_some() => return self.transcript_table().map(Call::Done),
            _ => {}
        }
        if let Some(record) = native::namespace_record(self, &name)? {
            return Ok(Call::Done(record));
        }
        if standard().command(&name).is_some() {
            return self.run_builtin_bare(&name).map(Call::Done);
        }
        if receiver && self.find_bare_program(&name)?.is_some() {
            return self.run_program_bare(&name).map(Call::Done);
        }
        if let Some(function) = native::function_value(&name) {
            return Ok(Call::Done(function));
        }
        Err(self.undefined(&name).into())
    }

    /// The error of a call of a name that is not bound, with the method that other languages have as a function.
    fn undefined_callee(&mut self, name: &str) -> ErrorValue {
        let error = self.undefined(name);
        match (name, &error.hint) {
            (_, Some(_)) => error,
            ("print" | "println" | "puts" | "throw", None) => match suggest::command(name) {
                Some(hint) => error.with_hint(hint),
                None => error,
            },
            (_, None) if standard().methods(name).is_some() => error.with_hint(format!("it is a method: `x.{name}()`")),
            (_, None) => error,
        }
    }

    pub(crate) fn undefined(&mut self, name: &str) -> ErrorValue {
        let error = ErrorValue::new(code::UNDEFINED_VAR, format!("undefined name `{name}`"));
        let near = suggest::nearest(name, self.root.names().iter().map(|(n, _)| &**n));
        let program = matches!(self.find_bare_program(name), Ok(Some(_)));
        let hint = match (near, program) {
            (_, true) => format!("a program of that name exists: write (^{name})"),
            (Some(near), false) => format!("did you mean `{near}`?"),
            (None, false) => match suggest::value(name) {
                Some(hint) => hint.to_owned(),
                None => return error,
            },
        };
        error.with_hint(hint)
    }

    /// `recv.name`.
    pub(super) fn field(&mut self, name: &shoal_value::Str) -> Eval<Call> {
        let value = self.stack.pop().unwrap_or(Value::Null);
        self.field_of(value, name)
    }

    pub(crate) fn field_of(&mut self, value: Value, name: &shoal_value::Str) -> Eval<Call> {
        if let Value::Record(record) = &value
            && record.get(name).is_none()
            && let Some(member) = dynamic_member(record)
        {
            return member(&mut Ctx::new(self), name).map(Call::Done);
        }
        if let Some(field) = access::field(&value, name)? {
            return Ok(Call::Done(field));
        }
        if let Value::Outcome(outcome) = &value {
            let out = outcome.out()?.clone();
            return self.field_of(out, name);
        }
        if let Some(row) = standard().field(name, Types::index(&value)) {
            return (row.run)(&mut Ctx::new(self), &value).map(Call::Done);
        }
        if let Value::Error(_) = value {
            let text = format!("error has no field `{name}`");
            return Err(ErrorValue::field_missing(text).into());
        }
        dispatch::method(self, value, name, standard().methods(name), Given::default(), true)
    }

    pub(super) fn method_site(&mut self, site: &MethodSite) -> Eval<Call> {
        let named = self.take_named(&site.named);
        // The common case: a receiver without ways of its own, and no names.
        if named.is_empty()
            && let Some(row) = site.row
        {
            let at = self.stack.len() - site.positional as usize - 1;
            let index = Types::index(&self.stack[at]);
            if dispatch::is_plain(&self.stack[at])
                && let Some(method) = row.of(index)
            {
                let args = Args::from_stack(method, &mut self.stack, site.positional as usize)?;
                let recv = self.stack.pop().unwrap_or(Value::Null);
                return (method.run)(&mut Ctx::new(self), recv, args).map(Call::Done);
            }
        }
        let positional = self.take(site.positional);
        let recv = self.stack.pop().unwrap_or(Value::Null);
        dispatch::method(self, recv, &site.name, site.row, Given { positional, named }, false)
    }

    fn take_named(&mut self, names: &[shoal_value::Str]) -> Vec<(shoal_value::Str, Value)> {
        if names.is_empty() {
            return Vec::new();
        }
        let values = self.take(names.len() as u32);
        names.iter().cloned().zip(values).collect()
    }

    /// `callee(args)`.
    pub(super) fn call_site(&mut self, site: &CallSite) -> Eval<Call> {
        let named = self.take_named(&site.named);
        let n = site.positional as usize;
        let callee = self.stack.remove(self.stack.len() - n - 1);
        self.call_with(&callee, n, named)
    }

    /// `NAME(args)` for a name of the root scope.
    pub(super) fn call_name(&mut self, site: &CallSite, linked: &Linked) -> Eval<Call> {
        let named = self.take_named(&site.named);
        let n = site.positional as usize;
        match linked.cell(site.name).value() {
            Some(Value::Closure(callable)) => return self.call_closure(callable, n, named),
            Some(callee) => return self.call_with(&callee, n, named),
            None => {}
        }
        let name = linked.name(site.name).clone();
        let given = Given { positional: self.take(site.positional), named };
        let with_block = matches!(given.positional.as_slice(), [Value::Closure(_)]);
        if let Some(function) = standard().function(&name) {
            let args = Args::bind(&name, function.params, given, "")?;
            return (function.run)(&mut Ctx::new(self), args).map(Call::Done);
        }
        if standard().command(&name).is_some() {
            return self.call_builtin_command(&name, given).map(Call::Done);
        }
        if self.find_bare_program(&name)?.is_some() {
            return self.call_program(&name, given).map(Call::Done);
        }
        let error = self.undefined_callee(&name);
        Err(match (&error.hint, with_block) {
            (None, true) => error.with_hint(format!("a function is declared with `fn {name}() {{ ... }}`")).into(),
            _ => error.into(),
        })
    }

    /// Calls a method from native code.
    pub(crate) fn call_method(&mut self, receiver: Value, name: &str, given: Given) -> Eval<Value> {
        let floor = self.frames.len();
        let called = dispatch::method(self, receiver, name, standard().methods(name), given, false);
        self.finish(called, floor)
    }
}

/// Reads the members that only the host knows, if the record is a namespace that has such: it is known by its functions.
fn dynamic_member(record: &Record) -> Option<fn(&mut Ctx<'_>, &str) -> Eval<Value>> {
    standard().namespaces().find_map(|namespace| {
        let first = namespace.functions.first()?;
        let Value::Closure(function) = record.get(first.name)? else { return None };
        let (space, member) = function.builtin_name()?.split_once('.')?;
        namespace.dynamic.filter(|_| space == namespace.name && member == first.name)
    })
}
