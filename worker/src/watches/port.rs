//! Resources and watches as the language has them.

use serde_json::{Value as Json, json};
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Resources, WatchStart};
use shoal_resources::list::{Live, entries};
use shoal_resources::page::{Content, Page};
use shoal_resources::{templates, topic};
use shoal_value::{Bytes, ErrorValue, Record, Table, Value, code};
use shoal_watch::Spec;
use shoal_wire::{Code, Method, RpcError};

use super::servers::Contents;
use super::source::{OWN, ask};
use super::{OWN_SCHEME, Starter};
use crate::ports::Ports;
use crate::session::Session;

impl Resources for Ports {
    fn list(&self, _cancel: &CancelToken) -> Result<Table, ErrorValue> {
        list(&*self.session()?)
    }

    fn read(&self, uri: &str, _cancel: &CancelToken) -> Result<Value, ErrorValue> {
        read(&*self.session()?, uri)
    }

    fn watch_start(&self, watch: WatchStart, _cancel: &CancelToken) -> Result<Record, ErrorValue> {
        let WatchStart { name, uri, on_event, lang, persist } = watch;
        let spec = Spec {
            name: name.to_string(),
            uri: uri.to_string(),
            on_event: on_event.map(|source| source.to_string()),
            lang: lang.to_string(),
            persist,
        };
        let shape = super::start(&self.session()?, spec, Starter::Language).map_err(|error| in_language(&error))?;
        record(&json!({"name": &*name, "uri": &*uri, "shape": shape.word()}))
    }

    fn watch_stop(&self, name: &str) -> Result<bool, ErrorValue> {
        let session = self.session()?;
        super::stop(&session, name, Starter::Language).map_err(|error| in_language(&error))
    }

    fn watch_list(&self) -> Result<Table, ErrorValue> {
        watch_list(&*self.session()?)
    }

    fn call_tool(
        &self,
        _server: &str,
        _tool: &str,
        _args: &Record,
        _cancel: &CancelToken,
    ) -> Result<Value, ErrorValue> {
        Err(ErrorValue::new(code::NOT_PERMITTED, "call_tool: only filters of watches may call tools"))
    }

    fn has_servers(&self) -> bool {
        self.session().is_ok_and(|session| session.watches.servers.any())
    }
}

/// What there is to read: the session's own resources, then those of the configured servers.
pub(crate) fn list(session: &Session) -> Result<Table, ErrorValue> {
    let own = |method| ask(session, method, &json!({})).ok();
    let live = Live {
        tasks: own(Method::TaskList),
        plans: own(Method::PlanList),
        ptys: own(Method::PtyList),
        watches: own(Method::WatchList),
    };
    let mut rows = Vec::new();
    for entry in entries(&live) {
        let is_watchable = entry["uri"].as_str().is_some_and(|uri| topic::of(uri).is_some());
        rows.push(row(&entry, "uri", OWN, is_watchable)?);
    }
    for entry in templates::entries() {
        let is_watchable = entry["description"].as_str().is_some_and(|text| example(text).is_some());
        rows.push(row(&entry, "uriTemplate", OWN, is_watchable)?);
    }
    for listing in session.watches.servers.listings(session).map_err(|error| in_language(&error))? {
        for (entries, member) in [(&listing.resources, "uri"), (&listing.templates, "uriTemplate")] {
            for entry in entries {
                rows.push(row(entry, member, &listing.name, listing.subscribes)?);
            }
        }
    }
    Table::new(rows)
}

fn row(entry: &Json, member: &str, server: &str, subscribable: bool) -> Result<Record, ErrorValue> {
    let description = entry["description"].as_str();
    record(&json!({
        "uri": entry[member], "template": member == "uriTemplate", "name": entry["name"],
        "description": description, "example": description.and_then(example), "mime_type": entry["mimeType"],
        "server": server, "subscribable": subscribable,
    }))
}

/// What follows `Example:` at the end of a description.
fn example(description: &str) -> Option<&str> {
    description.lines().last()?.strip_prefix("Example:").map(str::trim)
}

