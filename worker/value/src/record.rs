//! Records: ordered string keys to values.
//!
//! A record is a shared [`Shape`] (its keys) and its values, so the rows of a table that were made alike share their keys.

use std::collections::HashMap;
use std::sync::Arc;

use triomphe::ThinArc;

use crate::value::check_depth;
use crate::{Bytes, DateTime, ErrorValue, Glob, PathValue, Range, Regex, Str, TimeOfDay, Value};

/// Shapes with at most this many keys are searched in line: it is faster than hashing, and needs no index.
const LINEAR_KEYS: usize = 8;

/// Distinct keys in order.
#[derive(Debug)]
pub struct Shape {
    keys: Box<[Str]>,
    index: Option<HashMap<Str, usize>>,
}

impl Shape {
    /// A shape of these keys; of a repeated key the first place counts.
    pub fn new(keys: impl IntoIterator<Item = impl Into<Str>>) -> Arc<Self> {
        let mut building = Building::default();
        for key in keys {
            building.place(key.into());
        }
        building.finish()
    }

    /// Place of `key`.
    pub fn place(&self, key: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(key).copied(),
            None => self.keys.iter().position(|k| **k == *key),
        }
    }

    /// Keys in order.
    pub fn keys(&self) -> &[Str] {
        &self.keys
    }
}

#[derive(Default)]
struct Building {
    keys: Vec<Str>,
    index: HashMap<Str, usize>,
}

impl Building {
    fn place(&mut self, key: Str) -> usize {
        if self.keys.len() <= LINEAR_KEYS {
            if let Some(at) = self.keys.iter().position(|k| *k == key) {
                return at;
            }
        } else {
            if self.index.is_empty() {
                self.index = self.keys.iter().cloned().zip(0..).collect();
            }
            if let Some(at) = self.index.get(&key) {
                return *at;
            }
            self.index.insert(key.clone(), self.keys.len());
        }
        self.keys.push(key);
        self.keys.len() - 1
    }

    fn finish(mut self) -> Arc<Shape> {
        if self.keys.len() > LINEAR_KEYS && self.index.len() < self.keys.len() {
            self.index = self.keys.iter().cloned().zip(0..).collect();
        }
        let index = (self.keys.len() > LINEAR_KEYS).then_some(self.index);
        Arc::new(Shape { keys: self.keys.into(), index })
    }
}

/// Ordered string keys to values. Cloning shares it. The values lie behind their header, in one piece of memory.
#[derive(Clone, Debug)]
pub struct Record(ThinArc<Header, Value>);

#[derive(Debug)]
struct Header {
    shape: Arc<Shape>,
    depth: usize,
}

impl Record {
    /// A record of these pairs in order. A repeated key keeps its place and takes the last value. Fails with `too_large`
    /// if a value is nested too deep.
    pub fn new<K: Into<Str>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Result<Self, ErrorValue> {
        let record = Self::unchecked(pairs);
        check_depth(record.depth())?;
        Ok(record)
    }

    /// A record of things that are no containers, which cannot fail.
    pub fn leaves<K: Into<Str>, const N: usize>(pairs: [(K, Leaf); N]) -> Self {
        Self::unchecked(pairs.map(|(key, leaf)| (key, leaf.0)))
    }

    /// `{}`.
    pub fn empty() -> Self {
        Self::unchecked::<Str>([])
    }

    /// A record of a known shape. Values beyond the keys are dropped, missing ones are null. Fails with `too_large` if a
    /// value is nested too deep.
    pub fn with_shape(shape: &Arc<Shape>, mut values: Vec<Value>) -> Result<Self, ErrorValue> {
        values.resize(shape.keys.len(), Value::Null);
        let record = Self::assemble(shape.clone(), values);
        check_depth(record.depth())?;
        Ok(record)
    }

    fn unchecked<K: Into<Str>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Self {
        let (mut building, mut values) = (Building::default(), Vec::new());
        for (key, value) in pairs {
            let at = building.place(key.into());
            if at == values.len() {
                values.push(value);
            } else {
                values[at] = value;
            }
        }
        Self::assemble(building.finish(), values)
    }

