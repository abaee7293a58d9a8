//! Strings with holes.

use shoal_value::{ErrorValue, Value, render};

/// The text of the parts together.
pub(crate) fn join(parts: &[Value]) -> Result<String, ErrorValue> {
    let mut text = String::new();
    for part in parts {
        match part {
            Value::Str(part) => text.push_str(part),
            Value::Outcome(outcome) => match outcome.out()? {
                Value::Str(out) => match outcome.pid {
                    Some(0) => text.push_str(out),
                    _ => text.push_str(&outcome.text()?),
                },
                out => text.push_str(&render::inline(out)),
            },
            Value::Secret(name) => {
                return Err(ErrorValue::type_error(format!("secret `{name}` cannot be made into text"))
                    .with_hint("pass it as the value of an environment prefix: `NAME=(s) cmd`"));
            }
            other => text.push_str(&render::interpolate(other)),
        }
    }
    Ok(text)
}
