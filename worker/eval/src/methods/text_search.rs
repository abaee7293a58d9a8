//! Methods of str that take a text or a regex: splitting, searching, replacing, capturing.

use std::sync::Arc;

use shoal_value::record::Shape;
use shoal_value::{ErrorValue, List, Record, Regex, Table, Value};

use super::rows::{Checked, PATTERN, methods, need};
use super::text::{check_text, text, text_value};
use crate::registry::{Args, Method, Param, Types};

const STR: Types = Types::STR;

pub(super) const METHODS: &[Method] = methods! {
    /// The parts between a separator, which is a text or a regex.
    ///
    /// shoal> "a,b,c".split(",")
    /// ["a", "b", "c"]
    /// shoal> "a1b22c".split(re"\d+")
    /// ["a", "b", "c"]
    split: STR, [Param::required_as("sep", PATTERN, "requires a separator")], Plain(Types::LIST), Pure, |recv, args| split(&recv, &args);

    /// Whether it contains a text or a match of a regex.
    ///
    /// shoal> "hello".contains("ell")
    /// true
    contains: STR, [need("s", PATTERN)], Plain(Types::BOOL), Pure, |recv, args| {
        let text = text(&recv)?;
        Ok(Value::Bool(match args.value_at(0) {
            Value::Regex(re) => re.compiled().is_match(text),
            other => text.contains(other.as_str().unwrap_or_default()),
        }))
    };

    /// With every occurrence replaced. After a regex, `$1` and `$name` in the replacement stand for its groups.
    ///
    /// shoal> "foo bar foo".replace("foo", "baz")
    /// "baz bar baz"
    /// shoal> "k=v".replace(re"(\w)=(\w)", "$2=$1")
    /// "v=k"
    replace: STR, [need("from", PATTERN), Param::required_as("to", Types::STR, "requires a replacement")], Plain(Types::STR), Pure,
        |recv, args| replace(&recv, &args);

    /// All matches of a regex.
    ///
    /// shoal> "a1b22c333".matches(re"[0-9]+")
    /// ["1", "22", "333"]
    matches: STR, [need("regex", Types::REGEX)], Plain(Types::LIST), Pure, |recv, args| {
        Ok(List::leaves(regex(&args)?.compiled().find_iter(text(&recv)?).map(|found| found.as_str())).into())
    };

    /// The first match of a regex, or null.
    ///
    /// shoal> "a1b22".match(re"[0-9]+")
    /// "1"
    r#match: STR, [need("regex", Types::REGEX)], Plain(Types::STR.or(Types::NULL)), Pure, |recv, args| {
        Ok(regex(&args)?.compiled().find(text(&recv)?).map_or(Value::Null, |found| Value::str(found.as_str())))
    };

    /// The groups of the first match of a regex as a record, or null without a match. "0" is the whole match; a group has
    /// its name or its number as key, and is null if it took no part.
    ///
    /// shoal> "v1.2".capture(re"v(?<major>\d+)\.(\d+)")
    /// {"0": "v1.2", major: "1", "2": "2"}
    capture: STR, [need("regex", Types::REGEX)], Plain(Types::RECORD.or(Types::NULL)), Pure, |recv, args| capture(&recv, &args);

    /// The groups of every match of a regex as a table.
    ///
    /// shoal> "a=1;b=2".captures(re"(\w)=(\d)").map(.get("2"))
    /// ["1", "2"]
    captures: STR, [need("regex", Types::REGEX)], Plain(Types::TABLE), Pure, |recv, args| captures(&recv, &args);
};

fn split(recv: &Value, args: &Args) -> Result<Value, ErrorValue> {
    let text = text(recv)?;
    Ok(match args.value_at(0) {
        Value::Regex(re) => List::leaves(re.compiled().split(text)).into(),
        other => List::leaves(text.split(other.as_str().unwrap_or_default())).into(),
    })
}

fn replace(recv: &Value, args: &Args) -> Result<Value, ErrorValue> {
    let (text, to) = (text(recv)?, args.str_at(1));
    match args.value_at(0) {
        Value::Regex(re) => replace_matches(re, text, to),
        other => {
            let from = other.as_str().unwrap_or_default();
            let grown = text.matches(from).count().saturating_mul(to.len().saturating_sub(from.len()));
            check_text(text.len().saturating_add(grown))?;
            Ok(Value::str(text.replace(from, to)))
        }
    }
}

/// Replaces every match, with the groups expanded. The size is checked as it grows, since one group may be repeated often.
fn replace_matches(re: &Regex, text: &str, to: &str) -> Result<Value, ErrorValue> {
    let (mut done, mut result) = (0, String::new());
    for groups in re.compiled().captures_iter(text) {
        let Some(whole) = groups.get(0) else { continue };
        result.push_str(&text[done..whole.start()]);
        groups.expand(to, &mut result);
        check_text(result.len())?;
        done = whole.end();
    }
    result.push_str(&text[done..]);
    text_value(result)
}

fn capture(recv: &Value, args: &Args) -> Result<Value, ErrorValue> {
    let re = regex(args)?;
    match re.compiled().captures(text(recv)?) {
        Some(groups) => Ok(Value::Record(groups_record(&group_keys(re), &groups)?)),
        None => Ok(Value::Null),
    }
}

fn captures(recv: &Value, args: &Args) -> Result<Value, ErrorValue> {
    let re = regex(args)?;
    let shape = group_keys(re);
    let rows = re.compiled().captures_iter(text(recv)?).map(|groups| groups_record(&shape, &groups));
    let rows = rows.collect::<Result<Vec<Record>, _>>()?;
    Ok(Value::Table(Table::with_columns(shape.keys().iter().cloned(), rows)?))
}

/// The regex argument.
fn regex(args: &Args) -> Result<&Regex, ErrorValue> {
    args.regex_at(0).ok_or_else(|| ErrorValue::arg_error("a regex is needed"))
}

/// Keys of the groups: names, or numbers as text.
fn group_keys(re: &Regex) -> Arc<Shape> {
    Shape::new(
        re.compiled().capture_names().enumerate().map(|(at, name)| name.map_or_else(|| at.to_string(), str::to_owned)),
    )
}

fn groups_record(shape: &Arc<Shape>, groups: &regex::Captures<'_>) -> Result<Record, ErrorValue> {
    let values = groups.iter().map(|group| group.map_or(Value::Null, |found| Value::str(found.as_str())));
    Record::with_shape(shape, values.collect())
}
