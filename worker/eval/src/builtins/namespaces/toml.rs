//! `toml`: TOML text to values and back.

use jiff::tz::TimeZone;
use shoal_value::{DateTime, ErrorValue, Record, TimeOfDay, Value, json, render};

use super::{check_nesting, source};
use crate::methods::rows::{Checked, functions, need};
use crate::methods::text::text_value;
use crate::registry::{Namespace, Types};

pub(crate) static TOML: Namespace = Namespace {
    name: "toml",
    doc: "TOML text to values and back. The order of keys is kept.",
    constants: &[],
    dynamic: None,
    functions: functions! {
        /// The record of a TOML text. A date alone is midnight UTC, a date and time without offset is in the local zone.
        ///
        /// shoal> toml.parse("b = 1\n[a]\nx = [1, 2]")
        /// {b: 1, a: {x: [1, 2]}}
        /// shoal> toml.parse("not = = valid")
        /// ! arg_error
        parse: [need("text", Types::ANY)], Plain(Types::RECORD), Nothing,
            |ctx, args| Ok(parse(source("toml.parse", &args)?, &ctx.clock().zone())?);
        /// TOML text of a record. Null has no TOML form.
        ///
        /// shoal> toml.stringify({a: 1, b: "x"})
        /// "a = 1\nb = \"x\"\n"
        /// shoal> toml.stringify([1])
        /// ! arg_error
        stringify: [need("v", Types::ANY)], Plain(Types::STR), Pure, |args| stringify(args.value_at(0));
    },
};

fn parse(text: &str, local: &TimeZone) -> Result<Value, ErrorValue> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        let place = e.span().map_or_else(String::new, |span| {
            let line = text.get(..span.start).map_or(0, |before| before.matches('\n').count());
            format!(" in line {}", line + 1)
        });
        ErrorValue::arg_error(format!("invalid TOML{place}: {}", e.message()))
    })?;
    record_of(table, local)
}

fn record_of(table: toml::Table, local: &TimeZone) -> Result<Value, ErrorValue> {
    let members = table.into_iter().map(|(key, value)| Ok((key, value_of(value, local)?)));
    Value::record(members.collect::<Result<Vec<_>, ErrorValue>>()?)
}

fn value_of(value: toml::Value, local: &TimeZone) -> Result<Value, ErrorValue> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(n) => Value::Int(n),
        toml::Value::Float(x) => Value::Float(x),
        toml::Value::Boolean(yes) => Value::Bool(yes),
        toml::Value::Datetime(at) => datetime_of(&at, local)?,
        toml::Value::Array(items) => {
            let items = items.into_iter().map(|item| value_of(item, local));
            json::table_or_list(items.collect::<Result<_, _>>()?)?
        }
        toml::Value::Table(table) => record_of(table, local)?,
    })
}

fn datetime_of(at: &toml::value::Datetime, local: &TimeZone) -> Result<Value, ErrorValue> {
    match (at.date, at.time) {
        (None, Some(time)) => {
            let time_of_day = TimeOfDay::new(time.hour, time.minute, time.second.unwrap_or(0));
            let invalid = || ErrorValue::arg_error(format!("invalid TOML: {at} is no time of day"));
            time_of_day.map(Value::Time).ok_or_else(invalid)
        }
        _ => Ok(DateTime::parse(&at.to_string(), local)?.into()),
    }
}

fn stringify(value: &Value) -> Result<Value, ErrorValue> {
    let Value::Record(record) = value else {
        let msg = format!("toml.stringify: the top level must be a record, found {}", value.type_name());
        return Err(ErrorValue::arg_error(msg));
    };
    check_nesting("toml.stringify", value)?;
    let text =
        toml::to_string(&table_of(record, "")?).map_err(|e| ErrorValue::arg_error(format!("toml.stringify: {e}")))?;
    text_value(text)
}

/// `at` is the dotted place of the record, for messages.
fn table_of(record: &Record, at: &str) -> Result<toml::Table, ErrorValue> {
    record.iter().map(|(key, value)| Ok((key.to_string(), toml_of(value, &format!("{at}.{key}"))?))).collect()
}

