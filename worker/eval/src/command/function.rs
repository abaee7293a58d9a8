//! Functions and aliases called as commands.

use std::sync::Arc;

use shoal_value::convert::{WordContext, coerce_word};
use shoal_value::handle::concrete;
use shoal_value::{Alias, ErrorValue, PathValue, Str, Value};

use super::{FlagWord, Word, flag_text};
use crate::code::{Code, Parameter};
use crate::machine::Machine;
use crate::registry::{Given, Types};
use crate::types::Type;
use crate::unwind::Eval;
use crate::vm::{Call, Lambda, More};

/// A parsed, partly applied call.
pub(crate) struct AliasValue {
    pub(crate) lambda: Arc<Lambda>,
}

impl Alias for AliasValue {
    fn head(&self) -> Str {
        self.lambda.code.name.clone().unwrap_or_else(|| "".into())
    }
}

impl Machine {
    /// Runs an alias with `words` appended.
    pub(crate) fn call_alias(&mut self, alias: &dyn Alias, words: Vec<Word>) -> Eval<Call> {
        let Some(alias) = concrete::<AliasValue>(alias) else {
            return Err(ErrorValue::type_error("command is not callable here").into());
        };
        let base = self.stack.len();
        let more = More { appended: words, ..More::default() };
        self.push_frame(alias.lambda.clone(), base, Some(Box::new(more)))?;
        Ok(Call::Entered)
    }

    /// Calls a closure with words.
    pub(super) fn call_words(&mut self, lambda: Arc<Lambda>, words: Vec<Word>, block: Option<Value>) -> Eval<Call> {
        let code = lambda.code.clone();
        if words.iter().any(|word| matches!(word, Word::Long { name, .. } if **name == *"help")) {
            self.run.sink.text(&help_text(&code));
            return Ok(Call::Done(Value::Null));
        }
        let mut given = self.bind_words(&code, words)?;
        given.positional.extend(block);
        let n = given.positional.len();
        self.stack.extend(given.positional);
        self.enter(lambda, n, given.named)
    }

