//! From a URI to the kernel call that reads it.

use serde_json::{Map, Value, json};
use shoal_wire::effect;
use shoal_wire::error::Reason;
use shoal_wire::limits::URI_BYTES;
use shoal_wire::params::journal::ROW_KINDS;
use shoal_wire::{Method, Ref, RpcError, Uri};

/// Events a read returns when nothing is said.
const EVENTS: u64 = 256;

/// How a URI is read.
#[derive(Debug, PartialEq)]
pub(crate) enum Route {
    /// One call; the answer is the resource.
    Call(Method, Value),
    /// The result of a task, or its record while there is none.
    TaskResult { task: String, select: Map<String, Value> },
    /// The one approval of a plan.
    Approval(Value),
    /// An event log; `forward` when it is read from a number on.
    Events { params: Value, forward: bool },
    /// A watch with its notices.
    Watch(Value),
}

/// Finds the way to read `text`. Errors are plain: there is no such resource, or a parameter is malformed.
pub(crate) fn of(text: &str) -> Result<Route, RpcError> {
    let uri = Uri::parse(text).map_err(|error| match Ref::parse(text).and_then(|named| named.uri()) {
        Some(uri) => plain(text, &format!("{error}: write {uri}")),
        None => plain(text, &error.to_string()),
    })?;
    let query = Query { uri: &uri, text };
    let segments: Vec<&str> = uri.segments.iter().map(String::as_str).collect();
    let call = |method, params| Ok(Route::Call(method, params));
    match (uri.root.as_str(), segments.as_slice()) {
        ("journal", []) => call(Method::JournalQuery, query.journal()?),
        ("jobs", []) => call(Method::TaskList, json!({})),
        ("pty", []) => call(Method::PtyList, json!({})),
        ("session", ["cwd"]) => call(Method::SessionSnapshot, json!({})),
        ("session", ["env"]) => call(Method::SessionEnv, json!({})),
        ("session", ["reef"]) => call(Method::SessionReef, json!({})),
        ("session", [_]) => Err(plain(text, "the views of a session are cwd, env and reef")),
        ("out", [n]) => query.out(&query.reference("out", n)?),
        ("val", [hash]) => query.val(&query.reference("val", hash)?),
        ("task", [id]) => call(Method::TaskGet, json!({ "task": query.reference("task", id)?.to_string() })),
        ("task", [id, "out"]) => {
            Ok(Route::TaskResult { task: query.reference("task", id)?.to_string(), select: query.selection()? })
        }
        ("task", [id, "log"]) => call(Method::TaskOutput, query.log(&query.reference("task", id)?)?),
        ("plan", [id]) => call(Method::PlanGet, json!({ "plan_ref": query.reference("plan", id)?.to_string() })),
        ("approval", [id]) => {
            let plan = query.reference("approval", id)?.to_string();
            Ok(Route::Approval(json!({ "plan_ref": plan, "state": "all" })))
        }
        ("pty", [id]) => call(Method::PtyRead, json!({ "pty_id": query.reference("pty", id)?.to_string() })),
        ("events", [channel]) => query.events(channel),
        ("watch", [name]) => Ok(Route::Watch(json!({ "name": name }))),
        ("out" | "val" | "task" | "plan" | "approval" | "session" | "events" | "watch", []) => {
            Err(plain(text, &format!("`shoal://{}/` needs one more segment", uri.root)))
        }
        _ => Err(plain(text, "no such resource; the lists of resources and of templates tell what there is")),
    }
}

/// An error about a URI, which it repeats as far as one can be long.
fn plain(uri: &str, message: &str) -> RpcError {
    RpcError::invalid("uri", Reason::Syntax, message).and("uri", shoal_wire::text::cut(uri, URI_BYTES))
}

struct Query<'u> {
    uri: &'u Uri,
    text: &'u str,
}

