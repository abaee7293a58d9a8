//! The result envelope of tools: a text half and a structured half, each complete on its own.
//!
//! From either half alone one can tell the status, the address, what was cut and where the rest is, the error code and
//! the next step. The text half says it in a last line, the structured half in `summary`.

mod cut;
mod line;
mod next;

use serde_json::{Map, Value, json};
use shoal_resources::bound::shrink;
use shoal_wire::{Code, Ref, RpcError, text};

use crate::bound;

pub(crate) use cut::Cut;

/// A render above this is left out of the structured half where `value` says the same.
const REPEATED_RENDER_BYTES: usize = 1024;
/// A render stays below this in the structured half.
const RENDER_BYTES: usize = 8192;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Finished well.
    Ok,
    /// Finished with a command that failed.
    Failed,
    /// Handed over to a task.
    Running,
    /// A plan that can be applied.
    Planned,
    /// Waits for a decision.
    Pending,
    /// Refused.
    Denied,
    /// A kernel error.
    Error,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Running => "running",
            Status::Planned => "planned",
            Status::Pending => "pending",
            Status::Denied => "denied",
            Status::Error => "error",
        }
    }

    /// The status of a kernel result: by the task, plan or grant it names, else by its value.
    fn of(result: &Map<String, Value>) -> Status {
        let word = |name: &str| result.get(name).and_then(Value::as_str);
        if result.contains_key("value") {
            let value = &result["value"];
            return if value["$"] == "outcome" && value["ok"] == false { Status::Failed } else { Status::Ok };
        }
        match (word("grant"), word("verdict")) {
            (Some("approved"), _) => return Status::Planned,
            (Some(_), _) => return Status::Pending,
            (None, Some("allow")) => return Status::Planned,
            (None, Some("approval_required")) => return Status::Pending,
            (None, Some(_)) => return Status::Denied,
            (None, None) => {}
        }
        let handed_over = result.contains_key("task") && result.contains_key("events");
        if handed_over { Status::Running } else { Status::Ok }
    }
}

/// A tool result in the making.
pub(crate) struct Report {
    status: Status,
    body: Map<String, Value>,
    first_text: Option<String>,
    cut: Vec<Cut>,
    note: Option<String>,
    /// The source the call brought, to show where an error lies in it.
    source: Option<String>,
}

impl Report {
    /// Reports a kernel result. Its value has been fitted before; an array is wrapped as `entries` or `items`.
    pub(crate) fn success(result: Value, note: Option<String>) -> Report {
        let body = match result {
            Value::Object(members) => members,
            Value::Array(items) => Map::from_iter([("items".to_owned(), Value::Array(items))]),
            other => Map::from_iter([("result".to_owned(), other)]),
        };
        let status = Status::of(&body);
        let mut report = Report { status, cut: cut::of(&body), body, first_text: None, note, source: None };
        report.place_render();
        report
    }

    /// Reports a kernel error.
    pub(crate) fn failure(error: &RpcError, note: Option<String>) -> Report {
        let body = match serde_json::to_value(error) {
            Ok(Value::Object(members)) => members,
            // An error is an object of strings and numbers.
            _ => Map::new(),
        };
        Report { status: Status::Error, body, first_text: None, cut: Vec::new(), note, source: None }
    }

    /// Tells which source the call brought.
    pub(crate) fn about(mut self, source: Option<&str>) -> Report {
        self.source = source.map(str::to_owned);
        self
    }

    /// Adds what the caller cut away before.
    pub(crate) fn and_cut(mut self, cut: Option<Cut>) -> Report {
        self.cut.extend(cut);
        self
    }

    /// The render is the text half; the structured half keeps it only as far as it says something new.
    fn place_render(&mut self) {
        let Some(Value::String(render)) = self.body.get("render") else { return };
        let render = render.clone();
        let inline = self
            .body
            .get("value")
            .is_some_and(|value| value["$"] != "ref" && !(value["$"] == "outcome" && value["out"]["$"] == "ref"));
        if inline && render.len() > REPEATED_RENDER_BYTES {
            self.body.shift_remove("render");
        } else if render.len() > RENDER_BYTES {
            let cut = self.shorten_render(&render);
            self.cut.retain(|cut| cut.what != "render");
            self.cut.push(cut);
        }
        self.first_text = Some(render);
    }

