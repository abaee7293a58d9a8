//! JSON text to values.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use crate::{ErrorValue, MAX_DEPTH, Record, Table, Value};

/// Reads JSON nested at most `levels` deep.
pub(crate) fn parse_within(text: &str, levels: usize) -> Result<Value, ErrorValue> {
    if nesting(text.as_bytes()) > levels {
        let msg = format!("JSON is nested deeper than {levels} levels");
        return Err(if levels == MAX_DEPTH { ErrorValue::too_large(msg) } else { ErrorValue::arg_error(msg) });
    }
    let invalid = |e: serde_json::Error| ErrorValue::arg_error(format!("invalid JSON: {e}"));
    let mut reader = serde_json::Deserializer::from_str(text);
    // The nesting is known to be within bounds; the reader's own limit of 128 is below ours.
    reader.disable_recursion_limit();
    let value = AnyValue.deserialize(&mut reader).map_err(invalid)?;
    reader.end().map_err(invalid)?;
    Ok(value)
}

/// Deepest nesting of brackets outside strings. It may be wrong for text that is not JSON, never too low for JSON.
pub(crate) fn nesting(text: &[u8]) -> usize {
    let (mut level, mut deepest, mut in_str, mut escaped) = (0usize, 0usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_str => escaped = true,
            b'"' => in_str = !in_str,
            b'[' | b'{' if !in_str => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' if !in_str => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(i64::try_from(v).map_or(Value::Float(v as f64), Value::Int))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::str(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = array.next_element_seed(AnyValue)? {
            items.push(item);
        }
        table_or_list(items).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = object.next_key::<String>()? {
            pairs.push((key, object.next_value_seed(AnyValue)?));
        }
        Record::new(pairs).map(Value::Record).map_err(A::Error::custom)
    }
}

/// A table if there are items and all are records, else a list: the rule for arrays of data formats.
pub fn table_or_list(items: Vec<Value>) -> Result<Value, ErrorValue> {
    let records = items.iter().all(|item| matches!(item, Value::Record(_)));
    if items.is_empty() || !records {
        return Value::list(items);
    }
    let rows = items.into_iter().filter_map(|item| match item {
        Value::Record(row) => Some(row),
        _ => None,
    });
    Table::new(rows.collect()).map(Value::Table)
}
