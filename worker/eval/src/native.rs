//! Builtins that are part of the evaluator itself, and builtin functions as values.

mod channels;
mod control;
mod plans;
mod scripts;
mod streams;
mod tasks;

pub(crate) use scripts::run_program;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use shoal_value::{Callable, ErrorValue, PathValue, Record, Str, Value};

use crate::Ctx;
use crate::command::{Invocation, Word, flag_text};
use crate::machine::Machine;
use crate::registry::{Command, Function, Method, standard};
use crate::unwind::Eval;

/// Method tables.
pub(crate) static METHODS: &[&[Method]] = &[streams::COMBINATORS, streams::SINKS, tasks::METHODS, channels::METHODS];

/// Function tables.
pub(crate) static FUNCTIONS: &[&[Function]] =
    &[control::FUNCTIONS, scripts::FUNCTIONS, streams::FUNCTIONS, channels::FUNCTIONS];

/// Command tables.
pub(crate) static COMMANDS: &[&[Command]] = &[control::COMMANDS, plans::COMMANDS, scripts::COMMANDS, tasks::COMMANDS];

/// A builtin function as a value.
pub(crate) struct NativeFunction {
    /// Full name: `math.sqrt`.
    pub(crate) name: Str,
    pub(crate) row: &'static Function,
}

impl Callable for NativeFunction {
    fn repr(&self) -> String {
        let params: Vec<&str> = self.row.params.iter().map(|p| p.name).collect();
        format!("fn {}({})", self.name, params.join(", "))
    }

    fn builtin_name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// The builtin function of this name as a value.
pub(crate) fn function_value(name: &str) -> Option<Value> {
    let row = standard().function(name)?;
    Some(Value::Closure(Arc::new(NativeFunction { name: name.into(), row })))
}

/// The record an unbound namespace name stands for.
pub(crate) fn namespace_record(machine: &mut Machine, name: &str) -> Eval<Option<Value>> {
    static RECORDS: LazyLock<HashMap<&'static str, Record>> =
        LazyLock::new(|| standard().namespaces().map(|namespace| (namespace.name, members(namespace))).collect());
    let Some(record) = RECORDS.get(name) else { return Ok(None) };
    if standard().namespace(name).is_some_and(|namespace| namespace.dynamic.is_some()) {
        let config = machine.session.host.config();
        return Ok(Some(Value::Record(config.merge(record))));
    }
    Ok(Some(Value::Record(record.clone())))
}

fn members(namespace: &'static crate::registry::Namespace) -> Record {
    let functions = namespace.functions.iter().map(|row| {
        let name: Str = format!("{}.{}", namespace.name, row.name).into();
        (Str::from(row.name), Value::Closure(Arc::new(NativeFunction { name, row })))
    });
    let constants = namespace.constants.iter().map(|(name, value)| (Str::from(*name), Value::Float(*value)));
    Record::new(functions.chain(constants)).unwrap_or_else(|_| Record::empty())
}

/// `env` as a value: the variables that are UTF-8.
pub(crate) fn env_record(machine: &mut Machine) -> Eval<Value> {
    machine.session.host.judge_env(false, "*")?;
    let vars = machine.place.env.iter().filter_map(|(name, value)| {
        let text = std::str::from_utf8(value).ok()?;
        Some((name.clone(), Value::str(text)))
    });
    Ok(Value::Record(Record::new(vars)?))
}

impl Machine {
    /// A head that is the path of a script.
    pub(crate) fn run_script_head(&mut self, invocation: Invocation<'_>) -> Eval<Value> {
        let path = PathValue::from(&*self.expand_home(&invocation.site.head)?);
        let mut args = Vec::new();
        for word in invocation.words {
            match word {
                Word::Plain(text) | Word::Text(text) => args.push(Value::Str(text)),
                Word::Long { raw, value, .. } => args.push(Value::Str(flag_text(&raw, &value)?)),
                Word::Short { raw, .. } => args.push(Value::Str(raw)),
                Word::DashDash => args.push(Value::str("--")),
                Word::Value(value) => args.push(value),
                Word::Glob(pattern) => {
                    let glob = self.glob_of(&pattern);
                    args.extend(self.expand_glob(&glob)?.into_iter().map(Value::Path));
                }
            }
        }
        let args = crate::module::script_args(&mut Ctx::new(self), args)?;
        let value = self.run_script(&path, args)?;
        if invocation.redirects.is_empty() {
            return Ok(value);
        }
        Err(ErrorValue::arg_error("a script's value cannot be redirected here")
            .with_hint("`.save(path)` writes it")
            .into())
    }
}
