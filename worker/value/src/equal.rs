//! Equality, and hashing that agrees with it.

use std::hash::{Hash, Hasher};

use crate::order::int_vs_float;
use crate::{Bytes, ErrorValue, List, Record, Str, Table, Value, handle};

/// `a == b`. Fails only when exactly one side is a stream (`type_error`).
pub fn equal(a: &Value, b: &Value) -> Result<bool, ErrorValue> {
    use Value as V;
    Ok(match (a, b) {
        (V::Null, V::Null) => true,
        (V::Bool(a), V::Bool(b)) => a == b,
        (V::Int(a), V::Int(b)) => a == b,
        (V::Float(a), V::Float(b)) => a == b,
        (V::Int(i), V::Float(f)) | (V::Float(f), V::Int(i)) => int_vs_float(*i, *f).is_some_and(|o| o.is_eq()),
        (V::Str(a), V::Str(b)) => a == b,
        (V::Path(a), V::Path(b)) => a == b,
        (V::Path(path), V::Str(text)) | (V::Str(text), V::Path(path)) => path.as_bytes() == text.as_bytes(),
        (V::Glob(a), V::Glob(b)) => a.pattern() == b.pattern(),
        (V::Regex(a), V::Regex(b)) => a.src() == b.src(),
        (V::Size(a), V::Size(b)) => a == b,
        (V::Duration(a), V::Duration(b)) => a == b,
        (V::DateTime(a), V::DateTime(b)) => a.instant() == b.instant(),
        (V::Time(a), V::Time(b)) => a == b,
        (V::Bytes(a), V::Bytes(b)) => equal_bytes(a, b),
        (V::List(a), V::List(b)) => equal_lists(a, b)?,
        (V::Record(a), V::Record(b)) => equal_records(a, b)?,
        (V::Table(a), V::Table(b)) => equal_tables(a, b)?,
        (V::Table(table), V::List(list)) | (V::List(list), V::Table(table)) => equal_rows(table, list)?,
        (V::Range(a), V::Range(b)) => a == b,
        (V::Error(a), V::Error(b)) => a.code == b.code && a.msg == b.msg,
        (V::Channel(a), V::Channel(b)) | (V::Secret(a), V::Secret(b)) => a == b,
        (V::Outcome(a), V::Outcome(b)) => a.same(b),
        (V::Task(a), V::Task(b)) => handle::same(a, b),
        (V::Command(a), V::Command(b)) => handle::same(a, b),
        (V::Closure(a), V::Closure(b)) => {
            let by_name = a.builtin_name().is_some() && a.builtin_name() == b.builtin_name();
            by_name || handle::same(a, b)
        }
        (V::Stream(a), V::Stream(b)) => handle::same(a, b),
        (V::Stream(_), other) | (other, V::Stream(_)) => {
            let msg = format!("cannot compare stream with {}", other.type_name());
            return Err(ErrorValue::type_error(msg).with_hint("gather it first: .collect()"));
        }
        _ => false,
    })
}

/// Length first, then contents. Stored bytes are compared by their hash, without loading them.
fn equal_bytes(a: &Bytes, b: &Bytes) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a, b) {
        (Bytes::Held(a), Bytes::Held(b)) => a == b,
        (Bytes::Stored(a), Bytes::Stored(b)) => a.hash == b.hash,
        (Bytes::Held(held), Bytes::Stored(stored)) | (Bytes::Stored(stored), Bytes::Held(held)) => {
            *blake3::hash(held).to_hex() == *stored.hash
        }
        (Bytes::Cut(a), Bytes::Cut(b)) => a.total == b.total && a.head == b.head && a.tail == b.tail,
        (Bytes::Cut(_), _) | (_, Bytes::Cut(_)) => false,
    }
}

fn equal_lists(a: &List, b: &List) -> Result<bool, ErrorValue> {
    if a.len() != b.len() {
        return Ok(false);
    }
    all(a.iter().zip(b.iter()), |(a, b)| equal(a, b))
}