    /// A record of a known shape with as many values, which are taken. Fails with `too_large` if one is nested too deep.
    pub fn of_taken(shape: &Arc<Shape>, values: &mut [Value]) -> Result<Self, ErrorValue> {
        debug_assert_eq!(shape.keys.len(), values.len(), "one value for each key");
        let header = Header { shape: shape.clone(), depth: check_depth(depth_around(values))? };
        let taken = values.iter_mut().map(|value| std::mem::replace(value, Value::Null));
        Ok(Self(ThinArc::from_header_and_iter(header, taken)))
    }

    fn assemble(shape: Arc<Shape>, values: Vec<Value>) -> Self {
        let header = Header { shape, depth: depth_around(&values) };
        Self(ThinArc::from_header_and_iter(header, values.into_iter()))
    }

    /// Value of `key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.shape().place(key).map(|at| &self.values()[at])
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.values().len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.values().is_empty()
    }

    /// Keys in order.
    pub fn keys(&self) -> &[Str] {
        &self.shape().keys
    }

    /// Values in the order of the keys.
    pub fn values(&self) -> &[Value] {
        &self.0.slice
    }

    /// Members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Value)> {
        self.keys().iter().zip(self.values())
    }

    /// Its keys, shared.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.0.header.header.shape
    }

    /// With `key` set: an existing one keeps its place, a new one comes last. Fails with `too_large` if `value` is nested
    /// too deep.
    pub fn set(&self, key: impl Into<Str>, value: Value) -> Result<Self, ErrorValue> {
        let key = key.into();
        let record = match self.shape().place(&key) {
            Some(at) => {
                let mut values = self.values().to_vec();
                values[at] = value;
                Self::assemble(self.shape().clone(), values)
            }
            None => Self::unchecked(self.pairs().chain([(key, value)])),
        };
        check_depth(record.depth())?;
        Ok(record)
    }

    /// Without these keys; missing ones are fine.
    #[must_use]
    pub fn without(&self, keys: &[impl AsRef<str>]) -> Self {
        Self::unchecked(self.pairs().filter(|(k, _)| !keys.iter().any(|key| key.as_ref() == &**k)))
    }

    /// Both: the members of `other` win, old keys keep their place and new ones come last.
    #[must_use]
    pub fn merge(&self, other: &Self) -> Self {
        Self::unchecked(self.pairs().chain(other.pairs()))
    }

    /// The same keys with other values, in order. Fails with `too_large` if one is nested too deep.
    pub fn with_values(&self, values: Vec<Value>) -> Result<Self, ErrorValue> {
        Self::with_shape(self.shape(), values)
    }

    /// Levels of containers: 1 for a record of scalars.
    pub fn depth(&self) -> usize {
        self.0.header.header.depth
    }

    fn pairs(&self) -> impl Iterator<Item = (Str, Value)> {
        self.iter().map(|(k, v)| (k.clone(), v.clone()))
    }
}

/// Levels of a container of these.
fn depth_around(values: &[Value]) -> usize {
    1 + values.iter().map(Value::depth).max().unwrap_or(0)
}

/// A value that is no container, so that anything made of such values is never too deep.
#[derive(Clone, Debug)]
pub struct Leaf(pub(crate) Value);

impl Leaf {
    /// Null.
    pub fn null() -> Self {
        Self(Value::Null)
    }

    /// A size in bytes.
    pub fn size(bytes: u64) -> Self {
        Self(Value::Size(bytes))
    }

    /// A duration in nanoseconds.
    pub fn duration(nanos: i64) -> Self {
        Self(Value::Duration(nanos))
    }
}

impl<T: Into<Leaf>> From<Option<T>> for Leaf {
    fn from(leaf: Option<T>) -> Self {
        leaf.map_or_else(Self::null, Into::into)
    }
}

macro_rules! leaf {
    ($($from:ty),* $(,)?) => {$(
        impl From<$from> for Leaf {
            fn from(value: $from) -> Self {
                Self(value.into())
            }
        }
    )*};
}

leaf!(bool, i64, f64, &str, String, Str, PathValue, Bytes, DateTime, TimeOfDay, Glob, Regex, Range);

impl From<Leaf> for Value {
    fn from(leaf: Leaf) -> Self {
        leaf.0
    }
}

#[cfg(test)]
mod tests;
