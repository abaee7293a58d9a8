//! Fields and indexing, as far as they need neither a clock nor a file.

use crate::{ErrorValue, Leaf, Outcome, Record, Value, code};

/// `value.name`. None if the type has no such field: the evaluator then tries a method of that name. A record is strict:
/// a missing key is `field_missing`. Not here, because they need the present moment, the environment or a file:
/// `duration.ago`, `duration.from_now`, and the fields of path and env.
pub fn field(value: &Value, name: &str) -> Result<Option<Value>, ErrorValue> {
    Ok(match value {
        Value::Record(record) => Some(member(record, name)?),
        Value::Outcome(outcome) => return outcome_field(outcome, name),
        Value::Error(error) => error_field(error, name),
        Value::DateTime(at) => datetime_field(at, name),
        Value::Duration(nanos) => match name {
            "seconds" => Some(Value::Int(nanos / 1_000_000_000)),
            "millis" => Some(Value::Int(nanos / 1_000_000)),
            _ => None,
        },
        Value::Time(time) => match name {
            "hour" => Some(Value::Int(time.hour.into())),
            "minute" => Some(Value::Int(time.minute.into())),
            "second" => Some(Value::Int(time.second.into())),
            _ => None,
        },
        Value::Size(bytes) if name == "bytes" => Some(Value::Int(
            i64::try_from(*bytes).map_err(|_| ErrorValue::overflow("size overflow: it does not fit an int"))?,
        )),
        Value::Range(range) => match name {
            "start" => Some(Value::Int(range.start)),
            "end" => Some(Value::Int(range.end)),
            _ => None,
        },
        Value::Glob(glob) if name == "pattern" => Some(Value::Str(glob.pattern().clone())),
        Value::Regex(regex) if name == "pattern" => Some(Value::str(regex.src())),
        _ => None,
    })
}

/// A member of a record; missing is `field_missing` with the names there are.
pub fn member(record: &Record, key: &str) -> Result<Value, ErrorValue> {
    record.get(key).cloned().ok_or_else(|| {
        /// Names shown in the hint.
        const SHOWN: usize = 10;
        let mut names: Vec<&str> = record.keys().iter().take(SHOWN).map(|k| &**k).collect();
        if record.len() > SHOWN {
            names.push("...");
        }
        let error = ErrorValue::field_missing(format!("record has no field `{key}`"));
        if names.is_empty() { error } else { error.with_hint(format!("it has: {}", names.join(", "))) }
    })
}

fn outcome_field(outcome: &Outcome, name: &str) -> Result<Option<Value>, ErrorValue> {
    Ok(Some(match name {
        "status" => outcome.status.into(),
        "ok" => outcome.ok.into(),
        "signal" => outcome.signal.clone().into(),
        "limit" => outcome.limit.clone().into(),
        "dur" => Value::Duration(outcome.dur_ns),
        "pid" => outcome.pid.into(),
        "cmd" => outcome.cmd.clone().into(),
        "stdout" => outcome.stdout.clone().into(),
        "stderr" => outcome.stderr.clone().into(),
        "stages" => outcome.stages_table()?.into(),
        "capture" => outcome.capture_record().into(),
        "usage" => outcome.usage_record().into(),
        "out" => outcome.out()?.clone(),
        "text" => outcome.text()?.into(),
        "err" if outcome.ok => outcome.stderr.clone().into(),
        "err" => return Err(outcome.failure().with_hint("`.stderr` has its standard error and never raises")),
        _ => return field(outcome.out()?, name),
    }))
}

fn error_field(error: &ErrorValue, name: &str) -> Option<Value> {
    Some(match name {
        "code" => error.code.clone().into(),
        "msg" => error.msg.clone().into(),
        "hint" => error.hint.clone().into(),
        "stderr" => error.stderr.clone().into(),
        "stdout" => error.stdout.clone().into(),
        "status" => error.status.into(),
        "outcome" => error.outcome.clone().into(),
        "span" => error.span.map(span_record).into(),
        _ => return None,
    })
}

fn span_record(span: crate::Span) -> Record {
    let int = |n: u32| Leaf::from(i64::from(n));
    Record::leaves([
        ("start", int(span.start)),
        ("end", int(span.end)),
        ("line", int(span.line)),
        ("col", int(span.col)),
    ])
}

fn datetime_field(at: &crate::DateTime, name: &str) -> Option<Value> {
    Some(Value::Int(match name {
        "year" => at.year().into(),
        "month" => at.month().into(),
        "day" => at.day().into(),
        "hour" => at.hour().into(),
        "minute" => at.minute().into(),
        "second" => at.second().into(),
        "weekday" => at.iso_weekday(),
        "unix" => at.instant().as_second(),
        "date" => return Some(at.date_text().into()),
        _ => return None,
    }))
}

/// `value[at]`: an item, a row, a one-scalar str or a member. Negative ints count from the end. An ok outcome stands for
/// its out.
pub fn index(value: &Value, at: &Value) -> Result<Value, ErrorValue> {
    match (value, at) {
        (Value::Outcome(outcome), _) => index(outcome.out()?, at),
        (Value::List(list), Value::Int(n)) => Ok(list[place(*n, list.len())?].clone()),
        (Value::Table(table), Value::Int(n)) => Ok(table.rows()[place(*n, table.len())?].clone().into()),
        (Value::Str(text), Value::Int(n)) => {
            let at = place(*n, text.chars().count())?;
            Ok(text.chars().nth(at).map(String::from).into())
        }
        (Value::Record(record), Value::Str(key)) => member(record, key),
        _ => {
            let msg = format!("cannot index {} with {}", value.type_name(), at.type_name());
            Err(ErrorValue::type_error(msg).with_hint("parts are taken with .slice(a, b), .take(n), .skip(n)"))
        }
    }
}

/// Place of index `n` in a sequence of `len`: negative counts from the end. Fails with `index_range`.
pub fn place(n: i64, len: usize) -> Result<usize, ErrorValue> {
    let from_start = if n < 0 { n.checked_add_unsigned(len as u64) } else { Some(n) };
    from_start.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < len).ok_or_else(|| {
        let valid =
            if len == 0 { "it is empty".to_owned() } else { format!("valid: {} to {}", -(len as i128), len - 1) };
        ErrorValue::new(code::INDEX_RANGE, format!("index {n} is out of range: {valid}"))
    })
}

#[cfg(test)]
mod tests;
