//! What a result does not show, and where the rest is.

use serde_json::{Map, Value, json};

/// Something that was cut.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    /// `value`, `err`, `render`, `text` or `entries`.
    pub(crate) what: &'static str,
    /// How much is present.
    pub(crate) shown: usize,
    /// How much there is.
    pub(crate) total: usize,
    /// `items`, `rows`, `bytes`, `lines` or `entries`.
    pub(crate) unit: &'static str,
    /// Where all of it can be read.
    pub(crate) uri: Option<String>,
}

impl Cut {
    pub(super) fn json(&self) -> Value {
        json!({ "what": self.what, "shown": self.shown, "total": self.total, "unit": self.unit, "uri": self.uri })
    }
}

/// What the kernel cut from a result.
pub(super) fn of(body: &Map<String, Value>) -> Vec<Cut> {
    let mut cuts = Vec::new();
    if let Some(value) = body.get("value") {
        let elided = if value["$"] == "outcome" { &value["out"] } else { value };
        cuts.extend(elision(elided));
        cuts.extend(value.get("err").and_then(Value::as_str).and_then(|err| marker(err, "err")));
    }
    cuts.extend(body.get("render").and_then(Value::as_str).and_then(|render| marker(render, "render")));
    cuts
}

fn elision(value: &Value) -> Option<Cut> {
    if value["$"] != "ref" {
        return None;
    }
    let preview = &value["preview"];
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    let (shown, unit) = match value["of"].as_str()? {
        "table" => (preview["n"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0), "rows"),
        "list" => (count(&preview["v"]), "items"),
        "record" => (preview["v"].as_object().map_or(0, Map::len), "items"),
        "str" => (preview["v"].as_str().map_or(0, str::len), "bytes"),
        "bytes" => (preview["v"].as_str().map_or(0, |text| text.trim_end_matches('=').len() * 3 / 4), "bytes"),
        _ => (0, "items"),
    };
    let total = value["n"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(shown);
    Some(Cut { what: "value", shown, total, unit, uri: value["uri"].as_str().map(str::to_owned) })
}

/// The line by which the kernel says that it cut a text.
fn marker(text: &str, what: &'static str) -> Option<Cut> {
    let line = text.lines().rev().find(|line| line.starts_with("…(") && line.contains(" more lines, fetch via "))?;
    let (lines, uri) = line.strip_prefix("…(")?.strip_suffix(')')?.split_once(" more lines, fetch via ")?;
    let missing: usize = lines.parse().ok()?;
    let shown = text.lines().count() - 1;
    let uri = Some(uri).filter(|uri| *uri != "ref").map(str::to_owned);
    Some(Cut { what, shown, total: shown + missing, unit: "lines", uri })
}

/// The URI under which the whole render can be read.
pub(super) fn with_format(uri: &str) -> String {
    let mark = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{mark}format=render")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(body: Value) -> Vec<Cut> {
        of(body.as_object().unwrap())
    }

    #[test]
    fn elided_values_count_in_their_own_unit() {
        let uri = Some("shoal://out/1?path=out".to_owned());
        let out = json!({"$":"ref","uri":uri,"of":"str","n":20000,"preview":{"$":"str","v":"x".repeat(256)}});
        let body = json!({"value":{"$":"outcome","ok":true,"out":out,"err":""}});
        assert_eq!(cuts(body), [Cut { what: "value", shown: 256, total: 20_000, unit: "bytes", uri }]);
        let table = json!({"$":"ref","uri":"u","of":"table","n":900,"preview":{"$":"table","cols":{},"n":5}});
        let [cut] = &cuts(json!({ "value": table }))[..] else { panic!("one cut") };
        assert_eq!((cut.shown, cut.total, cut.unit), (5, 900, "rows"));
    }

    #[test]
    fn markers_in_texts_are_counted() {
        let err = "a\n…(7 more lines, fetch via shoal://out/1?path=stderr)\nz";
        let body = json!({"value":{"$":"outcome","ok":false,"out":{"$":"null"},"err":err},"render":"x"});
        let uri = Some("shoal://out/1?path=stderr".to_owned());
        assert_eq!(cuts(body), [Cut { what: "err", shown: 2, total: 9, unit: "lines", uri }]);
        assert_eq!(cuts(json!({"value":{"$":"int","v":1},"render":"…(no marker)"})), []);
    }
}
