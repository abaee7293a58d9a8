//! Methods of tables and lists of records: columns, and conversions between lists, tables and records.

use std::collections::HashSet;
use std::sync::Arc;

use shoal_value::record::Shape;
use shoal_value::{ErrorValue, List, Record, Str, Table, Value};

use super::rows::{methods, rest, texts};
use crate::registry::{Args, Method, Types};

const ROWS: Types = Types::LIST.or(Types::TABLE);

pub(super) const METHODS: &[Method] = methods! {
    /// Only these columns of a table or list of records, in this order. Absent cells are null; a column that no row has is
    /// an error.
    ///
    /// shoal> [{a: 1, b: 2}].select("b")
    /// [{b: 2}]
    /// shoal> [{a: 1}].select("z")
    /// ! field_missing
    select: ROWS, [rest("col", Types::STR)], Same, Pure, |recv, args| select(recv, args);

    /// A table or list of records without these columns.
    ///
    /// shoal> [{a: 1, b: 2}].omit("b")
    /// [{a: 1}]
    omit: ROWS, [rest("col", Types::STR)], Same, Pure, |recv, args| omit(recv, args);

    /// Names of the columns, in the order in which they first appear.
    ///
    /// shoal> [{a: 1}, {b: 2, a: 3}].columns()
    /// ["a", "b"]
    columns: ROWS, [], Plain(Types::LIST), Pure, |recv, _| Ok(List::leaves(column_names("columns", &recv)?).into());

    /// Names of the columns, like `columns`.
    ///
    /// shoal> [{a: 1}].keys()
    /// ["a"]
    keys: ROWS, [], Plain(Types::LIST), Pure, |recv, _| Ok(List::leaves(column_names("keys", &recv)?).into());

    /// A list of records as a table.
    ///
    /// shoal> [{a: 1}, {a: 2}].to_table().len()
    /// 2
    to_table: ROWS, [], Plain(Types::TABLE), Pure, |recv, _| match recv {
        Value::List(list) => {
            let rows = list.iter().enumerate().map(|(at, item)| row("to_table", at, item).cloned());
            Ok(Table::new(rows.collect::<Result<_, _>>()?)?.into())
        }
        other => Ok(other),
    };

    /// A record of `[key, value]` pairs or `{key, value}` records. The last value of a key wins.
    ///
    /// shoal> [["a", 1], ["b", 2]].to_record()
    /// {a: 1, b: 2}
    to_record: ROWS, [], Plain(Types::RECORD), Pure, |recv, _| to_record(&recv);
};

/// The record that item `at` must be.
fn row<'a>(method: &str, at: usize, item: &'a Value) -> Result<&'a Record, ErrorValue> {
    match item {
        Value::Record(record) => Ok(record),
        other => Err(ErrorValue::type_error(format!(
            "{method}: every item must be a record, but item {at} is {}",
            other.type_name()
        ))),
    }
}

/// The rows of a table or list of records.
fn rows_of(method: &str, recv: &Value) -> Result<Vec<Record>, ErrorValue> {
    match recv {
        Value::Table(table) => Ok(table.rows().to_vec()),
        Value::List(list) => list.iter().enumerate().map(|(at, item)| row(method, at, item).cloned()).collect(),
        other => Err(ErrorValue::type_error(format!("`.{method}` does not work on {}", other.type_name()))),
    }
}

fn column_names(method: &str, recv: &Value) -> Result<Vec<Str>, ErrorValue> {
    if let Value::Table(table) = recv {
        return Ok(table.columns().to_vec());
    }
    let (mut names, mut known) = (Vec::new(), HashSet::new());
    for key in rows_of(method, recv)?.iter().flat_map(Record::keys) {
        if known.insert(key.clone()) {
            names.push(key.clone());
        }
    }
    Ok(names)
}

fn select(recv: Value, mut args: Args) -> Result<Value, ErrorValue> {
    let wanted = texts(args.take_rest());
    let there = column_names("select", &recv)?;
    if let Some(missing) = wanted.iter().find(|name| !there.contains(name)) {
        let error = ErrorValue::field_missing(format!("select: no row has the column `{missing}`"));
        return Err(error.with_hint(format!("the columns are: {}", there.join(", "))));
    }
    let shape = Shape::new(wanted.iter().cloned());
    let mut places: Option<(Arc<Shape>, Vec<Option<usize>>)> = None;
    let rows = rows_of("select", &recv)?.into_iter().map(|row| {
        // Rows that were made alike share their keys: the places are looked up once.
        let known = places.take().filter(|(of, _)| Arc::ptr_eq(of, row.shape()));
        let (of, at) = known
            .unwrap_or_else(|| (row.shape().clone(), shape.keys().iter().map(|key| row.shape().place(key)).collect()));
        let cells = at.iter().map(|at| at.map_or(Value::Null, |at| row.values()[at].clone())).collect();
        places = Some((of, at));
        Record::with_shape(&shape, cells)
    });
    like(&recv, shape.keys().to_vec(), rows.collect::<Result<_, _>>()?)
}

fn omit(recv: Value, mut args: Args) -> Result<Value, ErrorValue> {
    let unwanted = texts(args.take_rest());
    let left = column_names("omit", &recv)?.into_iter().filter(|name| !unwanted.contains(name)).collect();
    let rows = rows_of("omit", &recv)?.iter().map(|row| row.without(&unwanted)).collect();
    like(&recv, left, rows)
}

/// Rows as a table if the receiver is one, else as a list.
fn like(recv: &Value, columns: Vec<Str>, rows: Vec<Record>) -> Result<Value, ErrorValue> {
    match recv {
        Value::Table(_) => Ok(Table::with_columns(columns, rows)?.into()),
        _ => Value::list(rows.into_iter().map(Value::Record).collect()),
    }
}

fn to_record(recv: &Value) -> Result<Value, ErrorValue> {
    let items = match recv {
        Value::List(list) => list.clone(),
        Value::Table(table) => table.to_list(),
        other => return Err(ErrorValue::type_error(format!("`.to_record` does not work on {}", other.type_name()))),
    };
    Value::record(items.iter().enumerate().map(|(at, item)| pair(at, item)).collect::<Result<Vec<_>, _>>()?)
}

fn pair(at: usize, item: &Value) -> Result<(Str, Value), ErrorValue> {
    let found = match item {
        Value::List(list) => match &**list {
            [Value::Str(key), value] => return Ok((key.clone(), value.clone())),
            _ => "another list",
        },
        Value::Record(record) => match (record.get("key"), record.get("value")) {
            (Some(Value::Str(key)), Some(value)) => return Ok((key.clone(), value.clone())),
            _ => "another record",
        },
        other => other.type_name(),
    };
    let msg = format!(
        "to_record: every item must be [key, value] or {{key, value}} with a str key, but item {at} is {found}"
    );
    Err(ErrorValue::type_error(msg))
}
