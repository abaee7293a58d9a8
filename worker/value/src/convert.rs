//! Conversions a program asks for, and the coercion of command words to typed parameters.

use jiff::tz::TimeZone;

use crate::{Bytes, DateTime, ErrorValue, Glob, List, MAX_ITEMS, PathValue, Regex, Str, TimeOfDay, Value, code, units};

/// `.str()`: text of a str, a number, a bool, or of a path or bytes that are UTF-8 (`utf8_error` otherwise).
pub fn to_str(value: &Value) -> Result<Str, ErrorValue> {
    let not_utf8 = |what: &str| ErrorValue::new(code::UTF8_ERROR, format!("{what} is not UTF-8"));
    Ok(match value {
        Value::Path(path) => path.to_str().ok_or_else(|| not_utf8("path").with_hint("`.display()` replaces"))?.into(),
        Value::Bytes(Bytes::Held(held)) => {
            std::str::from_utf8(held).map_err(|_| not_utf8("bytes").with_hint("`.display()` replaces"))?.into()
        }
        Value::Bytes(Bytes::Cut(cut)) => return Err(cut.refusal()),
        Value::Bytes(Bytes::Stored(_)) => {
            return Err(ErrorValue::too_large("stored bytes are not in memory").with_hint("load them first: .load()"));
        }
        other => scalar_text(other)?,
    })
}

/// `.display()`: the same, with what is not UTF-8 replaced; of stored bytes the preview, of cut bytes with the marker.
pub fn display(value: &Value) -> Result<Str, ErrorValue> {
    match value {
        Value::Path(path) => Ok(path.display().into()),
        Value::Bytes(bytes) => Ok(bytes.to_text_lossy().into()),
        other => scalar_text(other),
    }
}

fn scalar_text(value: &Value) -> Result<Str, ErrorValue> {
    Ok(match value {
        Value::Str(text) => text.clone(),
        Value::Int(n) => n.to_string().into(),
        Value::Float(f) => units::format_float(*f).into(),
        Value::Bool(truth) => truth.to_string().into(),
        other => {
            let msg = format!("`.str()` does not work on {}: use interpolation", other.type_name());
            return Err(ErrorValue::type_error(msg).with_hint("\"{x}\" shows any value"));
        }
    })
}

/// `.int()`: an int; a float cut to its whole part; a str as decimal text; a size in bytes.
pub fn to_int(value: &Value) -> Result<i64, ErrorValue> {
    match value {
        Value::Int(n) => Ok(*n),
        Value::Float(f) => float_to_int(*f),
        Value::Str(text) => parse_int(text),
        Value::Size(bytes) => {
            i64::try_from(*bytes).map_err(|_| ErrorValue::overflow("size overflow: it does not fit an int"))
        }
        other => Err(unsuited("int", other)),
    }
}

/// The whole part of a float. Not a number, infinite or out of range is `overflow`.
pub fn float_to_int(float: f64) -> Result<i64, ErrorValue> {
    /// 2^63, the first float above every int.
    const ABOVE: f64 = 9_223_372_036_854_775_808.0;
    let whole = float.trunc();
    if (-ABOVE..ABOVE).contains(&whole) {
        return Ok(whole as i64);
    }
    Err(ErrorValue::overflow(format!("{} does not fit an int", units::format_float(float))))
}

/// `.float()`: an int, a float, or a str as decimal text.
pub fn to_float(value: &Value) -> Result<f64, ErrorValue> {
    match value {
        Value::Int(n) => Ok(*n as f64),
        Value::Float(f) => Ok(*f),
        Value::Str(text) => parse_float(text),
        other => Err(unsuited("float", other)),
    }
}

/// `.list()` of a list, the rows of a table or the ints of a range. Globs are expanded by the evaluator first.
pub fn to_list(value: &Value) -> Result<List, ErrorValue> {
    match value {
        Value::List(list) => Ok(list.clone()),
        Value::Table(table) => Ok(table.to_list()),
        Value::Range(range) if range.count() > MAX_ITEMS as u128 => {
            Err(ErrorValue::too_large(format!("range has {} items, more than 50,000,000", range.count())))
        }
        Value::Range(range) => Ok(List::leaves(range.iter())),
        other => Err(unsuited("list", other)),
    }
}

fn unsuited(method: &str, value: &Value) -> ErrorValue {
    ErrorValue::type_error(format!("`.{method}` does not work on {}", value.type_name()))
}

/// `.parse_int()` of text. Fails with `arg_error`.
pub fn parse_int(text: &str) -> Result<i64, ErrorValue> {
    units::parse_int(text).map_err(|e| unit_error("int", text, e))
}

/// `.parse_float()` of text. Fails with `arg_error`.
pub fn parse_float(text: &str) -> Result<f64, ErrorValue> {
    units::parse_float(text).map_err(|e| unit_error("float", text, e))
}

/// `.parse_size()` of text, in bytes. Fails with `arg_error`.
pub fn parse_size(text: &str) -> Result<u64, ErrorValue> {
    units::parse_size(text).map_err(|e| unit_error("size", text, e))
}

/// `.parse_duration()` of text, in nanoseconds. Fails with `arg_error`.
pub fn parse_duration(text: &str) -> Result<i64, ErrorValue> {
    units::parse_duration(text).map_err(|e| unit_error("duration", text, e))
}

fn unit_error(kind: &str, text: &str, error: units::UnitError) -> ErrorValue {
    let msg = match error {
        units::UnitError::Malformed => format!("expected {kind}, found \"{text}\""),
        units::UnitError::OutOfRange => format!("expected {kind}, found \"{text}\": out of range"),
    };
    let hint = match kind {
        "size" => Some("a number and b, kb, mb, gb, tb, kib, mib, gib or tib: 10mb"),
        "duration" => Some("numbers with w, d, h, m, s, ms, us or ns: 1m30s"),
        _ => None,
    };
    let error = ErrorValue::arg_error(msg);
    if let Some(hint) = hint { error.with_hint(hint) } else { error }
}

/// What the coercion of a word depends on besides the word.
#[derive(Clone, Copy, Debug)]
pub struct WordContext<'a> {
    /// Directory in which a glob is made.
    pub cwd: &'a PathValue,
    /// Zone of a datetime without one.
    pub local: &'a TimeZone,
}

/// A word of a command-form call for a parameter of type `type_name`. Types that words do not coerce to leave it a str:
/// the check of the parameter's type then refuses it. Fails with `arg_error` `expected T, found "word"`.
pub fn coerce_word(word: &str, type_name: &str, context: WordContext<'_>) -> Result<Value, ErrorValue> {
    let refused = || ErrorValue::arg_error(format!("expected {type_name}, found \"{word}\""));
    Ok(match type_name {
        "int" => Value::Int(parse_int(word)?),
        "float" => Value::Float(parse_float(word)?),
        "bool" => match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return Err(refused().with_hint("write true or false")),
        },
        "size" => Value::Size(parse_size(word)?),
        "duration" => Value::Duration(parse_duration(word)?),
        "time" => Value::Time(TimeOfDay::parse(word).ok_or_else(refused)?),
        "datetime" => Value::DateTime(
            DateTime::parse(word, context.local).map_err(|e| refused().with(|body| body.hint = e.hint.clone()))?,
        ),
        "path" => Value::Path(word.into()),
        "glob" => Value::Glob(Glob::new(word, context.cwd.clone(), false)),
        "regex" => Value::Regex(Regex::new(word).map_err(|e| refused().with_hint(e.msg.clone()))?),
        _ => Value::str(word),
    })
}

#[cfg(test)]
mod tests;