fn equal_records(a: &Record, b: &Record) -> Result<bool, ErrorValue> {
    if a.len() != b.len() {
        return Ok(false);
    }
    all(a.iter(), |(key, value)| b.get(key).map_or(Ok(false), |other| equal(value, other)))
}

fn equal_tables(a: &Table, b: &Table) -> Result<bool, ErrorValue> {
    if a.len() != b.len() {
        return Ok(false);
    }
    all(a.rows().iter().zip(b.rows()), |(a, b)| equal_records(a, b))
}

fn equal_rows(table: &Table, list: &List) -> Result<bool, ErrorValue> {
    if table.len() != list.len() {
        return Ok(false);
    }
    all(table.rows().iter().zip(list.iter()), |(row, item)| match item {
        Value::Record(record) => equal_records(row, record),
        _ => Ok(false),
    })
}

fn all<T>(
    items: impl Iterator<Item = T>,
    mut test: impl FnMut(T) -> Result<bool, ErrorValue>,
) -> Result<bool, ErrorValue> {
    for item in items {
        if !test(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A value as a key of a hash set or map, by `==`. A stream equals only itself; NaN equals nothing, so it is always new.
#[derive(Clone, Debug)]
pub struct ByEquality(pub Value);

impl PartialEq for ByEquality {
    fn eq(&self, other: &Self) -> bool {
        equal(&self.0, &other.0).unwrap_or(false)
    }
}

impl Eq for ByEquality {}

impl Hash for ByEquality {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

/// Feeds `state` so that values which are `==` feed it alike. Values that are hard to hash feed only their kind.
pub fn hash<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Null => state.write_u8(0),
        Value::Bool(v) => state.write_u8(1 + u8::from(*v)),
        Value::Int(v) => state.write_i64(*v),
        Value::Float(v) => hash_float(*v, state),
        Value::Str(v) => state.write(v.as_bytes()),
        Value::Path(v) => state.write(v.as_bytes()),
        Value::Glob(v) => hash_text(3, v.pattern(), state),
        Value::Regex(v) => hash_text(4, v.src(), state),
        Value::Size(v) => (5u8, v).hash(state),
        Value::Duration(v) => (6u8, v).hash(state),
        Value::DateTime(v) => (7u8, v.instant().as_nanosecond()).hash(state),
        Value::Time(v) => (8u8, v).hash(state),
        Value::Bytes(v) => (9u8, v.len()).hash(state),
        Value::List(v) => {
            state.write_usize(v.len());
            v.iter().for_each(|item| hash(item, state));
        }
        Value::Table(v) => {
            state.write_usize(v.len());
            v.rows().iter().for_each(|row| hash_record(row, state));
        }
        Value::Record(v) => hash_record(v, state),
        Value::Range(v) => (10u8, v).hash(state),
        Value::Error(v) => hash_text(11, &v.msg, state),
        Value::Channel(v) => hash_text(12, v, state),
        Value::Secret(v) => hash_text(13, v, state),
        Value::Closure(v) => hash_text(14, &v.builtin_name().unwrap_or_default(), state),
        Value::Stream(_) | Value::Outcome(_) | Value::Task(_) | Value::Command(_) => state.write_u8(15),
    }
}

fn hash_text<H: Hasher>(kind: u8, text: &(impl AsRef<str> + ?Sized), state: &mut H) {
    state.write_u8(kind);
    state.write(text.as_ref().as_bytes());
}

/// A float that equals an int hashes like it.
fn hash_float<H: Hasher>(float: f64, state: &mut H) {
    let whole = float as i64;
    if int_vs_float(whole, float).is_some_and(|o| o.is_eq()) {
        state.write_i64(whole);
    } else {
        state.write_u64(float.to_bits());
    }
}

/// The order of keys does not matter, so the hashes of the members are added up.
fn hash_record<H: Hasher>(record: &Record, state: &mut H) {
    let member = |(key, value): (&Str, &Value)| {
        let mut inner = std::hash::DefaultHasher::new();
        key.hash(&mut inner);
        hash(value, &mut inner);
        inner.finish()
    };
    state.write_usize(record.len());
    state.write_u64(record.iter().map(member).fold(0, u64::wrapping_add));
}

#[cfg(test)]
mod tests;
