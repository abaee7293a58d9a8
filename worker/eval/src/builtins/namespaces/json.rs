//! `json`: JSON text to values and back.

use shoal_value::{Value, json};

use super::source;
use crate::methods::any::json_text;
use crate::methods::rows::{Checked, functions, need, optional};
use crate::registry::{Namespace, Types};

pub(crate) static JSON: Namespace = Namespace {
    name: "json",
    doc: "JSON text to values and back. The order of keys is kept.",
    constants: &[],
    dynamic: None,
    functions: functions! {
        /// The value of a JSON text. Ints that do not fit become floats; an array of objects becomes a table.
        ///
        /// shoal> json.parse('{"b": 1, "a": [2]}')
        /// {b: 1, a: [2]}
        /// shoal> json.parse("nope")
        /// ! arg_error
        parse: [need("text", Types::ANY)], Data, Pure, |args| json::parse(source("json.parse", &args)?);
        /// JSON text of a value: compact, or with two spaces per level if `pretty`.
        ///
        /// shoal> json.stringify({a: 1})
        /// "{\"a\":1}"
        /// shoal> json.stringify([1], pretty: true)
        /// "[\n  1\n]"
        stringify: [need("v", Types::ANY), optional("pretty", Types::BOOL)], Plain(Types::STR), Nothing, |ctx, args| {
            let value = args.value_at(0);
            Ok(Value::from(if args.is_on(1) { json::stringify_pretty(value)? } else { json_text(ctx, value)? }))
        };
    },
};
