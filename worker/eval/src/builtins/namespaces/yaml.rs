//! `yaml`: YAML text to values and back.

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize, Serializer};
use shoal_value::{ErrorValue, MAX_ITEMS, Record, Value, json, render};

use super::{MAX_NESTING, check_nesting, source};
use crate::methods::rows::{Checked, functions, need};
use crate::methods::text::text_value;
use crate::registry::{Namespace, Types};

pub(crate) static YAML: Namespace = Namespace {
    name: "yaml",
    doc: "YAML text to values and back. The order of keys is kept.",
    constants: &[],
    dynamic: None,
    functions: functions! {
        /// The value of a YAML text with one document. Keys become str; a sequence of mappings becomes a table.
        ///
        /// shoal> yaml.parse("name: shoal\ntags:\n- a\n- b")
        /// {name: "shoal", tags: ["a", "b"]}
        /// shoal> yaml.parse("a: [1, 2")
        /// ! arg_error
        parse: [need("text", Types::ANY)], Data, Pure, |args| parse(source("yaml.parse", &args)?);
        /// YAML text of a value in block style.
        ///
        /// shoal> yaml.stringify({a: 1, b: ["p", "q"]})
        /// "a: 1\nb:\n- p\n- q\n"
        stringify: [need("v", Types::ANY)], Plain(Types::STR), Pure, |args| stringify(args.value_at(0));
    },
};

fn parse(text: &str) -> Result<Value, ErrorValue> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_NESTING,
            max_events: 2 * MAX_ITEMS,
            max_nodes: MAX_ITEMS,
            max_documents: 1,
            max_total_scalar_bytes: shoal_value::MAX_TEXT,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| AnyValue.deserialize(reader))
        .map_err(|e| ErrorValue::arg_error(format!("invalid YAML: {e}")))
}

fn stringify(value: &Value) -> Result<Value, ErrorValue> {
    check_nesting("yaml.stringify", value)?;
    let options = serde_saphyr::ser_options! { compact_list_indent: true, prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(&Plain(value), options)
        .map_err(|e| ErrorValue::arg_error(format!("yaml.stringify: {e}")))?;
    text_value(text)
}

/// A value by the rules of JSON text, except that YAML has words for floats that are no number.
struct Plain<'a>(&'a Value);

impl Serialize for Plain<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => writer.serialize_unit(),
            Value::Bool(yes) => writer.serialize_bool(*yes),
            Value::Int(n) | Value::Duration(n) => writer.serialize_i64(*n),
            Value::Size(n) => writer.serialize_u64(*n),
            Value::Float(x) => writer.serialize_f64(*x),
            Value::Str(text) => writer.serialize_str(text),
            Value::Path(path) => writer.serialize_str(&path.display()),
            Value::Glob(glob) => writer.serialize_str(glob.pattern()),
            Value::Regex(re) => writer.serialize_str(re.src()),
            Value::DateTime(at) => writer.serialize_str(&at.zoned_text()),
            Value::Time(time) => writer.serialize_str(&time.short_text()),
            Value::Bytes(bytes) => writer.serialize_str(&bytes.to_text_lossy()),
            Value::List(list) => writer.collect_seq(list.iter().map(Plain)),
            Value::Range(range) => writer.collect_seq(range.iter()),
            Value::Table(table) => writer.collect_seq(table.rows().iter().map(PlainRecord)),
            Value::Record(record) => PlainRecord(record).serialize(writer),
            other => writer.serialize_str(&render::inline(other)),
        }
    }
}

struct PlainRecord<'a>(&'a Record);

impl Serialize for PlainRecord<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_map(self.0.iter().map(|(key, value)| (&**key, Plain(value))))
    }
}

struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Int(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(i64::try_from(v).map_or(Value::Float(v as f64), Value::Int))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Float(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::str(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(AnyValue)? {
            items.push(item);
        }
        json::table_or_list(items).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = mapping.next_key_seed(AnyValue)? {
            pairs.push((render::interpolate(&key), mapping.next_value_seed(AnyValue)?));
        }
        Record::new(pairs).map(Value::Record).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use shoal_value::render::inline;
    use shoal_value::{Value, code};

    use super::{MAX_NESTING, parse, stringify};

    fn read(text: &str) -> String {
        inline(&parse(text).expect("valid YAML"))
    }

    #[test]
    fn order_of_keys_is_kept_and_the_last_of_a_repeated_key_wins() {
        assert_eq!(read("z: 1\na: 2\nz: 3"), "{z: 3, a: 2}");
    }

    #[test]
    fn scalars_have_the_types_of_yaml_1_2() {
        assert_eq!(
            read("[1, -2, 2.5, true, no, ~, null, 'x', 1_0, .inf]"),
            "[1, -2, 2.5, true, \"no\", null, null, \"x\", 10, inf]"
        );
    }

    #[test]
    fn keys_that_are_no_text_become_text() {
        assert_eq!(read("1: a\ntrue: b"), "{\"1\": \"a\", true: \"b\"}");
    }

    #[test]
    fn a_sequence_of_mappings_is_a_table() {
        let rows = parse("- a: 1\n- a: 2").expect("valid YAML");
        assert_eq!(rows.type_name(), "table");
    }

    #[test]
    fn anchors_and_block_texts_are_read() {
        assert_eq!(read("a: &x [1]\nb: *x\nc: |\n  l1\n  l2\n"), "{a: [1], b: [1], c: \"l1\\nl2\\n\"}");
    }

    #[test]
    fn bad_text_is_refused_with_its_place() {
        for bad in ["a: [1, 2", "a: b: c", "a: 1\n---\nb: 2", "*nowhere"] {
            let error = parse(bad).expect_err(bad);
            assert_eq!(
                (&*error.code, error.msg.starts_with("invalid YAML")),
                (code::ARG_ERROR, true),
                "{bad}: {error}"
            );
        }
    }

    #[test]
    fn nesting_up_to_the_limit_fits_the_native_stack_and_more_is_refused() {
        let within = std::thread::Builder::new().stack_size(shoal_value::NATIVE_STACK).spawn(|| {
            let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
            let value = parse(&deep(MAX_NESTING)).expect("within the limit");
            assert!(stringify(&value).is_ok());
            assert!(parse(&deep(MAX_NESTING + 1)).is_err());
            let deeper = Value::list(vec![value]).expect("a list");
            assert_eq!(&*stringify(&deeper).expect_err("too deep").code, code::TOO_LARGE);
        });
        within.expect("a thread").join().expect("no overflow");
    }

    #[test]
    fn what_is_written_reads_back() {
        let source = "{a: 1, b: 1.0, t: \"multi\\nline\", n: null, l: [\"x\", \"yes\", \"1\", \"\", \"a: b\", \"# c\"], r: {k: []}, e: {}}";
        let value = parse(
            "a: 1\nb: 1.0\nt: \"multi\\nline\"\nn: null\nl: [x, 'yes', '1', '', 'a: b', '# c']\nr: {k: []}\ne: {}",
        );
        let value = value.expect("valid YAML");
        assert_eq!(inline(&value), source.replace("1.0", "1"));
        let Ok(Value::Str(text)) = stringify(&value) else { panic!("no text") };
        assert_eq!(inline(&parse(&text).expect("valid YAML")), inline(&value), "{text}");
    }

    #[test]
    fn lists_stand_at_the_indentation_of_their_parent() {
        let value = parse("a: {b: [1, {c: 2, d: 3}]}").expect("valid YAML");
        assert_eq!(stringify(&value).expect("text").as_str(), Some("a:\n  b:\n  - 1\n  - c: 2\n    d: 3\n"));
    }
}
