//! Arguments checked against the schema that was listed, so that the two cannot differ.

use serde_json::{Map, Value};
use shoal_wire::error::Reason;
use shoal_wire::{RpcError, nearest::nearest};

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
            let kind = properties.get(name).and_then(|property| property["type"].as_str()).unwrap_or("");
            let param = format!("{prefix}{name}");
            return Err(RpcError::invalid(&param, Reason::Missing, format!("missing {kind} argument \"{param}\"")));
        }
    }
    Ok(())
}

fn unknown(param: &str, name: &str, properties: &Map<String, Value>) -> RpcError {
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    let error = RpcError::invalid(param, Reason::UnknownMember, format!("unknown argument \"{param}\""));
    match nearest(name, &known) {
        Some(name) => error.and("nearest", name),
        None => error,
    }
}

fn check(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    match schema["type"].as_str().unwrap_or_default() {
        "string" => string(param, value, schema),
        "boolean" if value.is_boolean() => Ok(()),
        "boolean" => Err(mistyped(param, "true or false")),
        "integer" => integer(param, value, schema),
        "array" => array(param, value, schema),
        _ => match value {
            Value::Object(members) => object(&format!("{param}."), members, schema, &[]),
            _ => Err(mistyped(param, "an object")),
        },
    }
}

fn string(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    let Value::String(text) = value else { return Err(mistyped(param, "a string")) };
    let Some(words) = schema["enum"].as_array() else { return Ok(()) };
    if words.contains(value) {
        return Ok(());
    }
    let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
    let error = out_of_range(param, &format!("one of {}", words.join(", ")));
    Err(match nearest(text, &words) {
        Some(word) => error.and("nearest", word),
        None => error,
    })
}

fn integer(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    let Some(number) = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from)) else {
        return Err(mistyped(param, "an integer"));
    };
    let bound = |name: &str| schema[name].as_i64().map(i128::from);
    let (low, high) = (bound("minimum"), bound("maximum"));
    if low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high) {
        return Ok(());
    }
    Err(match (low, high) {
        (Some(low), Some(high)) => out_of_range(param, &format!("an integer from {low} to {high}")),
        (Some(low), None) => out_of_range(param, &format!("an integer of at least {low}")),
        _ => out_of_range(param, "a smaller integer"),
    })
}

fn array(param: &str, value: &Value, schema: &Value) -> Result<(), RpcError> {
    let Value::Array(items) = value else { return Err(mistyped(param, "an array")) };
    let bound = |name: &str| schema[name].as_u64().and_then(|bound| usize::try_from(bound).ok());
    let (least, most) = (bound("minItems").unwrap_or(0), bound("maxItems").unwrap_or(usize::MAX));
    if !(least..=most).contains(&items.len()) {
        return Err(out_of_range(param, &format!("an array of {least} to {most} items")));
    }
    items.iter().enumerate().try_for_each(|(at, item)| check(&format!("{param}[{at}]"), item, &schema["items"]))
}

fn mistyped(param: &str, expected: &str) -> RpcError {
    let message = format!("argument \"{param}\" must be {expected}");
    RpcError::invalid(param, Reason::Type, message).and("expected", expected)
}

fn out_of_range(param: &str, expected: &str) -> RpcError {
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
        assert_eq!(unknown.data.unwrap(), json!({"param":"timeout","reason":"unknown_member","nearest":"timeout_ms"}));
        assert_eq!(refused(json!({"src": 1})).reason(), Some("type"));
        assert_eq!(refused(json!({"src": "1", "timeout_ms": 0})).reason(), Some("range"));
        assert_eq!(refused(json!({"src": "1", "timeout_ms": 1.5})).reason(), Some("type"));
        assert_eq!(refused(json!({"src": "1", "mode": "approved"})).reason(), Some("range"));
        let nested = refused(json!({"src": "1", "elide": {"max_row": 1}}));
        assert_eq!(nested.data.unwrap()["param"], "elide.max_row");
    }
}