impl Query<'_> {
    fn reference(&self, kind: &str, name: &str) -> Result<Ref, RpcError> {
        Ref::of(kind, name).ok_or_else(|| plain(self.text, &format!("`{name}` names no {kind}")))
    }

    fn bad(&self, key: &str, expected: &str) -> RpcError {
        plain(self.text, &format!("`{key}` must be {expected}"))
    }

    fn read<T: std::str::FromStr>(&self, key: &str, expected: &str) -> Result<Option<T>, RpcError> {
        self.uri.value(key).map(|text| text.parse().map_err(|_| self.bad(key, expected))).transpose()
    }

    fn int(&self, key: &str) -> Result<Option<i64>, RpcError> {
        self.read(key, "an integer")
    }

    fn uint(&self, key: &str) -> Result<Option<u64>, RpcError> {
        self.read(key, "an integer of at least 0")
    }

    /// `path`, `slice`, `format` and `elide`.
    fn selection(&self) -> Result<Map<String, Value>, RpcError> {
        let mut select = Map::new();
        if let Some(path) = self.uri.value("path") {
            select.insert("path".to_owned(), json!(path));
        }
        if let Some(slice) = self.uri.value("slice") {
            let ends = slice.split_once("..").map(|(from, to)| (from.parse::<u64>(), to.parse::<u64>()));
            let Some((Ok(from), Ok(to))) = ends else { return Err(self.bad("slice", "two numbers, a..b")) };
            select.insert("slice".to_owned(), json!([from, to]));
        }
        if let Some(format) = self.uri.value("format") {
            if !matches!(format, "json" | "render" | "raw") {
                return Err(self.bad("format", "json, render or raw"));
            }
            select.insert("format".to_owned(), json!(format));
        }
        if let Some(text) = self.uri.value("elide") {
            let spec = serde_json::from_str(text).ok().filter(Value::is_object);
            select.insert("elide".to_owned(), spec.ok_or_else(|| self.bad("elide", "a JSON object"))?);
        }
        Ok(select)
    }

    fn out(&self, reference: &Ref) -> Result<Route, RpcError> {
        let mut select = self.selection()?;
        select.insert("ref".to_owned(), json!(reference.to_string()));
        if let Some(max) = self.uint("pull")? {
            let mut pull = select;
            pull.retain(|name, _| name == "ref" || name == "path");
            pull.insert("max".to_owned(), json!(max));
            return Ok(Route::Call(Method::StreamPull, Value::Object(pull)));
        }
        Ok(Route::Call(Method::ValueGet, Value::Object(select)))
    }

    fn val(&self, reference: &Ref) -> Result<Route, RpcError> {
        let mut select = self.selection()?;
        if !select.is_empty() {
            select.insert("ref".to_owned(), json!(reference.to_string()));
            return Ok(Route::Call(Method::ValueGet, Value::Object(select)));
        }
        let hash = reference.to_string();
        let mut params = json!({ "hash": hash.rsplit(':').next() });
        for key in ["offset", "length"] {
            if let Some(number) = self.uint(key)? {
                params[key] = json!(number);
            }
        }
        Ok(Route::Call(Method::BlobGet, params))
    }

    fn log(&self, task: &Ref) -> Result<Value, RpcError> {
        let mut params = json!({ "task": task.to_string() });
        if let Some(stream) = self.uri.value("stream") {
            if !matches!(stream, "stdout" | "stderr" | "both") {
                return Err(self.bad("stream", "stdout, stderr or both"));
            }
            params["stream"] = json!(stream);
        }
        if let Some(offset) = self.int("offset")? {
            params["offset"] = json!(offset);
        }
        if let Some(max) = self.uint("max")? {
            params["max"] = json!(max);
        }
        Ok(params)
    }

    fn events(&self, channel: &str) -> Result<Route, RpcError> {
        let since = self.uint("since")?;
        let mut params = json!({ "channel": channel, "limit": self.uint("limit")?.unwrap_or(EVENTS) });
        if let Some(since) = since {
            params["since"] = json!(since);
        }
        Ok(Route::Events { params, forward: since.is_some() })
    }

    fn journal(&self) -> Result<Value, RpcError> {
        let mut params = Map::new();
        for key in ["since", "until", "before"] {
            if let Some(number) = self.int(key)? {
                params.insert(key.to_owned(), json!(number));
            }
        }
        for key in ["head", "principal"] {
            if let Some(text) = self.uri.value(key) {
                params.insert(key.to_owned(), json!(text));
            }
        }
        if let Some(ok) = self.read::<bool>("ok", "true or false")? {
            params.insert("ok".to_owned(), json!(ok));
        }
        if let Some(limit) = self.uint("limit")? {
            params.insert("limit".to_owned(), json!(limit));
        }
        for (key, known) in [("effects", is_effect as fn(&str) -> bool), ("kinds", |kind| ROW_KINDS.contains(&kind))] {
            if let Some(text) = self.uri.value(key) {
                let names: Vec<&str> = text.split(',').filter(|name| !name.is_empty()).collect();
                if let Some(unknown) = names.iter().find(|name| !known(name)) {
                    return Err(self.bad(key, &format!("a list of known names; `{unknown}` is none")));
                }
                params.insert(key.to_owned(), json!(names));
            }
        }
        Ok(Value::Object(params))
    }
}

