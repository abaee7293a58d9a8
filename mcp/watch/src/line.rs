//! One event, one line.

use serde_json::Value;
use shoal_wire::text::cut;

use crate::key;
use crate::limits::LINE_BYTES;

/// Changes named in a line.
const CHANGES: usize = 3;
/// Characters of a value in a change.
const VALUE_CHARS: usize = 40;

/// The line of an event where there is no filter.
pub fn default(event: &Value) -> String {
    let kind = event["type"].as_str().unwrap_or("EVENT");
    match kind {
        "GAP" if event["reset"] == true => return "GAP reset".to_owned(),
        "GAP" => return format!("GAP missed {}", event["missed"]),
        "ERROR" => return format!("ERROR {}", key::text(&event["message"])),
        _ => {}
    }
    let name = key::object(event).and_then(named).or_else(|| event["key"].as_str().map(str::to_owned));
    match name {
        Some(name) => format!("{kind} {name}{}", changes(event)),
        None => event.to_string(),
    }
}

fn named(object: &Value) -> Option<String> {
    let name = object["metadata"]["name"].as_str()?;
    Some(match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    })
}

fn changes(event: &Value) -> String {
    let Some(paths) = event["changed"].as_array().filter(|_| event["type"] == "MODIFIED") else { return String::new() };
    let new = ["object", "new"].iter().find_map(|name| event.get(name)).unwrap_or(&Value::Null);
    let shown = paths.iter().take(CHANGES).filter_map(Value::as_str).map(|path| change(path, &event["old"], new));
    let mut words: Vec<String> = shown.collect();
    if paths.len() > CHANGES {
        words.push(format!("+{}", paths.len() - CHANGES));
    }
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

fn change(path: &str, old: &Value, new: &Value) -> String {
    let scalar = |value: &Value| {
        let found = path.split('.').try_fold(value, |value, name| value.get(name))?;
        let plain = !(found.is_object() || found.is_array());
        plain.then(|| key::text(found).chars().take(VALUE_CHARS).collect::<String>())
    };
    match (scalar(old), scalar(new)) {
        (Some(old), Some(new)) => format!("{path}: {old}→{new}"),
        _ => path.to_owned(),
    }
}

/// Makes any text one harmless line: no breaks, no controls, no end of a notice in it, bounded.
pub fn clean(text: &str) -> String {
    let flat: String =
        text.trim_end_matches(['\n', '\r']).replace("\r\n", " ").replace(['\n', '\r', '\u{2028}', '\u{2029}'], " ");
    let visible: String = flat.chars().filter(|c| !c.is_control()).collect();
    cut(&visible.replace("</watch-event", "<\\/watch-event"), LINE_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn lines_of_every_kind() {
        let cases = [
            (json!({"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n"}}}), "ADDED n/a"),
            (json!({"type":"DELETED","object":{"metadata":{"name":"a"}}}), "DELETED a"),
            (json!({"type":"ADDED","key":"c","new":4,"old":null}), "ADDED c"),
            (json!({"type":"MODIFIED","key":"a","old":1,"new":3,"changed":null}), "MODIFIED a"),
            (
                json!({"type":"MODIFIED","key":"bid-1","old":{"status":{"phase":"Deciding"}},
                    "new":{"status":{"phase":"Published"}},"changed":["status.phase"]}),
                "MODIFIED bid-1 (status.phase: Deciding→Published)",
            ),
            (
                json!({"type":"MODIFIED","key":"k","old":{"a":[1],"b":1,"c":1,"d":1,"e":1},"new":{"a":[2],"b":2,"d":2,"e":2},
                    "changed":["a","b","c","d","e"]}),
                "MODIFIED k (a, b: 1→2, c, +2)",
            ),
            (json!({"type":"GAP","from":1,"to":3,"missed":3}), "GAP missed 3"),
            (json!({"type":"ERROR","message":"no source"}), "ERROR no source"),
        ];
        for (event, line) in cases {
            assert_eq!(default(&event), line);
        }
        assert_eq!(default(&json!({"type":"X","seq":4})), r#"{"type":"X","seq":4}"#);
    }

    proptest! {
        #[test]
        fn clean_lines_are_harmless(text in "(</watch-event|[\\PC\n\r\t\u{7}]){0,80}") {
            let line = clean(&text);
            prop_assert!(line.len() <= LINE_BYTES);
            prop_assert!(!line.contains("</watch-event") && !line.chars().any(char::is_control));
        }
    }
}
