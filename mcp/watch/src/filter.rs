//! What a filter is to a watch, and how its errors are told.

use serde_json::Value;

/// A filter that was checked. One run sees one event; names persist from run to run.
pub trait Filter {
    /// Runs the filter: the text it gives for the event, `None` to drop it.
    fn run(&mut self, event: &Value) -> Result<Option<String>, FilterError>;
}

/// A run that raised or passed a limit; its event is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Code, e.g. `timeout`.
    pub code: String,
    /// What happened.
    pub message: String,
}

impl std::fmt::Display for FilterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for FilterError {}

/// Says each error once, until it changes or a run succeeds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors {
    last: Option<String>,
}

impl Errors {
    pub(crate) fn success(&mut self) {
        self.last = None;
    }

    /// The line for an error, if it has to be said.
    pub(crate) fn line(&mut self, error: &FilterError) -> Option<String> {
        let text = error.to_string();
        if self.last.as_ref() == Some(&text) {
            return None;
        }
        let line = format!("filter error: {text}");
        self.last = Some(text);
        Some(line)
    }
}

/// A made-up event for trying a filter on when there is none to take.
pub fn sample(name: &str, uri: &str) -> Value {
    serde_json::json!({ "watch": name, "uri": uri, "type": "ADDED", "object": {}, "old": null, "changed": null })
}

/// The text that a result of a filter in Shoal's own language stands for: a string as it is, an outcome's text,
/// anything else as compact JSON. `result` is in plain form.
pub fn text_of(result: &Value, printed: &str) -> Option<String> {
    match result {
        Value::Null if printed.is_empty() => None,
        Value::Null => Some(printed.to_owned()),
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_said_once() {
        let error = |message: &str| FilterError { code: "type_error".into(), message: message.into() };
        let mut errors = Errors::default();
        assert_eq!(errors.line(&error("a")).as_deref(), Some("filter error: type_error: a"));
        assert_eq!(errors.line(&error("a")), None);
        assert!(errors.line(&error("b")).is_some());
        errors.success();
        assert!(errors.line(&error("b")).is_some());
    }

    #[test]
    fn results_become_text() {
        assert_eq!(text_of(&Value::Null, ""), None);
        assert_eq!(text_of(&Value::Null, "printed").as_deref(), Some("printed"));
        assert_eq!(text_of(&json!("x"), "ignored").as_deref(), Some("x"));
        assert_eq!(text_of(&json!({"a":1}), "").as_deref(), Some("{\"a\":1}"));
    }
}