/// Contents of a resource: JSON text as its value, other text as a str, anything else as bytes.
pub(crate) fn read(session: &Session, uri: &str) -> Result<Value, ErrorValue> {
    let read = match uri.starts_with(OWN_SCHEME) {
        true => super::source::read(session, uri).and_then(own_contents),
        false => session.watches.servers.of_uri(session, uri).and_then(|server| server.read(uri)),
    };
    contents(read.map_err(|error| in_language(&error))?)
}

fn own_contents(page: Page) -> Result<Contents, RpcError> {
    match page.content {
        Content::Text(text) => Ok(Contents { mime: page.mime.to_owned(), text: Some(text), blob: None }),
        Content::Blob(blob) => Ok(Contents { mime: page.mime.to_owned(), text: None, blob: Some(blob) }),
    }
}

fn contents(contents: Contents) -> Result<Value, ErrorValue> {
    use base64::Engine as _;
    if let Some(text) = contents.text {
        return Ok(shoal_value::json::parse(&text).unwrap_or_else(|_| Value::Str(text.as_str().into())));
    }
    let blob = contents.blob.unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(blob);
    let bytes = bytes.map_err(|_| ErrorValue::new(code::IO_ERROR, "the resource's bytes are not base64"))?;
    Ok(Value::Bytes(Bytes::from(bytes)))
}

/// The watches as a table.
pub(crate) fn watch_list(session: &Session) -> Result<Table, ErrorValue> {
    let columns =
        ["name", "uri", "shape", "lang", "state", "events", "notices", "persist", "restore_failed", "last_error"];
    let row = |watch: &Json| {
        let members = columns.iter().map(|column| ((*column).to_owned(), watch[column].clone()));
        record(&Json::Object(members.collect()))
    };
    Table::new(session.watches.records().iter().map(row).collect::<Result<_, _>>()?)
}

/// A tool of a configured server that says of itself that it only reads.
pub(crate) fn call_tool(session: &Session, server: &str, tool: &str, args: &Record) -> Result<Value, ErrorValue> {
    let args = shoal_value::json::stringify(&Value::Record(args.clone()))?;
    let args: Json = serde_json::from_str(&args).unwrap_or_else(|_| json!({}));
    let server = session.watches.servers.named(session, server).map_err(|error| in_language(&error))?;
    let answer = server.call_tool(tool, &args).map_err(|error| in_language(&error))?;
    if answer["isError"] == true {
        let text = answer["content"][0]["text"].as_str().unwrap_or("the tool failed");
        return Err(ErrorValue::new(code::CUSTOM, format!("{tool}: {text}")));
    }
    match (&answer["structuredContent"], answer["content"][0]["text"].as_str()) {
        (Json::Null, Some(text)) => {
            contents(Contents { mime: "text/plain".into(), text: Some(text.to_owned()), blob: None })
        }
        (structured, _) => shoal_value::json::parse(&structured.to_string()),
    }
}

fn record(json: &Json) -> Result<Record, ErrorValue> {
    match shoal_value::json::parse(&json.to_string())? {
        Value::Record(record) => Ok(record),
        _ => Ok(Record::empty()),
    }
}

/// An error of the protocol as the language raises it.
pub(crate) fn in_language(error: &RpcError) -> ErrorValue {
    let code = match error.code {
        code if code == Code::WatchFailed.number() => code::WATCH_FAILED,
        code if code == Code::InvalidParams.number() => code::ARG_ERROR,
        code if code == Code::UnknownRef.number() => code::NOT_FOUND,
        code if code == Code::LeashDenied.number() => code::NOT_PERMITTED,
        _ => code::CUSTOM,
    };
    let hint = error.data.as_ref().and_then(|data| data["hint"].as_str());
    let value = ErrorValue::new(code, error.message.as_str());
    match hint {
        Some(hint) => value.with_hint(hint),
        None => value,
    }
}
