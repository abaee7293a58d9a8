//! Tables drawn as columns.

use std::borrow::Cow;
use std::collections::HashMap;

use super::inline::inline_within;
use super::text::{fit, one_line, width};
use crate::{PathValue, Record, Str, Value};

/// Display cells of one table cell; longer ones end in an ellipsis.
const MAX_CELL: usize = 60;

/// Columns are not made narrower than this to fit the width: the lines are longer then.
const MIN_COLUMN: usize = 4;

/// Bytes of a value looked at for one cell: enough for `MAX_CELL` cells of the longest grapheme clusters in use.
const CELL_BYTES: usize = MAX_CELL * 32;

/// Text of a value in cell form: inline, but strings and paths bare, on one line, null empty. At most `budget` bytes are
/// looked at.
pub(super) fn cell(value: &Value, budget: usize) -> String {
    let text: Cow<'_, str> = match value {
        Value::Null => return String::new(),
        Value::Str(text) => Cow::Borrowed(&text[..text.floor_char_boundary(budget)]),
        Value::Path(path) => path.display(),
        other => Cow::Owned(inline_within(other, budget).0),
    };
    one_line(&text).into_owned()
}

/// Rows as lines: header, rule, one line per row. Widths come from the rows given. The work is proportional to the cells
/// the rows have, not to rows times columns.
pub(super) struct Drawing<'a> {
    columns: Vec<Column<'a>>,
    place: HashMap<&'a str, usize>,
}

struct Column<'a> {
    name: &'a str,
    start: usize,
    width: usize,
}

impl<'a> Drawing<'a> {
    /// Fits the columns to `max_width` display cells. `path` is left out when it only repeats `cwd` and `name`.
    pub(super) fn new(columns: &'a [Str], rows: &[Record], max_width: usize, cwd: Option<&PathValue>) -> Self {
        let redundant = cwd.is_some_and(|cwd| paths_repeat_names(rows, cwd));
        let names = columns.iter().map(|name| &**name).filter(|name| !(redundant && *name == "path"));
        let columns: Vec<_> =
            names.map(|name| Column { name, start: 0, width: width(&fit(&one_line(name), MAX_CELL)) }).collect();
        let place = columns.iter().enumerate().map(|(at, column)| (column.name, at)).collect();
        let mut drawing = Self { columns, place };
        for (name, value) in rows.iter().flat_map(Record::iter) {
            if let Some(at) = drawing.place.get(&**name) {
                let column = &mut drawing.columns[*at];
                column.width = column.width.max(width(&table_cell(value)));
            }
        }
        drawing.shrink(max_width);
        drawing.set_starts();
        drawing
    }

    /// The widest column gives way until the lines fit.
    fn shrink(&mut self, max_width: usize) {
        let gaps = 2 * self.columns.len().saturating_sub(1);
        let least: usize = self.columns.iter().map(|column| column.width.min(MIN_COLUMN)).sum();
        if gaps + least > max_width {
            self.columns.iter_mut().for_each(|column| column.width = column.width.min(MIN_COLUMN));
            return;
        }
        let mut total = gaps + self.columns.iter().map(|column| column.width).sum::<usize>();
        while total > max_width {
            let widest = self.columns.iter_mut().max_by_key(|column| column.width);
            let Some(widest) = widest.filter(|column| column.width > MIN_COLUMN) else { return };
            widest.width -= 1;
            total -= 1;
        }
    }

    fn set_starts(&mut self) {
        let mut start = 0;
        for column in &mut self.columns {
            column.start = start;
            start += column.width + 2;
        }
    }

    pub(super) fn header(&self) -> String {
        self.line(self.columns.iter().map(|column| (column, one_line(column.name).into_owned())))
    }

    pub(super) fn rule(&self) -> String {
        self.line(self.columns.iter().map(|column| (column, "─".repeat(column.width))))
    }

    pub(super) fn row(&self, row: &Record) -> String {
        let mut places: Vec<(usize, &Value)> =
            row.iter().filter_map(|(name, value)| Some((*self.place.get(&**name)?, value))).collect();
        places.sort_unstable_by_key(|(at, _)| *at);
        self.line(places.into_iter().map(|(at, value)| (&self.columns[at], table_cell(value))))
    }

    /// Cells in the order of their columns; empty ones are only passed over.
    fn line<'c>(&self, cells: impl Iterator<Item = (&'c Column<'a>, String)>) -> String
    where
        'a: 'c,
    {
        let (mut line, mut end) = (String::new(), 0);
        for (column, text) in cells.filter(|(_, text)| !text.is_empty()) {
            let text = fit(&text, column.width);
            line.extend(std::iter::repeat_n(' ', column.start.saturating_sub(end)));
            line.push_str(&text);
            end = column.start + width(&text);
        }
        line.truncate(line.trim_end_matches(' ').len());
        line
    }
}

fn table_cell(value: &Value) -> String {
    fit(&cell(value, CELL_BYTES), MAX_CELL).into_owned()
}

/// Whether every row's `path` is `cwd` joined with its `name`.
fn paths_repeat_names(rows: &[Record], cwd: &PathValue) -> bool {
    let text = |value: &Value| match value {
        Value::Str(text) => Some(text.as_bytes().to_vec()),
        Value::Path(path) => Some(path.as_bytes().to_vec()),
        _ => None,
    };
    let parent = cwd.as_bytes().strip_suffix(b"/").unwrap_or(cwd.as_bytes());
    !rows.is_empty()
        && rows.iter().all(|row| {
            let path = row.get("path").and_then(text);
            let name = row.get("name").and_then(text);
            path.zip(name).is_some_and(|(path, name)| path == [parent, b"/", &name].concat())
        })
}
