//! `csv`: comma-separated text to tables and back.

use std::sync::Arc;

use shoal_value::record::Shape;
use shoal_value::{ErrorValue, Record, Str, Table, Value, render};

use super::source;
use crate::methods::rows::{Checked, functions, need};
use crate::methods::text::text_value;
use crate::registry::{Namespace, Types};

pub(crate) static CSV: Namespace = Namespace {
    name: "csv",
    doc: "Comma-separated text with a header line to tables and back.",
    constants: &[],
    dynamic: None,
    functions: functions! {
        /// The table of a text whose first line names the columns. Every cell is a str.
        ///
        /// shoal> csv.parse("a,b\n1,2\n3,4")
        /// [{a: "1", b: "2"}, {a: "3", b: "4"}]
        /// shoal> csv.parse("a,b\n1")
        /// ! arg_error
        parse: [need("text", Types::ANY)], Plain(Types::TABLE), Pure, |args| parse(source("csv.parse", &args)?);
        /// Text of a table, a list of records or one record. The first record gives the columns; cells that are no str are
        /// in inline form.
        ///
        /// shoal> csv.stringify([{a: 1, b: "x, y"}])
        /// "a,b\n1,\"x, y\"\n"
        stringify: [need("v", Types::ANY)], Plain(Types::STR), Pure, |args| stringify(args.value_at(0));
    },
};

fn parse(text: &str) -> Result<Value, ErrorValue> {
    let invalid = |e: csv::Error| ErrorValue::arg_error(format!("csv.parse: {}", reason(&e)));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let shape = Shape::new(header(reader.headers().map_err(invalid)?)?);
    let (mut rows, mut record) = (Vec::new(), csv::StringRecord::new());
    while reader.read_record(&mut record).map_err(invalid)? {
        rows.push(Record::with_shape(&shape, record.iter().map(Value::str).collect())?);
    }
    Ok(Table::with_columns(shape.keys().iter().cloned(), rows)?.into())
}

/// Column names. A name that stands twice would lose a column.
fn header(names: &csv::StringRecord) -> Result<Vec<Str>, ErrorValue> {
    let names: Vec<Str> = names.iter().map(Str::from).collect();
    match names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        Some((_, twice)) => {
            Err(ErrorValue::arg_error(format!("csv.parse: the column `{twice}` stands twice in the header")))
        }
        None => Ok(names),
    }
}

fn reason(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = pos.as_ref().map_or_else(String::new, |pos| format!("line {}: ", pos.line()));
            format!("{line}expected {expected_len} fields, found {len}")
        }
        _ => error.to_string(),
    }
}

fn stringify(value: &Value) -> Result<Value, ErrorValue> {
    let rows = rows(value)?;
    let Some(shape) = rows.first().map(|row| row.shape().clone()) else {
        return match value {
            Value::Table(table) if !table.columns().is_empty() => {
                write(&Shape::new(table.columns().iter().cloned()), &[])
            }
            _ => Ok(Value::str("")),
        };
    };
    write(&shape, &rows)
}

fn rows(value: &Value) -> Result<Vec<Record>, ErrorValue> {
    let refused = |found: &str| {
        ErrorValue::type_error(format!("csv.stringify: expected a table, a list of records or a record, found {found}"))
    };
    match value {
        Value::Table(table) => Ok(table.rows().to_vec()),
        Value::Record(record) => Ok(vec![record.clone()]),
        Value::List(list) => list
            .iter()
            .map(|item| match item {
                Value::Record(record) => Ok(record.clone()),
                other => Err(refused(&format!("a list with {}", other.type_name()))),
            })
            .collect(),
        other => Err(refused(other.type_name())),
    }
}

fn write(shape: &Arc<Shape>, rows: &[Record]) -> Result<Value, ErrorValue> {
    let failed = |e: csv::Error| ErrorValue::arg_error(format!("csv.stringify: {e}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(shape.keys().iter().map(|key| key.as_bytes())).map_err(failed)?;
    for row in rows {
        let cells = shape.keys().iter().map(|key| row.get(key).map_or_else(Str::default, cell));
        for cell in cells {
            writer.write_field(cell.as_bytes()).map_err(failed)?;
        }
        writer.write_record(None::<&[u8]>).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|e| ErrorValue::arg_error(format!("csv.stringify: {}", e.error())))?;
    text_value(String::from_utf8_lossy(&bytes).into_owned())
}

/// Text of a cell; null is empty.
fn cell(value: &Value) -> Str {
    match value {
        Value::Null => Str::default(),
        Value::Str(text) => text.clone(),
        Value::Path(path) => path.display().into(),
        other => render::inline(other).into(),
    }
}

#[cfg(test)]
mod tests {
    use shoal_value::render::inline;
    use shoal_value::{code, json};

    use super::{parse, stringify};

    #[test]
    fn quotes_and_line_breaks_read_back() {
        let table = parse("a,b\n\"x, y\",\"say \"\"hi\"\"\nthere\"\n").expect("valid CSV");
        assert_eq!(inline(&table), "[{a: \"x, y\", b: \"say \\\"hi\\\"\\nthere\"}]");
        let text = stringify(&table).expect("text");
        assert_eq!(inline(&parse(text.as_str().expect("a str")).expect("valid CSV")), inline(&table));
    }

    #[test]
    fn ragged_rows_name_their_line() {
        let error = parse("a,b\n1,2\n3").expect_err("ragged");
        assert_eq!(&*error.code, code::ARG_ERROR);
        assert!(error.msg.contains("line 3: expected 2 fields, found 1"), "{error}");
    }

    #[test]
    fn a_column_twice_is_refused() {
        assert_eq!(&*parse("a,a\n1,2").expect_err("twice").code, code::ARG_ERROR);
    }

    #[test]
    fn a_header_alone_is_an_empty_table_with_columns() {
        let table = parse("a,b").expect("valid CSV");
        assert_eq!(stringify(&table).expect("text").as_str(), Some("a,b\n"));
    }

    #[test]
    fn the_first_record_gives_the_columns_and_missing_cells_are_empty() {
        let rows = json::parse("[{\"a\": 1, \"b\": null}, {\"b\": [2]}]").expect("valid JSON");
        assert_eq!(stringify(&rows).expect("text").as_str(), Some("a,b\n1,\n,[2]\n"));
        assert_eq!(&*stringify(&json::parse("5").expect("valid JSON")).expect_err("no rows").code, code::TYPE_ERROR);
    }
}
