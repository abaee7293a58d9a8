//! `with`, and the entries of statements in the journal.

use std::sync::Arc;

use shoal_value::{ErrorValue, PathValue, Record, Value};

use super::frame::SavedPlace;
use crate::code::{Place, Unit, WithParts};
use crate::host::session::StatementEnd;
use crate::machine::Machine;
use crate::reef::Overlay;
use crate::unwind::{Eval, Unwind};

impl Machine {
    /// Enters a `with`: the values of its parts lie on the stack in the order cwd, env, reef.
    pub(super) fn enter_with(&mut self, parts: WithParts) -> Eval<()> {
        let count = u32::from(parts.cwd) + u32::from(parts.env) + u32::from(parts.reef);
        let mut values = self.take(count).into_iter();
        let mut place = self.place.clone();
        if parts.cwd {
            let path = match values.next() {
                Some(Value::Str(text)) => PathValue::from(&*self.expand_home(&text)?),
                Some(Value::Path(path)) => path,
                other => return Err(wrong("cwd", "str or path", &other.unwrap_or(Value::Null)).into()),
            };
            place.cwd = self.open_dir(&path)?;
        }
        if parts.env {
            let Some(Value::Record(vars)) = values.next() else {
                return Err(ErrorValue::type_error("with env: expected record").into());
            };
            for (name, value) in vars.iter() {
                self.session.host.judge_env(true, name)?;
                match self.env_value(name, value)? {
                    Some(bytes) => place.env.insert_mut(name.clone(), bytes),
                    None => drop(place.env.remove_mut(&**name)),
                }
            }
        }
        if parts.reef {
            match values.next() {
                Some(Value::Record(tools)) => {
                    if !self.session.host.reads_manifests() {
                        return Err(crate::reef::off("with reef:").into());
                    }
                    place.reef = Some(Arc::new(overlay(&tools, place.reef.take())?));
                }
                other => return Err(wrong("reef", "record", &other.unwrap_or(Value::Null)).into()),
            }
        }
        self.places.push(SavedPlace { place: std::mem::replace(&mut self.place, place) });
        Ok(())
    }

    pub(super) fn statement_begin(&mut self, unit: Arc<Unit>, place: Place) -> Eval<()> {
        let host = self.session.host.clone();
        if let Some(journal) = host.journal() {
            self.entry = Some(journal.statement_begin(unit.text(place), unit.span(place))?);
        }
        Ok(())
    }

    /// Finishes the open entry with the value on top of the stack, or with what ended the program.
    pub(crate) fn statement_end(&mut self, unwind: Option<&Unwind>) {
        let Some(entry) = self.entry.take() else { return };
        let host = self.session.host.clone();
        let Some(journal) = host.journal() else { return };
        let end = match (unwind, self.stack.last()) {
            (Some(Unwind::Raise(error)), _) => {
                StatementEnd { ok: false, status: error.status, code: Some(error.code.clone()) }
            }
            (Some(Unwind::Stop(stop)), _) => match stop.error() {
                Some(error) => StatementEnd { ok: false, status: None, code: Some(error.code.clone()) },
                None => StatementEnd { ok: true, status: None, code: None },
            },
            (None, Some(Value::Outcome(outcome))) => {
                StatementEnd { ok: outcome.ok, status: outcome.status, code: None }
            }
            (None, _) => StatementEnd { ok: true, status: None, code: None },
        };
        journal.statement_end(entry, end);
    }
}

/// The constraints of a `with reef:` inside `outer`.
fn overlay(tools: &Record, outer: Option<Arc<Overlay>>) -> Result<Overlay, ErrorValue> {
    let wanted = tools.iter().map(|(name, constraint)| match constraint {
        Value::Str(constraint) => Ok((name.clone(), constraint.clone())),
        other => Err(ErrorValue::type_error(format!("with reef: {name}: expected str, found {}", other.type_name()))
            .with_hint("a version is text: \"22\", \"*\"")),
    });
    Ok(Overlay { tools: wanted.collect::<Result<_, _>>()?, outer })
}

fn wrong(part: &str, expected: &str, found: &Value) -> ErrorValue {
    ErrorValue::type_error(format!("with {part}: expected {expected}, found {}", found.type_name()))
}
