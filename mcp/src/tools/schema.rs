//! Arguments checked against the schema that was listed, so that the two cannot differ.

use serde_json::{Map, Value};
use shoal_wire::error::Reason;
use shoal_wire::{RpcError, nearest::nearest, text};

/// Bytes of an unknown name that an error repeats; a longer one is no slip of the pen.
pub(super) const NAME_BYTES: usize = 128;

/// Checks the arguments of a tool. Those in `wider` are only checked for being there.
pub(super) fn validate(args: &Map<String, Value>, schema: &Value, wider: &[&str]) -> Result<(), RpcError> {
    object("", args, schema, wider)
}

fn object(prefix: &str, members: &Map<String, Value>, schema: &Value, wider: &[&str]) -> Result<(), RpcError> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let open = &schema["additionalProperties"];
    for (name, value) in members {
        let param = format!("{prefix}{name}");
        match properties.get(name) {
            // An optional argument given as null counts as absent.
            Some(_) if value.is_null() => {}
            Some(_) if wider.contains(&name.as_str()) => {}
            Some(property) => check(&param, value, property)?,
            None if open.is_object() => check(&param, value, open)?,
            None => return Err(unknown(&param, name, properties)),
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if members.get(name).is_none_or(Value::is_null) {
            let property = properties.get(name).unwrap_or(&Value::Null);
            let kind = property["type"].as_str().unwrap_or("");
            let param = format!("{prefix}{name}");
            let error = RpcError::invalid(&param, Reason::Missing, format!("missing {kind} argument \"{param}\""));
            return Err(error.and("expected", shape(property)));
        }
    }
    Ok(())
}

fn unknown(param: &str, name: &str, properties: &Map<String, Value>) -> RpcError {
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    let message = format!("unknown argument \"{}\"", text::cut(param, NAME_BYTES));
    let error = RpcError::invalid(text::cut(param, NAME_BYTES), Reason::UnknownMember, message);
    let error = error.and("expected", one_of(&known));
    match nearest(name, &known) {
        Some(name) => error.and("nearest", name),
        None => error,
    }
}

fn check(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    match schema["type"].as_str().unwrap_or_default() {
        "string" => string(param, value, schema),
        "boolean" if value.is_boolean() => Ok(()),
        "boolean" => Err(mistyped(param, schema)),
        "integer" => integer(param, value, schema),
        "array" => array(param, value, schema),
        _ => match value {
            Value::Object(members) => object(&format!("{param}."), members, schema, &[]),
            _ => Err(mistyped(param, schema)),
        },
    }
}

/// What a value of a schema looks like, in words.
fn shape(schema: &Value) -> String {
    match schema["type"].as_str().unwrap_or_default() {
        "string" => schema["enum"].as_array().map_or_else(|| "a string".to_owned(), |words| one_of(&strings(words))),
        "boolean" => "true or false".to_owned(),
        "integer" => match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
            (Some(low), Some(high)) => format!("an integer from {low} to {high}"),
            (Some(low), None) => format!("an integer of at least {low}"),
            _ => "an integer".to_owned(),
        },
        "array" => {
            let items = format!("{}s", schema["items"]["type"].as_str().unwrap_or("item"));
            match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
                (Some(least), Some(most)) if least == most => format!("an array of {least} {items}"),
                _ => format!("an array of {items}"),
            }
        }
        _ => "an object".to_owned(),
    }
}

fn one_of(words: &[&str]) -> String {
    if words.is_empty() { "no argument".to_owned() } else { format!("one of {}", words.join(", ")) }
}

fn strings(words: &[Value]) -> Vec<&str> {
    words.iter().filter_map(Value::as_str).collect()
}

fn string(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    let Value::String(text) = value else { return Err(mistyped(param, schema)) };
    let Some(words) = schema["enum"].as_array() else { return Ok(()) };
    if words.contains(value) {
        return Ok(());
    }
    let error = out_of_range(param, schema);
    Err(match nearest(text, &strings(words)) {
        Some(word) => error.and("nearest", word),
        None => error,
    })
}

