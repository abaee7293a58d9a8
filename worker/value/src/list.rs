//! Lists.

use std::ops::Deref;
use std::sync::Arc;

use crate::value::check_depth;
use crate::{ErrorValue, Leaf, Value};

/// Ordered values of any type. Cloning shares it. Derefs to a slice of its items.
#[derive(Clone, Debug)]
pub struct List(Arc<ListBody>);

#[derive(Clone, Debug)]
struct ListBody {
    items: Vec<Value>,
    depth: usize,
}

impl List {
    /// A list of these items. Fails with `too_large` if one of them is nested too deep.
    pub fn new(items: Vec<Value>) -> Result<Self, ErrorValue> {
        let depth = check_depth(1 + items.iter().map(Value::depth).max().unwrap_or(0))?;
        Ok(Self(Arc::new(ListBody { items, depth })))
    }

    /// A list of things that are no containers, which cannot fail.
    pub fn leaves<T: Into<Leaf>>(items: impl IntoIterator<Item = T>) -> Self {
        let items = items.into_iter().map(|item| item.into().0).collect();
        Self(Arc::new(ListBody { items, depth: 1 }))
    }

    /// Items of values that already are in a container of depth `depth`: parts of it cannot be deeper.
    pub(crate) fn part(items: Vec<Value>, depth: usize) -> Self {
        Self(Arc::new(ListBody { items, depth }))
    }

    /// `[]`.
    pub fn empty() -> Self {
        Self::part(Vec::new(), 1)
    }

    /// The items of `self` and then those of `other`. Grows in place if `self` is not shared.
    #[must_use]
    pub fn concat(mut self, other: &Self) -> Self {
        let body = Arc::make_mut(&mut self.0);
        body.items.extend_from_slice(other.items());
        body.depth = body.depth.max(other.depth());
        self
    }

    /// Items `start` up to `end`, both clamped to the length.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        let end = end.min(self.len());
        Self::part(self.0.items[start.min(end)..end].to_vec(), self.0.depth)
    }

    /// Some of its items, in any order. They must come from the list: their depth is not looked at again.
    #[must_use]
    pub fn part_of(&self, items: Vec<Value>) -> Self {
        Self::part(items, self.0.depth)
    }

    /// The items at these places, in this order.
    #[must_use]
    pub fn pick(&self, places: impl ExactSizeIterator<Item = usize>) -> Self {
        Self::part(places.map(|at| self.0.items[at].clone()).collect(), self.0.depth)
    }

    /// Items.
    pub fn items(&self) -> &[Value] {
        &self.0.items
    }

    /// Items by value, without copying them if the list is not shared.
    pub fn into_items(self) -> Vec<Value> {
        Arc::try_unwrap(self.0).map_or_else(|shared| shared.items.clone(), |body| body.items)
    }

    /// Levels of containers: 1 for a list of scalars.
    pub fn depth(&self) -> usize {
        self.0.depth
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0.items
    }
}
