//! What the methods of collections share: reading items one by one, conditions, pace, and results of the receiver's kind.

use shoal_value::{ErrorValue, List, MAX_ITEMS, Range, Table, Value};

use crate::vm::Arg;

/// A list, table or range as a source of items.
pub(crate) enum Items {
    /// Items of a list.
    List(List),
    /// Rows of a table, as records.
    Table(Table),
    /// Ints of a range.
    Range(Range),
}

impl Items {
    /// The items of a collection; anything else is `type_error`.
    pub(crate) fn of(value: Value) -> Result<Self, ErrorValue> {
        match value {
            Value::List(list) => Ok(Self::List(list)),
            Value::Table(table) => Ok(Self::Table(table)),
            Value::Range(range) => Ok(Self::Range(*range)),
            other => {
                Err(ErrorValue::type_error(format!("expected a list, table or range, found {}", other.type_name())))
            }
        }
    }

    /// Number of items; more than usize counts as usize's highest.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Table(table) => table.len(),
            Self::Range(range) => usize::try_from(range.count()).unwrap_or(usize::MAX),
        }
    }

    /// Item `at`, if there is one.
    pub(crate) fn at(&self, at: usize) -> Option<Value> {
        self.lying(at).map(Arg::to_value)
    }

    /// Item `at` where it lies, if there is one.
    #[inline]
    pub(crate) fn lying(&self, at: usize) -> Option<Arg<'_>> {
        match self {
            Self::List(list) => list.get(at).map(Arg::Value),
            Self::Table(table) => table.rows().get(at).map(Arg::Row),
            Self::Range(range) if (at as u128) < range.count() => {
                i64::try_from(i128::from(range.start) + at as i128).ok().map(Arg::Int)
            }
            Self::Range(_) => None,
        }
    }

    /// The items in order, where they lie.
    pub(crate) fn all_lying(&self) -> impl Iterator<Item = Arg<'_>> {
        (0..self.len()).map_while(|at| self.lying(at))
    }

    /// The items in order.
    pub(crate) fn iter(&self) -> ItemsIter<'_> {
        ItemsIter { items: self, at: 0, end: self.len() }
    }

    /// What `read` makes of every item, if it makes something of all of them; only of lists, whose items can be borrowed.
    pub(crate) fn all<'a, T>(&'a self, read: impl Fn(&'a Value) -> Option<T>) -> Option<Vec<T>> {
        match self {
            Self::List(list) => list.iter().map(read).collect(),
            Self::Table(_) | Self::Range(_) => None,
        }
    }

    /// Number of items, if a result may have that many: `too_large` otherwise.
    pub(crate) fn bounded_len(&self) -> Result<usize, ErrorValue> {
        check_items(self.len())
    }

    /// All items.
    pub(crate) fn into_vec(self) -> Result<Vec<Value>, ErrorValue> {
        self.bounded_len()?;
        Ok(match self {
            Self::List(list) => list.into_items(),
            other => other.iter().collect(),
        })
    }

    /// The items `from` up to `to` (both within the length): a table of a table, else a list.
    pub(crate) fn part(&self, from: usize, to: usize) -> Result<Value, ErrorValue> {
        Ok(match self {
            Self::List(list) if from == 0 && to >= list.len() => Value::List(list.clone()),
            Self::List(list) => Value::List(list.slice(from, to)),
            Self::Table(table) => Value::Table(table.slice(from, to)),
            Self::Range(_) => {
                check_items(to.saturating_sub(from))?;
                Value::list((from..to).map_while(|at| self.at(at)).collect())?
            }
        })
    }

    /// A list of some of the items.
    pub(crate) fn list_of(&self, items: Vec<Value>) -> Result<Value, ErrorValue> {
        match self {
            Self::List(list) => Ok(Value::List(list.part_of(items))),
            Self::Table(_) | Self::Range(_) => Value::list(items),
        }
    }

    /// The items at these places, which exist, in this order: a table of a table, else a list.
    pub(crate) fn pick(&self, places: impl ExactSizeIterator<Item = usize>) -> Result<Value, ErrorValue> {
        Ok(match self {
            Self::Table(table) => {
                let rows = table.rows();
                Value::Table(table.keep(places.map(|at| rows[at].clone()).collect()))
            }
            Self::List(list) => Value::List(list.pick(places)),
            Self::Range(_) => Value::list(places.filter_map(|at| self.at(at)).collect())?,
        })
    }
}

/// Items of a collection in order.
pub(crate) struct ItemsIter<'a> {
    items: &'a Items,
    at: usize,
    end: usize,
}

impl Iterator for ItemsIter<'_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        let item = if self.at < self.end { self.items.at(self.at) } else { None };
        self.at += 1;
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end.saturating_sub(self.at);
        (left, Some(left))
    }
}

impl ExactSizeIterator for ItemsIter<'_> {}

/// `items`, if one operation may materialise that many; `too_large` otherwise.
pub(crate) fn check_items(items: usize) -> Result<usize, ErrorValue> {
    if items <= MAX_ITEMS {
        return Ok(items);
    }
    let hint = "take a part of it first, with `.take(n)` or `.where(p)`";
    Err(ErrorValue::too_large(format!("{items} items are more than {MAX_ITEMS}")).with_hint(hint))
}