fn toml_of(value: &Value, at: &str) -> Result<toml::Value, ErrorValue> {
    let array = |items: &mut dyn Iterator<Item = (usize, Value)>| {
        let items = items.map(|(n, item)| toml_of(&item, &format!("{at}[{n}]")));
        Ok(toml::Value::Array(items.collect::<Result<_, ErrorValue>>()?))
    };
    let unsigned = |n: u64| i64::try_from(n).map_or(toml::Value::Float(n as f64), toml::Value::Integer);
    Ok(match value {
        Value::Null => {
            let place = at.trim_start_matches('.');
            let error = ErrorValue::arg_error(format!("toml.stringify: {place} is null, which TOML cannot say"));
            return Err(error.with_hint("take the key out first, with `.remove(k)`"));
        }
        Value::Bool(yes) => toml::Value::Boolean(*yes),
        Value::Int(n) => toml::Value::Integer(*n),
        Value::Float(x) => toml::Value::Float(*x),
        Value::Str(text) => toml::Value::String(text.to_string()),
        Value::Size(bytes) => unsigned(*bytes),
        Value::Duration(nanos) => toml::Value::Integer(*nanos),
        Value::DateTime(at) => toml::Value::Datetime(toml_datetime(at)?),
        Value::Time(time) => toml::Value::Datetime(toml::value::Datetime {
            date: None,
            time: Some(toml::value::Time {
                hour: time.hour,
                minute: time.minute,
                second: Some(time.second),
                nanosecond: None,
            }),
            offset: None,
        }),
        Value::List(list) => return array(&mut list.iter().cloned().enumerate()),
        Value::Range(range) => return array(&mut range.iter().map(Value::Int).enumerate()),
        Value::Table(table) => return array(&mut table.rows().iter().cloned().map(Value::Record).enumerate()),
        Value::Record(record) => toml::Value::Table(table_of(record, at)?),
        Value::Path(path) => toml::Value::String(path.display().into_owned()),
        Value::Glob(glob) => toml::Value::String(glob.pattern().to_string()),
        Value::Regex(re) => toml::Value::String(re.src().to_owned()),
        Value::Bytes(bytes) => toml::Value::String(bytes.to_text_lossy().into_owned()),
        other => toml::Value::String(render::inline(other)),
    })
}

/// The instant with its offset. TOML has no zone names.
fn toml_datetime(at: &DateTime) -> Result<toml::value::Datetime, ErrorValue> {
    let text = at.instant().display_with_offset(at.offset()).to_string();
    text.parse().map_err(|_| ErrorValue::arg_error(format!("toml.stringify: {text} is no TOML date-time")))
}

#[cfg(test)]
mod tests {
    use jiff::tz::{Offset, TimeZone};
    use shoal_value::code;
    use shoal_value::render::inline;

    use super::{parse, stringify};

    fn east() -> TimeZone {
        TimeZone::fixed(Offset::constant(2))
    }

    #[test]
    fn order_of_keys_is_kept() {
        let value = parse("z = 1\na = 2\n[t]\ny = 1\nb = 2", &east()).expect("valid TOML");
        assert_eq!(inline(&value), "{z: 1, a: 2, t: {y: 1, b: 2}}");
    }

    #[test]
    fn dates_and_times_get_their_types() {
        let text = "o = 2026-07-09T14:00:00+01:00\nl = 2026-07-09T14:00:00\nd = 2026-07-09\nt = 07:32:05";
        let value = parse(text, &east()).expect("valid TOML");
        let shown = "{o: 2026-07-09T13:00:00Z, l: 2026-07-09T12:00:00Z, d: 2026-07-09T00:00:00Z, t: 07:32:05}";
        assert_eq!(inline(&value), shown);
        let back = stringify(&value).expect("text");
        let back = parse(back.as_str().expect("a str"), &east()).expect("valid TOML");
        assert_eq!(inline(&back), shown);
    }

    #[test]
    fn an_array_of_tables_is_a_table() {
        let value = parse("[[x]]\na = 1\n[[x]]\na = 2", &east()).expect("valid TOML");
        assert_eq!(inline(&value), "{x: [{a: 1}, {a: 2}]}");
        assert_eq!(stringify(&value).expect("text").as_str(), Some("[[x]]\na = 1\n\n[[x]]\na = 2\n"));
    }

    #[test]
    fn null_is_refused_with_its_place() {
        let value = shoal_value::json::parse("{\"a\": {\"b\": [1, null]}}").expect("valid JSON");
        let error = stringify(&value).expect_err("null has no TOML form");
        assert_eq!(&*error.code, code::ARG_ERROR);
        assert!(error.msg.contains("a.b[1]"), "{error}");
    }

    #[test]
    fn bad_text_names_its_line() {
        let error = parse("a = 1\nb = = 2", &east()).expect_err("not TOML");
        assert_eq!(&*error.code, code::ARG_ERROR);
        assert!(error.msg.contains("line 2"), "{error}");
    }
}
