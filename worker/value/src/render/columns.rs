//! Tables drawn as columns.

use std::borrow::Cow;

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

/// Rows as lines: header, rule, one line per row. Widths come from the rows given.
pub(super) struct Drawing<'a> {
    columns: Vec<(&'a Str, usize)>,
}

impl<'a> Drawing<'a> {
    /// Fits the columns to `max_width` display cells. `path` is left out when it only repeats `cwd` and `name`.
    pub(super) fn new(columns: &'a [Str], rows: &[Record], max_width: usize, cwd: Option<&PathValue>) -> Self {
        let redundant = cwd.is_some_and(|cwd| paths_repeat_names(rows, cwd));
        let columns = columns.iter().filter(|name| !(redundant && &***name == "path"));
        let columns = columns.map(|name| {
            let widest = rows.iter().filter_map(|row| row.get(name)).map(|v| width(&table_cell(v))).max().unwrap_or(0);
            (name, widest.max(width(&fit(&one_line(name), MAX_CELL))))
        });
        let mut drawing = Self { columns: columns.collect() };
        drawing.shrink(max_width);
        drawing
    }

    /// The widest column gives way until the lines fit.
    fn shrink(&mut self, max_width: usize) {
        let gaps = 2 * self.columns.len().saturating_sub(1);
        let mut total = gaps + self.columns.iter().map(|(_, w)| w).sum::<usize>();
        while total > max_width {
            let Some(widest) = self.columns.iter_mut().max_by_key(|(_, w)| *w).filter(|(_, w)| *w > MIN_COLUMN) else {
                return;
            };
            widest.1 -= 1;
            total -= 1;
        }
    }

    pub(super) fn header(&self) -> String {
        self.line(self.columns.iter().map(|(name, _)| one_line(name).into_owned()))
    }

    pub(super) fn rule(&self) -> String {
        self.line(self.columns.iter().map(|(_, width)| "─".repeat(*width)))
    }

    pub(super) fn row(&self, row: &Record) -> String {
        self.line(self.columns.iter().map(|(name, _)| row.get(name).map(table_cell).unwrap_or_default()))
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let mut line = String::new();
        for (at, (text, (_, column))) in cells.zip(&self.columns).enumerate() {
            if at > 0 {
                line.push_str("  ");
            }
            let text = fit(&text, *column);
            line.push_str(&text);
            line.extend(std::iter::repeat_n(' ', column.saturating_sub(width(&text))));
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
