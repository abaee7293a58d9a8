//! Words and their values.

use shoal_syntax::ast::JoinedKind;
use shoal_value::{ErrorValue, Glob, Outcome, PathValue, Str, Value, code, render};

use super::{ArgForm, CommandSite, FlagForm, FlagWord, Invocation, PieceForm, RedirectForm, Word};
use crate::Ctx;
use crate::glob;
use crate::machine::Machine;
use crate::unwind::Eval;

impl Machine {
    /// Takes the values of a command's words from the stack and makes its words.
    pub(crate) fn invocation<'a>(&mut self, site: &'a CommandSite) -> Eval<Invocation<'a>> {
        let block = if site.block { self.stack.pop() } else { None };
        let values = self.take(site.values);
        self.words(site, values, block)
    }

    pub(super) fn words<'a>(
        &mut self,
        site: &'a CommandSite,
        values: Vec<Value>,
        block: Option<Value>,
    ) -> Eval<Invocation<'a>> {
        let mut values = values.into_iter();
        let mut env = Vec::new();
        for (name, form) in &site.env {
            env.push((name.clone(), self.word(form, &mut values)?));
        }
        let mut words = Vec::with_capacity(site.args.len());
        for form in &site.args {
            words.push(self.word(form, &mut values)?);
        }
        let mut redirects = Vec::new();
        for (kind, form) in &site.redirects {
            let word = self.word(form, &mut values)?;
            redirects.push((*kind, redirect_target(*kind, word)?));
        }
        Ok(Invocation { site, env, words, redirects, block })
    }

    fn word(&mut self, form: &ArgForm, values: &mut impl Iterator<Item = Value>) -> Eval<Word> {
        let mut value = || values.next().unwrap_or(Value::Null);
        Ok(match form {
            ArgForm::Word(text) => Word::Plain(text.clone()),
            ArgForm::Path(text) => Word::Plain(self.expand_home(text)?),
            ArgForm::Glob(text) => Word::Glob(self.expand_home(text)?),
            ArgForm::Quoted => match value() {
                Value::Str(text) => Word::Text(text),
                other => Word::Value(other),
            },
            ArgForm::Group => Word::Value(value()),
            ArgForm::Long { name, raw, value: form } => {
                let value = match form {
                    FlagForm::None => FlagWord::None,
                    FlagForm::Next => FlagWord::Next,
                    FlagForm::Given(form) => FlagWord::Given(Box::new(self.word(form, values)?)),
                };
                Word::Long { name: name.clone(), raw: raw.clone(), value }
            }
            ArgForm::Short { letters, raw } => Word::Short { letters: letters.clone(), raw: raw.clone() },
            ArgForm::DashDash => Word::DashDash,
            ArgForm::Joined { pieces, kind } => self.joined(pieces, *kind, values)?,
        })
    }

    fn joined(
        &mut self,
        pieces: &[PieceForm],
        kind: JoinedKind,
        values: &mut impl Iterator<Item = Value>,
    ) -> Eval<Word> {
        let mut text = String::new();
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                PieceForm::Bare(bare) if at == 0 && matches!(kind, JoinedKind::Path | JoinedKind::Glob) => {
                    text.push_str(&self.expand_home(bare)?);
                }
                PieceForm::Bare(bare) => text.push_str(bare),
                PieceForm::Value => {
                    let piece = argument_text(&values.next().unwrap_or(Value::Null))?;
                    if kind == JoinedKind::Glob { text.push_str(&glob::escape(&piece)) } else { text.push_str(&piece) }
                }
            }
        }
        Ok(match (kind, pieces.first()) {
            (JoinedKind::Glob, _) => Word::Glob(text.into()),
            // An argument that starts with a string or a group is data.
            (_, Some(PieceForm::Value)) => Word::Text(text.into()),
            _ => Word::Plain(text.into()),
        })
    }

    /// `~` and a leading `~/` mean the session's HOME.
    pub(crate) fn expand_home(&self, text: &Str) -> Eval<Str> {
        let Some(rest) = text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
            return Ok(text.clone());
        };
        match self.place.var("HOME") {
            Some(home) => Ok(format!("{home}{rest}").into()),
            None => Err(ErrorValue::new(code::NOT_FOUND, "`~` needs the variable HOME, which is not set").into()),
        }
    }

    pub(crate) fn glob_of(&self, pattern: &Str) -> Glob {
        Glob::new(pattern.clone(), self.place.cwd.path().clone(), false)
    }

    /// Matches of a pattern as paths.
    pub(crate) fn expand_glob(&mut self, glob: &Glob) -> Eval<Vec<PathValue>> {
        Ctx::new(self).expand(glob)
    }
}