fn integer(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    let Some(number) = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)) else {
        return Err(mistyped(param, schema));
    };
    let bound = |name: &str| schema[name].as_i64().map(i128::from);
    let (low, high) = (bound("minimum"), bound("maximum"));
    if low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high) {
        return Ok(());
    }
    Err(out_of_range(param, schema))
}

fn array(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    let Value::Array(items) = value else { return Err(mistyped(param, schema)) };
    let bound = |name: &str| schema[name].as_u64().and_then(|bound| usize::try_from(bound).ok());
    let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems").unwrap_or(usize::MAX));
    if !(least..=most).contains(&items.len()) {
        return Err(out_of_range(param, schema));
    }
    items.iter().enumerate().try_for_each(|(at, item)| check(&format!("{param}[{at}]"), item, &schema["items"]))
}

fn mistyped(param: &str, schema: &Value) -> RpcError {
    let expected = shape(schema);
    let message = format!("argument \"{param}\" must be {expected}");
    RpcError::invalid(param, Reason::Type, message).and("expected", expected)
}

fn out_of_range(param: &str, schema: &Value) -> RpcError {
    let expected = shape(schema);
    let message = format!("argument \"{param}\" must be {expected}");
    RpcError::invalid(param, Reason::Range, message).and("expected", expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(args: Value) -> RpcError {
        let schema: Value = serde_json::from_str(super::super::exec::TOOL.schema).unwrap();
        validate(args.as_object().unwrap(), &schema, &[]).unwrap_err()
    }

    #[test]
    fn messages_name_the_argument() {
        assert_eq!(refused(json!({})).message, "missing string argument \"src\"");
        assert_eq!(refused(json!({"src": null})).message, "missing string argument \"src\"");
        let unknown = refused(json!({"src": "1", "timeout": 1}));
        assert_eq!(unknown.message, "unknown argument \"timeout\"");
        let data = unknown.data.unwrap();
        assert_eq!(
            (&data["param"], &data["reason"], &data["nearest"]),
            (&json!("timeout"), &json!("unknown_member"), &json!("timeout_ms"))
        );
        assert!(data["expected"].as_str().unwrap().starts_with("one of src, mode, "), "{data}");
        assert_eq!(refused(json!({"src": 1})).reason(), Some("type"));
        assert_eq!(refused(json!({"src": "1", "timeout_ms": 0})).reason(), Some("range"));
        assert_eq!(refused(json!({"src": "1", "timeout_ms": 1.5})).reason(), Some("type"));
        assert_eq!(refused(json!({"src": "1", "mode": "approved"})).reason(), Some("range"));
        let nested = refused(json!({"src": "1", "elide": {"max_row": 1}}));
        assert_eq!(nested.data.unwrap()["param"], "elide.max_row");
    }

    #[test]
    fn expectations_are_in_words() {
        let expected = |args: Value| refused(args).data.unwrap()["expected"].as_str().unwrap().to_owned();
        assert_eq!(expected(json!({})), "a string");
        assert_eq!(expected(json!({"src": 1})), "a string");
        assert_eq!(expected(json!({"src": "", "timeout_ms": "5"})), "an integer of at least 1");
        assert_eq!(expected(json!({"src": "", "deadline_ms": 0})), "an integer from 1 to 86400000");
        assert_eq!(expected(json!({"src": "", "mode": "dry"})), "one of run, plan");
        assert_eq!(expected(json!({"src": "", "background": 1})), "true or false");
        assert_eq!(expected(json!({"src": "", "elide": []})), "an object");
        let pair = json!({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2});
        assert_eq!(
            (shape(&pair), shape(&json!({"type":"array","items":{"type":"string"}}))),
            ("an array of 2 integers".into(), "an array of strings".into())
        );
        let long = "x".repeat(100_000);
        assert!(json!(refused(json!({"src": "", long: 1}))).to_string().len() < 1000, "a name is not repeated whole");
    }
}
