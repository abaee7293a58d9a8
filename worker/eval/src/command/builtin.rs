//! Builtin commands: flags, conversion of words, and the outcome around the value.

use shoal_value::{ErrorValue, PathValue, Str, Value};

use super::resolve::value_bytes;
use super::{FlagWord, Invocation, RedirectForm, Word, flag_text};
use crate::Ctx;
use crate::ctx::builtin_outcome;
use crate::machine::Machine;
use crate::registry::{Command, CommandArgs, Done, Flag, Types, Words};
use crate::types::Type;
use crate::unwind::Eval;
use crate::vm::Call;

impl Machine {
    /// Whether `^name` means the program although there is a builtin: it has an input redirect or an unknown flag.
    pub(super) fn forces_program(&self, command: &Command, invocation: &Invocation<'_>) -> bool {
        let has_input = invocation.redirects.iter().any(|(kind, _)| *kind == RedirectForm::In);
        has_input
            || !takes_any_word(command)
                && invocation.words.iter().any(|word| match word {
                    Word::Long { name, .. } => **name != *"help" && long(command, name).is_none(),
                    Word::Short { letters, .. } => {
                        !is_negative_number(letters) && letters.chars().any(|c| short(command, c).is_none())
                    }
                    _ => false,
                })
    }

    pub(super) fn invoke_builtin(&mut self, command: &'static Command, invocation: Invocation<'_>) -> Eval<Call> {
        let Invocation { site, env, words, redirects, block } = invocation;
        if redirects.iter().any(|(kind, _)| *kind == RedirectForm::In) {
            let name = command.name;
            let error = ErrorValue::arg_error(format!("`{name}` takes no stdin"));
            return Err(error.with_hint(format!("the program does: `^{name} < file`")).into());
        }
        if block.is_some() {
            return Err(stray_block(command.name).into());
        }
        if !takes_any_word(command) && words.iter().any(|w| matches!(w, Word::Long { name, .. } if **name == *"help")) {
            self.run.sink.text(&format!("{}\n{}\n", command.synopsis, command.doc));
            return Ok(Call::Done(Value::Null));
        }
        let args = self.builtin_args(command, words)?;
        if args.unmatched {
            Ctx::new(self).note(format!("a glob word of `{}` matched nothing", command.name));
        }
        check_arity(command, &args)?;
        let kept = self.place.env.clone();
        for (name, word) in env {
            if let Some(value) = self.env_word(&name, word)? {
                self.place.env.insert_mut(name, value);
            }
        }
        let has_prefix = !site.env.is_empty();
        let clock = self.session.host.clone();
        let began = clock.clock().monotonic_ns();
        let done = (command.run)(&mut Ctx::new(self), args);
        if has_prefix {
            self.place.env = kept;
        }
        let Done { out, stdout } = done?;
        let elapsed = clock.clock().monotonic_ns().saturating_sub(began);
        if !redirects.is_empty() {
            return self.redirect_value(command.name, out, stdout, &redirects).map(Call::Done);
        }
        if !command.outcome {
            return Ok(Call::Done(out));
        }
        let stdout = stdout.unwrap_or_else(|| value_bytes(&out));
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        Ok(Call::Done(builtin_outcome(command.name, out, stdout, elapsed)))
    }

