//! `resources/read`.

use serde_json::{Map, Value, json};
use shoal_wire::{EVENTS_MIME, Method, limits, text};

use super::event_log;
use super::route::{self, Route};
use crate::bound;
use crate::call::{Call, Failure};

/// Answers `resources/read`.
pub(crate) async fn read(call: &Call) -> Result<Map<String, Value>, Failure> {
    let uri = call.text("uri")?;
    let kernel = &call.server.kernel;
    let page = match route::of(uri)? {
        Route::Call(method, params) => Page::of(method, kernel.call(method, &params).await?, uri),
        Route::TaskResult { task, mut select } => {
            let record = kernel.call(Method::TaskGet, &json!({ "task": task })).await?;
            match record["result_ref"].as_str() {
                None => Page::whole(record),
                Some(reference) => {
                    select.insert("ref".to_owned(), json!(reference));
                    let result = kernel.call(Method::ValueGet, &Value::Object(select)).await?;
                    Page::of(Method::ValueGet, result, uri)
                }
            }
        }
        Route::Approval(params) => Page::whole(approval(kernel.call(Method::ApprovalList, &params).await?, &params)?),
        Route::Events { params, forward } => {
            let mut body = kernel.call(Method::EventsRead, &params).await?;
            event_log::describe(&mut body);
            Page::events(body, forward)
        }
        Route::Watch(params) => {
            let mut body = kernel.call(Method::WatchGet, &params).await?;
            event_log::describe_notices(&mut body, params["name"].as_str().unwrap_or_default());
            Page::events(body, false)
        }
    };
    Ok(page.finish(uri))
}

fn approval(mut list: Value, params: &Value) -> Result<Value, Failure> {
    match list["approvals"].as_array_mut().and_then(Vec::pop) {
        Some(approval) => Ok(approval),
        None => {
            let plan = params["plan_ref"].as_str().unwrap_or_default();
            Err(Failure::Kernel(shoal_wire::RpcError::unknown_plan(plan, "unknown")))
        }
    }
}

/// What a read shows: one content item and the same, structured.
struct Page {
    mime: &'static str,
    content: Content,
    structured: Value,
    truncated: Option<Value>,
}

enum Content {
    Text(String),
    /// Base64.
    Blob(String),
}

impl Page {
    /// The page of a kernel result, by its shape.
    fn of(method: Method, mut result: Value, uri: &str) -> Page {
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
    fn whole(mut body: Value) -> Page {
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

    fn events(mut body: Value, forward: bool) -> Page {
        event_log::fit(&mut body, forward, limits::TEXT_BYTES);
        Page { mime: EVENTS_MIME, content: Content::Text(complete(&body)), structured: body, truncated: None }
    }

    fn finish(self, uri: &str) -> Map<String, Value> {
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