    /// Keeps the first lines of a long render; those that the kernel left out count as cut too.
    fn shorten_render(&mut self, render: &str) -> Cut {
        let uri = self.uri().map(|uri| cut::with_format(&uri));
        let before = self.cut.iter().find(|cut| cut.what == "render").map(|cut| cut.total);
        // The kernel's own marker is its last line; one marker with the whole count takes its place.
        let whole = before.and_then(|_| render.rsplit_once('\n')).map_or(render, |(lines, _)| lines);
        let bounded = text::bound_to(whole, uri.as_deref(), RENDER_BYTES);
        let total = before.unwrap_or(bounded.shown + bounded.left_out);
        let head = bounded.text.rsplit_once('\n').map_or(&*bounded.text, |(head, _)| head);
        let shown = bounded.shown;
        self.body
            .insert("render".to_owned(), json!(format!("{head}\n{}", text::marker(total - shown, uri.as_deref()))));
        Cut { what: "render", shown, total, unit: "lines", uri }
    }

    /// The URI of what the result is about.
    fn uri(&self) -> Option<String> {
        let string = |value: &Value| value.as_str().map(str::to_owned);
        let named = |holder: &Map<String, Value>| {
            holder.get("uri").and_then(string).or_else(|| holder.get("value").and_then(|value| string(&value["uri"])))
        };
        let by_ref = |holder: &Map<String, Value>| {
            ["ref", "task", "plan_ref", "pty_id"]
                .iter()
                .find_map(|name| Ref::parse(holder.get(*name)?.as_str()?)?.uri())
        };
        let data = self.body.get("data").and_then(Value::as_object);
        named(&self.body).or_else(|| by_ref(&self.body)).or_else(|| named(data?)).or_else(|| by_ref(data?))
    }

    /// A string of the result, or of the data of an error.
    fn text_of(&self, name: &str) -> Option<&str> {
        let data = self.body.get("data").and_then(Value::as_object);
        self.body.get(name).or_else(|| data?.get(name))?.as_str()
    }

    /// The result of `tools/call`.
    pub(crate) fn finish(mut self) -> Map<String, Value> {
        let uri = self.uri();
        if shrink(&mut self.body, bound::BODY_BYTES) && self.cut.is_empty() {
            self.cut.push(Cut { what: "value", shown: 0, total: 1, unit: "items", uri: uri.clone() });
        }
        let first = self.first_item(uri.as_deref());
        let summary = self.summary(uri.as_deref());
        let line = line::status_line(&self, &summary, uri.as_deref());
        let mut content = vec![json!({ "type": "text", "text": first })];
        if let Some(uri) = &uri {
            content.push(json!({ "type": "resource_link", "uri": uri, "name": link_name(uri) }));
        }
        content.push(json!({ "type": "text", "text": line }));
        let error = self.status == Status::Error;
        let mut structured = self.body;
        structured.insert("summary".to_owned(), Value::Object(summary));
        Map::from_iter([
            ("content".to_owned(), Value::Array(content)),
            ("structuredContent".to_owned(), Value::Object(structured)),
            ("isError".to_owned(), json!(error)),
        ])
    }

    fn first_item(&mut self, uri: Option<&str>) -> String {
        let whole = match self.first_text.take() {
            Some(render) => render,
            None if self.status == Status::Error => error_text(&self.body),
            None => pretty(&Value::Object(self.body.clone())),
        };
        let bounded = text::bound(&whole, uri);
        if bounded.left_out > 0 {
            let total = bounded.shown + bounded.left_out;
            let uri = uri.map(str::to_owned);
            self.cut.push(Cut { what: "text", shown: bounded.shown, total, unit: "lines", uri });
        }
        bounded.text.into_owned()
    }