fn is_effect(name: &str) -> bool {
    effect::kind(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(uri: &str) -> (&'static str, Value) {
        match of(uri) {
            Ok(Route::Call(method, params)) => (method.name(), params),
            other => panic!("{uri}: {other:?}"),
        }
    }

    #[test]
    fn every_template_has_its_call() {
        let hash = "a".repeat(64);
        let val = format!("val:blake3:{hash}");
        let plan = "9b1f6c0e4d7a4c33a1e05b7d2f8890ce";
        let cases = [
            ("shoal://out/1".to_owned(), "value.get", json!({"ref":"out:1"})),
            (
                "shoal://out/1?path=.a&slice=0..2&format=raw&elide=%7B%22max_rows%22:1%7D".to_owned(),
                "value.get",
                json!({"path":".a","slice":[0,2],"format":"raw","elide":{"max_rows":1},"ref":"out:1"}),
            ),
            ("shoal://out/1?path=s&pull=5".to_owned(), "stream.pull", json!({"path":"s","ref":"out:1","max":5})),
            (format!("shoal://val/{hash}?offset=5"), "blob.get", json!({"hash":hash,"offset":5})),
            (format!("shoal://val/blake3:{hash}?path=x"), "value.get", json!({"path":"x","ref":val})),
            ("shoal://task/task:7".to_owned(), "task.get", json!({"task":"task:7"})),
            (
                "shoal://task/7/log?offset=-5&stream=stderr&max=9".to_owned(),
                "task.output",
                json!({"task":"task:7","stream":"stderr","offset":-5,"max":9}),
            ),
            (format!("shoal://plan/plan:{plan}"), "plan.get", json!({"plan_ref":format!("plan:{plan}")})),
            ("shoal://pty/3".to_owned(), "pty.read", json!({"pty_id":"pty:3"})),
            (
                "shoal://journal?since=5&ok=false&effects=fs.write,opaque&kinds=exec&before=9&limit=2".to_owned(),
                "journal.query",
                json!({"since":5,"before":9,"ok":false,"limit":2,"effects":["fs.write","opaque"],"kinds":["exec"]}),
            ),
            ("shoal://jobs".to_owned(), "task.list", json!({})),
            ("shoal://session/cwd".to_owned(), "session.snapshot", json!({})),
        ];
        for (uri, method, params) in cases {
            assert_eq!(call(&uri), (method, params), "{uri}");
        }
        let events = Route::Events { params: json!({"channel":"user.z","limit":256}), forward: false };
        assert_eq!(of("shoal://events/user.z"), Ok(events));
    }

    #[test]
    fn what_is_no_resource_is_refused_plainly() {
        for uri in [
            "shoal://nope/1",
            "http://x",
            "shoal://",
            "shoal://out",
            "shoal://out/x",
            "shoal://session/zzz",
            "shoal://out/1?slice=x",
            "shoal://out/1?slice=1",
            "shoal://out/1?format=xml",
            "shoal://out/1?elide=7",
            "shoal://journal?ok=1",
            "shoal://journal?effects=nope",
            "shoal://events/x?since=-1",
            "shoal://task/1/nope",
            "shoal://jobs/1",
        ] {
            let error = of(uri).expect_err(uri);
            assert_eq!(error.code, -32602, "{uri}");
            assert_eq!(error.data.unwrap()["uri"], uri);
        }
    }
}
