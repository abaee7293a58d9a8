//! Which method a call means.

use shoal_value::{ErrorValue, Value, code};

use crate::Ctx;
use crate::machine::Machine;
use crate::registry::{Args, Given, Method, MethodRow, Types, standard};
use crate::suggest;
use crate::unwind::Eval;
use crate::vm::Call;

/// Types whose methods other types are not known by: a name only they have is unknown elsewhere.
const OWN_WAYS: Types = Types::PATH.or(Types::STREAM).or(Types::TASK).or(Types::CHANNEL);

/// Whether the methods of a value are exactly the rows of its type.
#[inline]
pub(crate) fn is_plain(recv: &Value) -> bool {
    match recv {
        Value::Str(text) => !text.starts_with(STORED),
        Value::Record(_) | Value::Outcome(_) | Value::Glob(_) => false,
        _ => true,
    }
}

const STORED: &str = "val:blake3:";

/// Calls method `name` of `recv`. `as_field` if it was written without parentheses.
pub(crate) fn method(
    machine: &mut Machine,
    recv: Value,
    name: &str,
    row: Option<&'static MethodRow>,
    given: Given,
    as_field: bool,
) -> Eval<Call> {
    let recv = match recv {
        Value::Str(text) if text.starts_with(STORED) => stored(machine, &text)?,
        other => other,
    };
    if let Value::Record(record) = &recv
        && let Some(callee @ (Value::Closure(_) | Value::Command(_))) = record.get(name)
    {
        let callee = callee.clone();
        let n = given.positional.len();
        machine.stack.extend(given.positional);
        return machine.call_with(&callee, n, given.named);
    }
    if let Some(found) = row.and_then(|row| row.of(Types::index(&recv))) {
        return run(machine, found, recv, given);
    }
    match recv {
        Value::Outcome(outcome) => {
            let out = outcome.out()?.clone();
            if row.is_none() && !matches!(out, Value::Record(_)) && has_field(&Value::Outcome(outcome.clone()), name) {
                return Err(unknown(&Value::Outcome(outcome), name, as_field).into());
            }
            method(machine, out, name, row, given, as_field)
        }
        Value::Glob(glob) => {
            let matches = machine.expand_glob(&glob)?;
            let list = Value::list(matches.into_iter().map(Value::Path).collect())?;
            match row.and_then(|row| row.of(Types::index(&list))) {
                Some(found) => run(machine, found, list, given),
                None => Err(unknown(&list, name, as_field).into()),
            }
        }
        Value::Stream(stream) => {
            let items = crate::stream::gather(machine, &stream)?;
            let list = Value::list(items)?;
            match row.and_then(|row| row.of(Types::index(&list))) {
                Some(found) => run(machine, found, list, given),
                None => Err(unknown(&Value::Stream(stream), name, as_field).into()),
            }
        }
        other => Err(unknown(&other, name, as_field).into()),
    }
}

fn run(machine: &mut Machine, method: &'static Method, recv: Value, given: Given) -> Eval<Call> {
    let args = Args::bind(method.name, method.params, given, method.surplus_hint)?;
    (method.run)(&mut Ctx::new(machine), recv, args).map(Call::Done)
}

/// The bytes a `val:blake3:HASH` text stands for.
fn stored(machine: &Machine, text: &str) -> Eval<Value> {
    let hash = text.strip_prefix(STORED).unwrap_or(text);
    let missing = || ErrorValue::new(code::NOT_FOUND, format!("`{text}` is not in the journal/CAS"));
    let store = machine.session.host.store().ok_or_else(missing)?;
    let bytes = store.load(hash, &machine.run.cancel)?.ok_or_else(missing)?;
    machine.sized_text(bytes.len())?;
    Ok(Value::Bytes(bytes.into()))
}

/// Whether `recv.name` is a field.
fn has_field(recv: &Value, name: &str) -> bool {
    matches!(shoal_value::access::field(recv, name), Ok(Some(_)))
}

fn unknown(recv: &Value, name: &str, as_field: bool) -> ErrorValue {
    let ty = recv.type_name();
    let known = standard().methods(name).is_some_and(|row| {
        (0..Types::COUNT).any(|index| row.of(index).is_some_and(|m| m.on.but(OWN_WAYS) != Types::NONE))
    });
    if known {
        let error = match shoal_value::convert::to_str(recv) {
            Err(error) if matches!(name, "str" | "display") => error,
            _ => ErrorValue::type_error(format!("`.{name}` does not work on {ty}")),
        };
        return match recv {
            Value::Null => error.with_hint(format!("write `?.{name}` if null is fine")),
            _ => error,
        };
    }
    let text =
        if as_field { format!("{ty} has no field `{name}`") } else { format!("unknown method `.{name}` on {ty}") };
    let error = ErrorValue::field_missing(text);
    if !as_field && (standard().field(name, Types::index(recv)).is_some() || has_field(recv, name)) {
        return error.with_hint(format!("`{name}` is a field: write `.{name}` without parentheses"));
    }
    match suggest::method(recv, name) {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