    fn summary(&self, uri: Option<&str>) -> Map<String, Value> {
        let mut summary = Map::from_iter([("status".to_owned(), json!(self.status.word()))]);
        if let Some(code) = self.code_number() {
            summary.insert("code".to_owned(), json!(code));
            if let Some(code) = Code::from_number(code) {
                summary.insert("name".to_owned(), json!(code.name()));
            }
        }
        for name in ["ref", "task", "plan_ref", "pty_id"] {
            if let Some(text) = self.text_of(name) {
                summary.insert(name.to_owned(), json!(text));
            }
        }
        if let Some(uri) = uri {
            summary.insert("uri".to_owned(), json!(uri));
        }
        summary.insert("cut".to_owned(), self.cut.iter().map(Cut::json).collect());
        summary.insert("next".to_owned(), json!(next::steps(self)));
        if let Some(note) = &self.note {
            summary.insert("note".to_owned(), json!(text::cut(note, 1024)));
        }
        summary
    }

    fn code_number(&self) -> Option<i64> {
        if self.status == Status::Error { self.body.get("code")?.as_i64() } else { None }
    }
}

fn error_text(body: &Map<String, Value>) -> String {
    let code = body.get("code").and_then(Value::as_i64).unwrap_or_default();
    let name = Code::from_number(code).map_or("ERROR", Code::name);
    let message = body.get("message").and_then(Value::as_str).unwrap_or_default();
    match body.get("data") {
        Some(data) => format!("{name} ({code}): {message}\n{}", pretty(data)),
        None => format!("{name} ({code}): {message}"),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// The name of a link: the short reference where the URI has one, else the URI itself.
fn link_name(uri: &str) -> String {
    let place = uri.split('?').next().unwrap_or(uri);
    Ref::parse(place).map_or_else(|| uri.to_owned(), |reference| reference.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(result: &Map<String, Value>) -> Vec<&str> {
        result["content"].as_array().unwrap().iter().filter_map(|item| item["text"].as_str()).collect()
    }

    #[test]
    fn a_value_as_the_protocol_shows_it() {
        let body = json!({"ref":"out:8","uri":"shoal://out/8","value":{"$":"int","v":42},"render":"42","elapsed_ms":1,
            "cwd":{"display":"/srv/site"}});
        let result = Report::success(body.clone(), None).finish();
        let mut structured = body;
        structured["summary"] = json!({"status":"ok","ref":"out:8","uri":"shoal://out/8","cut":[],"next":[]});
        let expected = json!({
            "content": [
                {"type":"text","text":"42"},
                {"type":"resource_link","uri":"shoal://out/8","name":"out:8"},
                {"type":"text","text":"[shoal] status=ok ref=out:8 uri=shoal://out/8 elapsed_ms=1 cwd=/srv/site"}
            ],
            "structuredContent": structured,
            "isError": false
        });
        assert_eq!(Value::Object(result), expected);
    }

    #[test]
    fn an_error_says_its_name_code_and_address_in_both_halves() {
        let error = RpcError::new(Code::Raised, "division by zero")
            .with(json!({"code":"div_zero","ref":"out:9","uri":"shoal://out/9"}));
        let result = Report::failure(&error, None).finish();
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["code"], -32002);
        let summary = &result["structuredContent"]["summary"];
        assert_eq!(
            (&summary["status"], &summary["name"], &summary["ref"]),
            (&json!("error"), &json!("RAISED"), &json!("out:9"))
        );
        let texts = texts(&result);
        assert!(texts[0].starts_with("RAISED (-32002): division by zero\n") && texts[0].contains("div_zero"));
        assert!(texts[1].contains("code=-32002 name=RAISED ref=out:9"), "{}", texts[1]);
        assert_eq!(result["content"][1]["uri"], "shoal://out/9");
    }

    #[test]
    fn statuses() {
        let status =
            |body: Value| Report::success(body, None).finish()["structuredContent"]["summary"]["status"].clone();
        let cases = [
            (json!({"value":{"$":"outcome","ok":false,"status":1}}), "failed"),
            (json!({"value":{"$":"outcome","ok":true,"status":0}}), "ok"),
            (json!({"task":"task:11","events":"task.11","uri":"shoal://task/11","timed_out":true}), "running"),
            (json!({"task":"task:11","cancel_requested":true,"state":"cancelled"}), "ok"),
            (json!({"plan_ref":"plan:x","verdict":"allow"}), "planned"),
            (json!({"plan_ref":"plan:x","verdict":"approval_required"}), "pending"),
            (json!({"plan_ref":"plan:x","verdict":"deny"}), "denied"),
            (json!({"grant":"approved"}), "planned"),
            (json!({"grant":"approval_pending"}), "pending"),
            (json!({"ptys":[]}), "ok"),
        ];
        for (body, expected) in cases {
            assert_eq!(status(body.clone()), expected, "{body}");
        }
    }

    #[test]
    fn renders_that_repeat_the_value_are_only_text() {
        let rows: Vec<Value> = (0..300).map(|n| json!({"$":"int","v":n})).collect();
        let render = "row\n".repeat(300);
        let body = json!({"ref":"out:1","value":{"$":"list","v":rows},"render":render});
        let result = Report::success(body, None).finish();
        assert_eq!(result["structuredContent"].get("render"), None);
        assert_eq!(result["structuredContent"]["summary"]["cut"], json!([]));
        assert_eq!(texts(&result)[0], render);
    }

    #[test]
    fn a_long_render_of_an_elided_value_is_cut_and_says_so() {
        let value = json!({"$":"ref","uri":"shoal://out/1","of":"list","n":9999,"preview":{"$":"list","v":[{"$":"int","v":1}]},"render_head":"1"});
        let body = json!({"ref":"out:1","uri":"shoal://out/1","value":value,"render":"0123456789\n".repeat(5000)});
        let result = Report::success(body, None).finish();
        let summary = &result["structuredContent"]["summary"];
        let whats: Vec<&str> =
            summary["cut"].as_array().unwrap().iter().filter_map(|cut| cut["what"].as_str()).collect();
        assert_eq!(whats, ["value", "render"]);
        assert_eq!(summary["next"][0], "shoal_get ref=out:1 slice=[0,100]");
        let line = *texts(&result).last().unwrap();
        assert!(line.contains("cut=\"value 1/9999 items, render "), "{line}");
        let render = &summary["cut"][1];
        let missing = render["total"].as_u64().unwrap() - render["shown"].as_u64().unwrap();
        assert_eq!(render["total"], 5000);
        let last = result["structuredContent"]["render"].as_str().unwrap().lines().last().unwrap();
        assert_eq!(last, format!("…({missing} more lines, fetch via shoal://out/1?format=render)"));
    }

    #[test]
    fn what_the_kernel_left_out_of_a_render_counts_as_cut_too() {
        let lines = "0123456789\n".repeat(3000);
        let render = format!("{lines}…(7000 more lines, fetch via shoal://out/1)");
        let value =
            json!({"$":"outcome","ok":true,"out":{"$":"ref","uri":"u","of":"str","n":1,"preview":{"$":"str","v":""}}});
        let result = Report::success(json!({"uri":"shoal://out/1","value":value,"render":render}), None).finish();
        let cuts = result["structuredContent"]["summary"]["cut"].as_array().unwrap();
        let render = cuts.iter().find(|cut| cut["what"] == "render").unwrap();
        assert_eq!(render["total"], 10_000);
        let text = result["structuredContent"]["render"].as_str().unwrap();
        assert_eq!(text.matches(" more lines, fetch via ").count(), 1, "one marker");
        assert_eq!(render["shown"], text.lines().count() - 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_result_fits(keys in prop::collection::vec("[a-z]{1,8}", 1..6), text in ".{0,900}", copies in 1usize..100) {
            let mut body = Map::new();
            for key in keys {
                body.insert(key, Value::Array(vec![json!({"t": text}); copies]));
            }
            let result = Report::success(Value::Object(body), Some(text.clone())).finish();
            prop_assert!(shoal_resources::bound::size(&result["structuredContent"]) <= bound::STRUCTURED_BYTES);
            let all = texts(&result);
            prop_assert!(all.iter().all(|text| text.len() <= 65_536));
            let line = all.last().unwrap();
            prop_assert!(line.len() <= 1024 && !line.chars().any(char::is_control), "{}", line);
        }
    }
}