    fn bind_words(&mut self, code: &Code, words: Vec<Word>) -> Eval<Given> {
        let mut given = Given::default();
        let mut flags_ended = false;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word {
                Word::DashDash if !flags_ended => flags_ended = true,
                Word::DashDash => self.positional(code, &mut given, Word::Plain("--".into()))?,
                Word::Long { name, raw, value } if !flags_ended => {
                    let (param, value) = self.flag_value(code, &name, &raw, value, &mut words)?;
                    given.named.push((param, value));
                }
                Word::Long { raw, value, .. } => {
                    let text = flag_text(&raw, &value)?;
                    self.positional(code, &mut given, Word::Plain(text))?;
                }
                Word::Short { raw, .. } => self.positional(code, &mut given, Word::Plain(raw))?,
                word => self.positional(code, &mut given, word)?,
            }
        }
        Ok(given)
    }

    fn flag_value(
        &mut self,
        code: &Code,
        name: &str,
        raw: &str,
        value: FlagWord,
        words: &mut impl Iterator<Item = Word>,
    ) -> Eval<(Str, Value)> {
        let plain = name.replace('-', "_");
        let param = code.params.iter().find(|p| p.name.replace('-', "_") == plain);
        let Some(param) = param else {
            return Err(ErrorValue::arg_error(format!("unknown argument `{name}`")).with_hint(synopsis(code)).into());
        };
        let is_switch = param.ty.as_ref().is_none_or(|ty| ty.is_any() || ty.types == Types::BOOL);
        let word = match value {
            FlagWord::Given(word) => *word,
            FlagWord::None if is_switch => return Ok((param.name.clone(), Value::Bool(true))),
            FlagWord::None | FlagWord::Next => words
                .next()
                .ok_or_else(|| ErrorValue::arg_error(format!("{} requires a value", raw.trim_end_matches('='))))?,
        };
        let param = param.clone();
        let value = match word {
            Word::Glob(pattern) => self.one_glob(&param, &pattern)?,
            Word::Long { raw, .. } | Word::Short { raw, .. } => self.coerce(Some(&param), &raw)?,
            Word::DashDash => Value::str("--"),
            Word::Plain(text) | Word::Text(text) => self.coerce(Some(&param), &text)?,
            Word::Value(value) => self.coerce_value(Some(&param), value)?,
        };
        Ok((param.name, value))
    }

    /// Adds a positional word, coerced to the parameter it falls to.
    fn positional(&mut self, code: &Code, given: &mut Given, word: Word) -> Eval<()> {
        let param = target(code, given);
        let value = match word {
            Word::Plain(text) | Word::Text(text) => self.coerce(param.as_ref(), &text)?,
            Word::Value(value) => self.coerce_value(param.as_ref(), value)?,
            Word::Glob(pattern) => {
                let takes = param.as_ref().and_then(|p| p.ty.as_ref()).map_or(Types::NONE, |ty| ty.types);
                if takes == Types::GLOB || takes == Types::LIST {
                    let param = param.unwrap_or_else(|| unreachable!("it has a type"));
                    self.one_glob(&param, &pattern)?
                } else {
                    let glob = self.glob_of(&pattern);
                    for path in self.expand_glob(&glob)? {
                        let param = target(code, given);
                        let value = self.coerce_path(param.as_ref(), path)?;
                        given.positional.push(value);
                    }
                    return Ok(());
                }
            }
            Word::Long { raw, .. } | Word::Short { raw, .. } => self.coerce(param.as_ref(), &raw)?,
            Word::DashDash => Value::str("--"),
        };
        given.positional.push(value);
        Ok(())
    }

    fn one_glob(&mut self, param: &Parameter, pattern: &Str) -> Eval<Value> {
        let glob = self.glob_of(pattern);
        if param.ty.as_ref().is_some_and(|ty| ty.types == Types::LIST) {
            let item = param.ty.as_ref().and_then(|ty| ty.item.clone());
            let mut items = Vec::new();
            for path in self.expand_glob(&glob)? {
                items.push(match &item {
                    Some(item) if item.types == Types::STR => Value::str(path.display().into_owned()),
                    _ => Value::Path(path),
                });
            }
            return Ok(Value::list(items)?);
        }
        Ok(Value::Glob(glob))
    }

    fn coerce_path(&self, param: Option<&Parameter>, path: PathValue) -> Eval<Value> {
        match param.and_then(|p| p.ty.as_ref()) {
            None => Ok(Value::Path(path)),
            Some(ty) if ty.is_any() || ty.types == Types::PATH => Ok(Value::Path(path)),
            Some(_) => self.coerce(param, &path.display()),
        }
    }

    fn coerce_value(&self, param: Option<&Parameter>, value: Value) -> Eval<Value> {
        match (&value, param.and_then(|p| p.ty.as_ref())) {
            (Value::Str(text), Some(ty)) if ty.types != Types::LIST => self.coerce(param, &text.clone()),
            // The items of a list are coerced where the list is bound.
            _ => Ok(value),
        }
    }

    /// The items of an argument for a `list<T>` as `T`, where they are words: in calls of either form.
    pub(crate) fn coerce_items(&self, item: &Type, value: Value) -> Result<Value, ErrorValue> {
        let Value::List(list) = &value else { return Ok(value) };
        if item.is_any() || item.types == Types::STR || !list.iter().any(|v| matches!(v, Value::Str(_))) {
            return Ok(value);
        }
        let items = list.iter().map(|v| match v {
            Value::Str(text) => self.coerce_as(item, text),
            other => Ok(other.clone()),
        });
        Value::list(items.collect::<Result<Vec<_>, _>>()?)
    }

    fn coerce(&self, param: Option<&Parameter>, text: &str) -> Eval<Value> {
        match param.and_then(|p| p.ty.as_ref()) {
            None => Ok(Value::str(text)),
            Some(ty) if ty.types == Types::LIST => {
                let item = match &ty.item {
                    Some(item) => self.coerce_as(item, text)?,
                    None => Value::str(text),
                };
                Ok(Value::list(vec![item])?)
            }
            Some(ty) => Ok(self.coerce_as(ty, text)?),
        }
    }

    /// A word as a value of a type.
    pub(crate) fn coerce_as(&self, ty: &Type, text: &str) -> Result<Value, ErrorValue> {
        let zone = self.session.host.clock().zone();
        let context = WordContext { cwd: self.place.cwd.path(), local: &zone };
        coerce_word(text, ty.word_type(), context)
    }
}

/// The parameter the next positional falls to; for the rest parameter one of its item type.
fn target(code: &Code, given: &Given) -> Option<Parameter> {
    let free = code.params.iter().filter(|p| !given.named.iter().any(|(name, _)| *name == p.name));
    let at = given.positional.len();
    if let Some(param) = free.clone().nth(at) {
        return Some(param.clone());
    }
    let rest = code.rest.as_ref()?;
    Some(Parameter { name: rest.name.clone(), ty: rest.item.clone(), has_default: false })
}

/// `name(p: type, ..., ...rest) -> ret` and the doc text.
pub(crate) fn help_text(code: &Code) -> String {
    match &code.doc {
        Some(doc) => format!("{}\n{doc}\n", synopsis(code)),
        None => format!("{}\n", synopsis(code)),
    }
}

fn synopsis(code: &Code) -> String {
    let mut params: Vec<String> = code
        .params
        .iter()
        .map(|p| match &p.ty {
            Some(ty) => format!("{}: {}", p.name, ty.text()),
            None => p.name.to_string(),
        })
        .collect();
    if let Some(rest) = &code.rest {
        params.push(match &rest.item {
            Some(item) => format!("...{}: {}", rest.name, item.text()),
            None => format!("...{}", rest.name),
        });
    }
    let ret = code.ret.as_ref().map(|ty| format!(" -> {}", ty.text())).unwrap_or_default();
    format!("{}({}){ret}", code.name.as_deref().unwrap_or("closure"), params.join(", "))
}
