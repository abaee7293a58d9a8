//! Tables: ordered records drawn as columns.
//!
//! A table keeps its rows as records, so that a row keeps its own key order and tells an absent cell from a null one; rows
//! that were made alike share their keys ([`crate::record::Shape`]).

use std::collections::HashSet;
use std::sync::Arc;

use crate::record::Shape;
use crate::value::check_depth;
use crate::{ErrorValue, List, Record, Str, Value};

/// Ordered records with columns in first-seen order. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Table(Arc<TableBody>);

#[derive(Debug)]
struct TableBody {
    columns: Vec<Str>,
    rows: Vec<Record>,
    depth: usize,
}

impl Table {
    /// A table of these rows; its columns are their keys in first-seen order. Fails with `too_large` if a row is nested
    /// too deep.
    pub fn new(rows: Vec<Record>) -> Result<Self, ErrorValue> {
        Self::with_columns(Vec::<Str>::new(), rows)
    }

    /// A table whose first columns are `columns`, also if no row has them; further keys of the rows follow. Fails with
    /// `too_large` if a row is nested too deep.
    pub fn with_columns(
        columns: impl IntoIterator<Item = impl Into<Str>>,
        rows: Vec<Record>,
    ) -> Result<Self, ErrorValue> {
        let columns = union(columns.into_iter().map(Into::into).collect(), &rows);
        let depth = check_depth(1 + rows.iter().map(Record::depth).max().unwrap_or(1))?;
        Ok(Self(Arc::new(TableBody { columns, rows, depth })))
    }

    /// A table of columns of equal length; shorter ones are filled up with null. Fails with `too_large` if a cell is
    /// nested too deep.
    pub fn from_columns(columns: Vec<(Str, Vec<Value>)>) -> Result<Self, ErrorValue> {
        let shape = Shape::new(columns.iter().map(|(name, _)| name.clone()));
        let height = columns.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        let mut cells: Vec<_> = columns.into_iter().map(|(_, cells)| cells.into_iter()).collect();
        let rows = (0..height)
            .map(|_| Record::with_shape(&shape, cells.iter_mut().map(|c| c.next().unwrap_or(Value::Null)).collect()))
            .collect::<Result<Vec<_>, _>>()?;
        Self::with_columns(shape.keys().iter().cloned(), rows)
    }

    /// Rows in order.
    pub fn rows(&self) -> &[Record] {
        &self.0.rows
    }

    /// Column names in order.
    pub fn columns(&self) -> &[Str] {
        &self.0.columns
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.rows.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.0.rows.is_empty()
    }

    /// Cells of a column, absent ones null; null if there is no such column.
    pub fn column(&self, name: &str) -> Option<List> {
        self.0.columns.iter().any(|c| **c == *name).then(|| {
            let cells = self.0.rows.iter().map(|row| row.get(name).cloned().unwrap_or(Value::Null)).collect();
            List::part(cells, self.0.depth)
        })
    }

    /// Rows `start` up to `end`, both clamped to the length. The columns stay.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> Self {
        let end = end.min(self.len());
        self.keep(self.0.rows[start.min(end)..end].to_vec())
    }

    /// These rows of the table, in this order, with its columns. The rows must come from the table.
    #[must_use]
    pub fn keep(&self, rows: Vec<Record>) -> Self {
        Self(Arc::new(TableBody { columns: self.0.columns.clone(), rows, depth: self.0.depth }))
    }

    /// The rows as a list of records.
    pub fn to_list(&self) -> List {
        List::part(self.0.rows.iter().cloned().map(Value::Record).collect(), self.0.depth)
    }

    /// Levels of containers: 2 for a table of scalars.
    pub fn depth(&self) -> usize {
        self.0.depth
    }
}

/// `first`, then the keys of the rows in first-seen order.
fn union(first: Vec<Str>, rows: &[Record]) -> Vec<Str> {
    let mut columns = first;
    let mut known: HashSet<Str> = columns.iter().cloned().collect();
    let mut previous: Option<&Arc<Shape>> = None;
    for row in rows {
        if previous.is_some_and(|shape| Arc::ptr_eq(shape, row.shape())) {
            continue;
        }
        for key in row.keys() {
            if known.insert(key.clone()) {
                columns.push(key.clone());
            }
        }
        previous = Some(row.shape());
    }
    columns
}