/// A flag as the text it was written as.
pub(crate) fn flag_text(raw: &Str, value: &FlagWord) -> Result<Str, ErrorValue> {
    let FlagWord::Given(word) = value else { return Ok(raw.clone()) };
    let value = match &**word {
        Word::Plain(text) | Word::Text(text) | Word::Glob(text) => text.clone(),
        Word::Value(value) => argument_text(value)?,
        Word::Long { raw, .. } | Word::Short { raw, .. } => raw.clone(),
        Word::DashDash => "--".into(),
    };
    Ok(format!("{raw}{value}").into())
}

fn redirect_target(kind: RedirectForm, word: Word) -> Result<Value, ErrorValue> {
    let bad = |what: &str| {
        let sign = match kind {
            RedirectForm::In => "<",
            RedirectForm::Out => ">",
            RedirectForm::Append => ">>",
        };
        ErrorValue::type_error(format!("the target of `{sign}` must be a str or path, found {what}"))
    };
    match word {
        Word::Plain(text) | Word::Text(text) | Word::Glob(text) => Ok(Value::Path(PathValue::from(&*text))),
        Word::Value(Value::Str(text)) => Ok(Value::Path(PathValue::from(&*text))),
        Word::Value(path @ Value::Path(_)) => Ok(path),
        Word::Value(other) => Err(bad(other.type_name())),
        Word::Long { raw, value, .. } => Ok(Value::Path(PathValue::from(&*flag_text(&raw, &value)?))),
        Word::Short { raw, .. } => Ok(Value::Path(PathValue::from(&*raw))),
        Word::DashDash => Err(bad("--")),
    }
}

/// Text of a value as one argument of a program.
pub(crate) fn argument_text(value: &Value) -> Result<Str, ErrorValue> {
    Ok(match value {
        Value::Str(text) => text.clone(),
        Value::Path(_) => shoal_value::convert::to_str(value)?,
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Time(_) | Value::DateTime(_) => {
            render::inline(value).into()
        }
        Value::Outcome(outcome) => outcome_text(outcome)?.into(),
        Value::Size(_) => {
            return Err(ErrorValue::type_error("a size as an argument has no unit: choose a unit")
                .with_hint("write `(x.bytes)`"));
        }
        Value::Duration(_) => {
            return Err(ErrorValue::type_error("a duration as an argument has no unit: choose a unit")
                .with_hint("write `(d.seconds)` or `(d.millis)`"));
        }
        other => {
            return Err(ErrorValue::type_error(format!("{} cannot be an argument of a program", other.type_name()))
                .with_hint("pass its text: `(\"{x}\")`, or `.json()`"));
        }
    })
}

fn outcome_text(outcome: &Outcome) -> Result<String, ErrorValue> {
    match outcome.out()? {
        Value::Str(text) if outcome.pid == Some(0) => Ok(text.to_string()),
        Value::Str(_) => outcome.text(),
        other => Err(ErrorValue::type_error(format!(
            "an outcome whose out is {} cannot be an argument of a program",
            other.type_name()
        ))
        .with_hint("pass `.text`")),
    }
}

/// Bytes of a value as arguments of a program: one, or one per item of a list or match of a glob.
pub(crate) fn push_arguments(machine: &mut Machine, value: &Value, argv: &mut Vec<Vec<u8>>) -> Eval<()> {
    match value {
        Value::List(list) => {
            for item in list.iter() {
                if let Value::List(_) = item {
                    return Err(ErrorValue::type_error("a list inside a list cannot be arguments of a program").into());
                }
                push_arguments(machine, item, argv)?;
            }
        }
        Value::Glob(glob) => push_matches(machine, glob, argv)?,
        Value::Path(path) => argv.push(path.as_bytes().to_vec()),
        other => argv.push(argument_text(other)?.as_bytes().to_vec()),
    }
    Ok(())
}

/// One argument per match; no match is `no_matches`.
pub(crate) fn push_matches(machine: &mut Machine, glob: &Glob, argv: &mut Vec<Vec<u8>>) -> Eval<()> {
    let matches = machine.expand_glob(glob)?;
    if matches.is_empty() {
        let text = format!("`{}` matches nothing", glob.pattern());
        return Err(ErrorValue::new(code::NO_MATCHES, text).with_hint("quote it to pass the text itself").into());
    }
    for path in matches {
        let mut bytes = path.as_bytes().to_vec();
        if bytes.first() == Some(&b'-') {
            bytes.splice(0..0, *b"./");
        }
        argv.push(bytes);
    }
    Ok(())
}
