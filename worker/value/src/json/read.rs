//! JSON text to values.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use crate::record::Shape;
use crate::{ErrorValue, MAX_DEPTH, Record, Str, Table, Value};

/// Reads JSON nested at most `levels` deep.
pub(crate) fn parse_within(text: &str, levels: usize) -> Result<Value, ErrorValue> {
    let reading = Reading { levels, ..Reading::default() };
    let mut reader = serde_json::Deserializer::from_str(text);
    // The reader's own limit of 128 is below ours.
    reader.disable_recursion_limit();
    let value = reading.at(0).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|e| {
        if !reading.is_too_deep.get() {
            return ErrorValue::arg_error(format!("invalid JSON: {e}"));
        }
        let msg = format!("JSON is nested deeper than {levels} levels");
        if levels == MAX_DEPTH { ErrorValue::too_large(msg) } else { ErrorValue::arg_error(msg) }
    })
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

/// What the values of one text have in common.
#[derive(Default)]
struct Reading {
    levels: usize,
    is_too_deep: Cell<bool>,
    /// The keys of the object read last, by level: rows that follow each other share them.
    shapes: RefCell<Vec<Option<Arc<Shape>>>>,
    /// Members of the objects that are being read.
    members: RefCell<Vec<Value>>,
}

impl Reading {
    fn at(&self, level: usize) -> AnyValue<'_> {
        AnyValue { reading: self, level }
    }

    fn take_shape(&self, level: usize) -> Option<Arc<Shape>> {
        self.shapes.borrow_mut().get_mut(level).and_then(Option::take)
    }

    fn keep_shape(&self, level: usize, shape: Arc<Shape>) {
        let mut shapes = self.shapes.borrow_mut();
        if shapes.len() <= level {
            shapes.resize(level + 1, None);
        }
        shapes[level] = Some(shape);
    }
}

/// A value inside `level` containers.
#[derive(Clone, Copy)]
struct AnyValue<'r> {
    reading: &'r Reading,
    level: usize,
}

impl AnyValue<'_> {
    /// A value inside this one, which is a container.
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.level < self.reading.levels {
            return Ok(Self { level: self.level + 1, ..self });
        }
        self.reading.is_too_deep.set(true);
        Err(E::custom("nested too deep"))
    }

    /// Reads members as long as their keys are those of `shape`, in order, and puts their values with the others. Gives how
    /// many there were, and the key that is another one.
    fn members_like<'de, A: MapAccess<'de>>(
        self,
        object: &mut A,
        shape: &Shape,
    ) -> Result<(usize, Option<Str>), A::Error> {
        let mut expected = shape.keys().iter();
        loop {
            let read = shape.keys().len() - expected.len();
            match object.next_key_seed(Key { expected: expected.next().map(|key| &**key) })? {
                None => return Ok((read, None)),
                Some(Some(other)) => return Ok((read, Some(other))),
                Some(None) => {
                    let value = object.next_value_seed(self)?;
                    self.reading.members.borrow_mut().push(value);
                }
            }
        }
    }
}

/// A key, unless it is the one expected.
struct Key<'k> {
    expected: Option<&'k str>,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<Str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Option<Str>, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<Str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<Str>, E> {
        Ok(if self.expected == Some(key) { None } else { Some(key.into()) })
    }
}

impl<'de> DeserializeSeed<'de> for AnyValue<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue<'_> {
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
        let inner = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = array.next_element_seed(inner)? {
            items.push(item);
        }
        table_or_list(items).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let (reading, inner) = (self.reading, self.inner()?);
        let from = reading.members.borrow().len();
        let shape = reading.take_shape(self.level).unwrap_or_else(|| Shape::new([""; 0]));
        let (read, other) = inner.members_like(&mut object, &shape)?;
        let record = if other.is_none() && read == shape.keys().len() {
            let mut members = reading.members.borrow_mut();
            let record = Record::of_taken(&shape, &mut members[from..]);
            members.truncate(from);
            record
        } else {
            let mut keys = shape.keys()[..read].to_vec();
            let mut next = other;
            while let Some(key) = next {
                keys.push(key);
                let value = object.next_value_seed(inner)?;
                reading.members.borrow_mut().push(value);
                next = object.next_key_seed(Key { expected: None })?.flatten();
            }
            Record::new(keys.into_iter().zip(reading.members.borrow_mut().drain(from..)))
        };
        let record = record.map_err(A::Error::custom)?;
        reading.keep_shape(self.level, record.shape().clone());
        Ok(Value::Record(record))
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
