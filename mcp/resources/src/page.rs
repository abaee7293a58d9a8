//! What a read shows: one content item, and the same as JSON.

use serde_json::{Map, Value, json};
use shoal_wire::{EVENTS_MIME, Method, limits, text};

use crate::{bound, event_log};

/// What a read shows: one content item and the same, structured.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// MIME type of the content.
    pub mime: &'static str,
    /// The content.
    pub content: Content,
    /// The same as JSON.
    pub structured: Value,
    /// `{returned, total}` of a list that lost its end.
    truncated: Option<Value>,
}

/// Content of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text, at most 64 KiB.
    Text(String),
    /// Bytes as base64.
    Blob(String),
}

impl Page {
    /// The page of a kernel result, by its shape.
    pub(crate) fn of(method: Method, mut result: Value, uri: &str) -> Page {
        if method == Method::SessionSnapshot {
            return Page::whole(result["cwd"].take());
        }
        let text = result["render"].as_str().or_else(|| result["raw"].as_str());
        if let Some(text) = text {
            let text = text::bound(text, Some(uri)).text.into_owned();
            return Page { mime: "text/plain", content: Content::Text(text), structured: result, truncated: None };
        }
        if let Some(blob) = result["raw_base64"].as_str() {
            let content = Content::Blob(blob.to_owned());
            let structured = json!({ "ref": result["ref"], "uri": result["uri"] });
            return Page { mime: "application/octet-stream", content, structured, truncated: None };
        }
        match result.get_mut("value").map(Value::take) {
            Some(value) => Page::whole(value),
            None => Page::whole(result),
        }
    }

    /// JSON that is shown as it is; an array loses its last items when it is too long.
    pub(crate) fn whole(mut body: Value) -> Page {
        let mut truncated = None;
        if bound::size(&body) > limits::TEXT_BYTES {
            match &mut body {
                Value::Array(items) => {
                    let total = bound::fit_list(items, limits::TEXT_BYTES);
                    truncated = Some(json!({ "returned": items.len(), "total": total }));
                }
                Value::Object(members) => {
                    bound::shrink(members, limits::TEXT_BYTES);
                    truncated = Some(json!({ "returned": 0, "total": 1 }));
                }
                _ => {}
            }
        }
        Page { mime: "application/json", content: Content::Text(complete(&body)), structured: body, truncated }
    }

    pub(crate) fn events(mut body: Value, forward: bool) -> Page {
        event_log::fit(&mut body, forward, limits::TEXT_BYTES);
        Page { mime: EVENTS_MIME, content: Content::Text(complete(&body)), structured: body, truncated: None }
    }

    /// The members of a `resources/read` result.
    pub fn finish(self, uri: &str) -> Map<String, Value> {
        let mut item = json!({ "uri": uri, "mimeType": self.mime });
        match self.content {
            Content::Text(text) => item["text"] = json!(text),
            Content::Blob(blob) => item["blob"] = json!(blob),
        }
        if let Some(truncated) = self.truncated {
            item["_meta"] = json!({ "shoal/truncated": truncated });
        }
        Map::from_iter([("contents".to_owned(), json!([item])), ("structuredContent".to_owned(), self.structured)])
    }
}

/// JSON text that is always complete: pretty where that fits, else compact.
fn complete(value: &Value) -> String {
    let pretty = format!("{value:#}");
    if pretty.len() <= limits::TEXT_BYTES { pretty } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(result: Value) -> Map<String, Value> {
        Page::of(Method::ValueGet, result, "shoal://out/1").finish("shoal://out/1")
    }

    #[test]
    fn pages_by_the_shape_of_the_result() {
        let value = page(json!({"ref":"out:1","uri":"shoal://out/1","value":{"$":"int","v":42}}));
        assert_eq!(value["contents"][0]["mimeType"], "application/json");
        assert_eq!(value["structuredContent"], json!({"$":"int","v":42}));
        let text: Value = serde_json::from_str(value["contents"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, value["structuredContent"]);
        let render = page(json!({"ref":"out:1","uri":"shoal://out/1","render":"42"}));
        assert_eq!(
            (&render["contents"][0]["text"], &render["contents"][0]["mimeType"]),
            (&json!("42"), &json!("text/plain"))
        );
        assert_eq!(render["structuredContent"], json!({"ref":"out:1","uri":"shoal://out/1","render":"42"}));
        let raw = page(json!({"ref":"out:1","uri":"u","raw_base64":"YQo="}));
        assert_eq!((&raw["contents"][0]["blob"], raw["contents"][0].get("text")), (&json!("YQo="), None));
        assert_eq!(raw["structuredContent"], json!({"ref":"out:1","uri":"u"}));
    }

    #[test]
    fn long_arrays_stay_complete_json() {
        let rows: Vec<Value> = (0..500).map(|id| json!({"id": id, "src": "x".repeat(500)})).collect();
        let page = Page::whole(Value::Array(rows)).finish("shoal://journal");
        let text = page["contents"][0]["text"].as_str().unwrap();
        assert!(text.len() <= limits::TEXT_BYTES);
        let read: Vec<Value> = serde_json::from_str(text).unwrap();
        assert_eq!(page["contents"][0]["_meta"]["shoal/truncated"], json!({"returned": read.len(), "total": 500}));
    }
}