    fn builtin_args(&mut self, command: &'static Command, words: Vec<Word>) -> Eval<CommandArgs> {
        let mut args = CommandArgs::default();
        let raw_words = takes_any_word(command);
        let mut flags_ended = raw_words;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word {
                Word::DashDash if !flags_ended => flags_ended = true,
                Word::Long { name, raw, value } if !flags_ended => {
                    let flag = long(command, &name).ok_or_else(|| unknown_flag(command, &raw))?;
                    let value = self.flag(flag, &raw, value, &mut words)?;
                    args.flags.push((flag.long, value));
                }
                Word::Short { letters, raw } if !flags_ended && !is_negative_number(&letters) => {
                    for letter in letters.chars() {
                        let flag = short(command, letter).ok_or_else(|| unknown_flag(command, &raw))?;
                        args.flags.push((flag.long, Value::Bool(true)));
                    }
                }
                word => self.builtin_positional(command, word, &mut args)?,
            }
        }
        Ok(args)
    }

    fn flag(
        &mut self,
        flag: &'static Flag,
        raw: &str,
        value: FlagWord,
        words: &mut impl Iterator<Item = Word>,
    ) -> Eval<Value> {
        let Some(types) = flag.value else {
            return match value {
                FlagWord::None => Ok(Value::Bool(true)),
                FlagWord::Given(word) => match *word {
                    Word::Value(value @ Value::Bool(_)) => Ok(value),
                    _ => Err(ErrorValue::arg_error(format!("`--{}` takes no value", flag.long)).into()),
                },
                FlagWord::Next => Err(ErrorValue::arg_error(format!("`--{}` takes no value", flag.long)).into()),
            };
        };
        let word = match value {
            FlagWord::Given(word) => *word,
            FlagWord::None | FlagWord::Next => words
                .next()
                .ok_or_else(|| ErrorValue::arg_error(format!("{} requires a value", raw.trim_end_matches('='))))?,
        };
        let ty = Type { types, item: None, nullable: false };
        let value = match word {
            Word::Plain(text) | Word::Text(text) => self.coerce_as(&ty, &text)?,
            Word::Value(value) => value,
            _ => return Err(ErrorValue::arg_error(format!("{raw} requires a value")).into()),
        };
        if types.has(&value) {
            return Ok(value);
        }
        let text = format!("--{}: expected {}, found {}", flag.long, types.text(), value.type_name());
        Err(ErrorValue::arg_error(text).into())
    }

    fn builtin_positional(&mut self, command: &Command, word: Word, args: &mut CommandArgs) -> Eval<()> {
        match word {
            Word::Plain(text) | Word::Text(text) => self.push_word(command, Value::Str(text), args),
            Word::Long { raw, value, .. } => self.push_word(command, Value::Str(flag_text(&raw, &value)?), args),
            Word::Short { raw, .. } => self.push_word(command, Value::Str(raw), args),
            Word::DashDash => self.push_word(command, Value::str("--"), args),
            Word::Glob(pattern) => {
                let glob = self.glob_of(&pattern);
                self.push_matches(command, &glob, args)
            }
            Word::Value(Value::Glob(glob)) => self.push_matches(command, &glob, args),
            Word::Value(Value::List(list)) if spreads(command) => {
                for item in list.iter() {
                    self.push_word(command, item.clone(), args)?;
                }
                Ok(())
            }
            Word::Value(Value::Outcome(outcome)) if spreads(command) && command.words != Words::Values => {
                match outcome.out()?.clone() {
                    Value::List(list) => list.iter().try_for_each(|item| self.push_word(command, item.clone(), args)),
                    out => self.push_word(command, out, args),
                }
            }
            Word::Value(value) => self.push_word(command, value, args),
        }
    }

    fn push_matches(&mut self, command: &Command, glob: &shoal_value::Glob, args: &mut CommandArgs) -> Eval<()> {
        let matches = self.expand_glob(glob)?;
        args.unmatched |= matches.is_empty();
        matches.into_iter().try_for_each(|path| self.push_word(command, Value::Path(path), args))
    }

    /// Adds an argument as what the command's words become.
    fn push_word(&mut self, command: &Command, value: Value, args: &mut CommandArgs) -> Eval<()> {
        let wants_path = match command.words {
            Words::Paths => true,
            Words::PathThenValues => args.args.is_empty(),
            Words::Values | Words::Durations | Words::Texts => false,
        };
        let value = match (command.words, value) {
            (_, Value::Str(text)) if wants_path => Value::Path(PathValue::from(&*text)),
            (_, path @ Value::Path(_)) if wants_path => path,
            (_, Value::Record(record)) if wants_path && record.get("path").is_some() => {
                return self.push_word(command, record.get("path").cloned().unwrap_or(Value::Null), args);
            }
            (Words::Durations, Value::Str(text)) => {
                self.coerce_as(&Type { types: Types::DURATION, item: None, nullable: false }, &text)?
            }
            (Words::Texts, text @ Value::Str(_)) => text,
            (Words::Texts, Value::Path(path)) => Value::str(path.display().into_owned()),
            (Words::Texts, other) => return Err(expected(command, "str", &other).into()),
            (_, other) if wants_path => return Err(expected(command, "path", &other).into()),
            (_, other) => other,
        };
        args.args.push(value);
        Ok(())
    }

    /// The bytes of an environment value; null removes the variable.
    pub(crate) fn env_word(&mut self, name: &Str, word: Word) -> Eval<Option<std::sync::Arc<[u8]>>> {
        let value = match word {
            Word::Plain(text) | Word::Text(text) | Word::Glob(text) => Value::Str(text),
            Word::Long { raw, value, .. } => Value::Str(flag_text(&raw, &value)?),
            Word::Short { raw, .. } => Value::Str(raw),
            Word::DashDash => Value::str("--"),
            Word::Value(value) => value,
        };
        self.env_value(name, &value)
    }
}

fn takes_any_word(command: &Command) -> bool {
    matches!(command.name, "echo" | "run")
}

/// Whether a list in a group becomes one argument per item.
fn spreads(command: &Command) -> bool {
    command.words != Words::PathThenValues && command.name != "echo"
}

/// `-5` is a number, not flags.
fn is_negative_number(letters: &str) -> bool {
    letters.starts_with(|c: char| c.is_ascii_digit())
}

fn long(command: &Command, name: &str) -> Option<&'static Flag> {
    let name = name.replace('_', "-");
    command.flags.iter().find(|flag| flag.long == name)
}

fn short(command: &Command, letter: char) -> Option<&'static Flag> {
    command.flags.iter().find(|flag| flag.short.contains(letter))
}

fn unknown_flag(command: &Command, raw: &str) -> ErrorValue {
    let known: Vec<String> = command
        .flags
        .iter()
        .map(|flag| match flag.short {
            "" => format!("--{}", flag.long),
            short => format!("-{}, --{}", short.chars().next().unwrap_or_default(), flag.long),
        })
        .collect();
    let known = if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join("; ")) };
    let name = command.name;
    ErrorValue::arg_error(format!("{name}: unknown flag {raw}: {known}"))
        .with_hint(format!("`^{name} ...` runs the program of that name"))
}

fn check_arity(command: &Command, args: &CommandArgs) -> Result<(), ErrorValue> {
    let (least, most) = command.arity;
    let n = args.args.len();
    if n >= least && n <= most {
        return Ok(());
    }
    let name = command.name;
    let text = if n < least {
        format!("{name}: missing argument, got {n} of at least {least}")
    } else if most == 0 {
        format!("{name} takes no arguments, got {n}")
    } else {
        let arguments = if most == 1 { "argument" } else { "arguments" };
        format!("{name}: expected at most {most} {arguments}, got {n}")
    };
    Err(ErrorValue::arg_error(text).with_hint(format!("usage: {}", command.synopsis)))
}

fn expected(command: &Command, ty: &str, value: &Value) -> ErrorValue {
    ErrorValue::type_error(format!("{}: expected {ty}, found {}", command.name, value.type_name()))
}

pub(super) fn stray_block(head: &str) -> ErrorValue {
    ErrorValue::arg_error(format!("`{head}` takes no block, and there is no brace expansion"))
        .with_hint("a list in ( ) gives several arguments, quotes make the braces text")
}
