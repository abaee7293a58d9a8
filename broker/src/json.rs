//! JSON text made and checked by hand where a tree would cost too much: answers, frames, tagged event payloads.

use std::fmt::Write as _;

/// Appends a JSON string.
pub(crate) fn push_str(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(quoted(text).as_bytes());
}

/// A JSON string.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => push_escape(&mut out, control),
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
    out
}

fn push_escape(out: &mut String, control: u8) {
    // Writing to a string cannot fail.
    if write!(out, "\\u{control:04x}").is_err() {
        out.push('?');
    }
}

/// A tagged string.
pub(crate) fn tagged_str(text: &str) -> String {
    format!(r#"{{"$":"str","v":{}}}"#, quoted(text))
}

/// A tagged string, or null.
pub(crate) fn tagged_opt(text: Option<&str>) -> String {
    text.map_or_else(|| r#"{"$":"null"}"#.to_owned(), tagged_str)
}

/// A tagged integer.
pub(crate) fn tagged_int(n: i64) -> String {
    format!(r#"{{"$":"int","v":{n}}}"#)
}

/// A tagged boolean.
pub(crate) fn tagged_bool(b: bool) -> String {
    format!(r#"{{"$":"bool","v":{b}}}"#)
}

/// A tagged list of tagged items.
pub(crate) fn tagged_list(items: &[String]) -> String {
    format!(r#"{{"$":"list","v":[{}]}}"#, items.join(","))
}

/// A tagged record of tagged members.
pub(crate) fn tagged_record(members: &[(&str, String)]) -> String {
    let body: Vec<String> = members.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
    format!(r#"{{"$":"record","v":{{{}}}}}"#, body.join(","))
}

/// Any JSON as a tagged value: the form effects have in events.
pub(crate) fn tagged(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => r#"{"$":"null"}"#.to_owned(),
        serde_json::Value::Bool(b) => tagged_bool(*b),
        serde_json::Value::Number(n) => match n.as_i64() {
            Some(n) => tagged_int(n),
            None => format!(r#"{{"$":"float","v":{n}}}"#),
        },
        serde_json::Value::String(text) => tagged_str(text),
        serde_json::Value::Array(items) => tagged_list(&items.iter().map(tagged).collect::<Vec<_>>()),
        serde_json::Value::Object(members) => {
            let members: Vec<(&str, String)> = members.iter().map(|(name, v)| (name.as_str(), tagged(v))).collect();
            tagged_record(&members)
        }
    }
}

/// Bytes from a worker as JSON text that can stand inside a frame, or why not.
pub(crate) fn relayable(bytes: Vec<u8>) -> Result<String, &'static str> {
    if memchr::memchr2(b'\n', b'\r', &bytes).is_some() {
        return Err("JSON with a line break");
    }
    let text = String::from_utf8(bytes).map_err(|_| "JSON that is not UTF-8")?;
    match serde_json::from_str::<&serde_json::value::RawValue>(&text) {
        Ok(_) => Ok(text),
        Err(_) => Err("text that is not JSON"),
    }
}

/// Text that reaches people or logs: one line, no controls, bounded.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let clean: String = text.chars().map(|ch| if ch.is_control() { ' ' } else { ch }).collect();
    cut(&clean, max)
}

/// Cut at `max` bytes with an ellipsis.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// A path as a WirePath.
pub(crate) fn wire_path(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) => format!(r#"{{"display":{}}}"#, quoted(&cut(text, 4096))),
        Err(_) => {
            use base64::Engine as _;
            let raw = base64::engine::general_purpose::STANDARD.encode(path);
            let display = String::from_utf8_lossy(path);
            format!(r#"{{"display":{},"raw":"{raw}"}}"#, quoted(&cut(&display, 4096)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_json() {
        for text in ["plain", "a\"b\\c", "line\nfeed\u{1}\u{1f}", "héllo \u{2028}"] {
            assert_eq!(serde_json::from_str::<String>(&quoted(text)).expect("valid"), text);
        }
    }

    #[test]
    fn only_compact_json_is_relayable() {
        assert_eq!(relayable(b"{\"a\":[1]}".to_vec()).as_deref(), Ok("{\"a\":[1]}"));
        assert!(relayable(b"{\n}".to_vec()).is_err());
        assert!(relayable(b"{} {}".to_vec()).is_err());
        assert!(relayable(b"".to_vec()).is_err());
        assert!(relayable(vec![b'"', 0xff, b'"']).is_err());
    }

    #[test]
    fn effects_become_tagged_records() {
        let value = serde_json::json!({"kind": "net_listen", "port": 80});
        assert_eq!(
            tagged(&value),
            r#"{"$":"record","v":{"kind":{"$":"str","v":"net_listen"},"port":{"$":"int","v":80}}}"#
        );
    }
}
