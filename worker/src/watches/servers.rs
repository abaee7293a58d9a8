//! The configured MCP servers: each is started on first use, in the session's jail, and ends with the session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde_json::{Value as Json, json};
use shoal_watch::progress::Body;
use shoal_watch::route::{self, Target};
use shoal_wire::RpcError;

use super::dialog::{Dialog, Stream};
use super::inbox::Inbox;
use super::launch;
use super::source::Source;
use crate::session::Session;

/// Pages of one listing; a server that gives out more is not worth waiting for.
const PAGES: usize = 64;

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configured {
    /// Its name.
    pub(crate) name: String,
    /// Its program.
    pub(crate) command: String,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Variables it gets besides the session's.
    pub(crate) env: Vec<(String, String)>,
}

/// What a server lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// Name of the server.
    pub(crate) name: String,
    /// Its resources.
    pub(crate) resources: Vec<Json>,
    /// Its templates.
    pub(crate) templates: Vec<Json>,
    /// Whether it offers subscriptions.
    pub(crate) subscribes: bool,
}

/// Contents of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// MIME type.
    pub(crate) mime: String,
    /// Text.
    pub(crate) text: Option<String>,
    /// Base64.
    pub(crate) blob: Option<String>,
}

/// The servers of a session.
#[derive(Default)]
pub(crate) struct Servers {
    configured: Vec<Configured>,
    open: Mutex<HashMap<String, Arc<Server>>>,
}

impl Servers {
    /// The servers of `shoal.toml`, in its order.
    pub(crate) fn of_config(mcp: &Json) -> Self {
        let configured = mcp.as_object().into_iter().flatten().filter_map(|(name, server)| {
            let texts = |value: &Json| value.as_array().into_iter().flatten().filter_map(text_of).collect();
            let env = server["env"].as_object().into_iter().flatten();
            Some(Configured {
                name: name.clone(),
                command: text_of(&server["command"])?,
                args: texts(&server["args"]),
                env: env.filter_map(|(name, value)| Some((name.clone(), text_of(value)?))).collect(),
            })
        });
        Self { configured: configured.collect(), open: Mutex::default() }
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        !self.configured.is_empty()
    }

    /// A server by name, started if it is not running.
    pub(crate) fn named(&self, session: &Session, name: &str) -> Result<Arc<Server>, RpcError> {
        let Some(configured) = self.configured.iter().find(|server| server.name == name) else {
            let known: Vec<&str> = self.configured.iter().map(|server| &*server.name).collect();
            let hint = format!("configured servers: {}", known.join(", "));
            return Err(RpcError::watch_failed("", Some(name), "no_server", &format!("no server `{name}`"), &hint));
        };
        // Held while it starts, so that it is started once.
        let mut open = self.open();
        if let Some(server) = open.get(name).filter(|server| !server.dialog.is_over()) {
            return Ok(server.clone());
        }
        let server = Arc::new(Server { name: name.to_owned(), dialog: launch::start(session, configured)? });
        open.insert(name.to_owned(), server.clone());
        Ok(server)
    }

    /// The server of a URI: who lists it, else whose template matches, else who offers subscriptions.
    pub(crate) fn of_uri(&self, session: &Session, uri: &str) -> Result<Arc<Server>, RpcError> {
        let servers: Vec<route::Server> = self.listings(session)?.iter().map(described).collect();
        match route::find(uri, &servers) {
            Some(Target::Server(server)) => self.named(session, &server.name),
            _ => {
                let message = format!("no server offers `{uri}`; list_resources() tells what there is");
                Err(RpcError::watch_failed(uri, None, "no_server", &message, ""))
            }
        }
    }

    /// What every server lists. One that cannot be started or asked fails it only when it is the only one.
    pub(crate) fn listings(&self, session: &Session) -> Result<Vec<Listing>, RpcError> {
        let mut listings = Vec::new();
        for configured in &self.configured {
            match self.named(session, &configured.name).and_then(|server| server.listing()) {
                Ok(listing) => listings.push(listing),
                Err(error) if self.configured.len() == 1 => return Err(error),
                Err(error) => super::log::untold(&configured.name, &error),
            }
        }
        Ok(listings)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Arc<Server>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text_of(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn described(listing: &Listing) -> route::Server {
    let texts = |entries: &[Json], member: &str| entries.iter().filter_map(|entry| text_of(&entry[member])).collect();
    route::Server {
        name: listing.name.clone(),
        resources: texts(&listing.resources, "uri"),
        templates: texts(&listing.templates, "uriTemplate"),
        subscribes: listing.subscribes,
    }
}

/// A server that runs.
pub(crate) struct Server {
    name: String,
    dialog: Arc<Dialog>,
}

impl Server {
    fn trouble(&self, uri: &str, reason: &str, detail: &str) -> RpcError {
        RpcError::watch_failed(uri, Some(&self.name), reason, &format!("server `{}`: {detail}", self.name), detail)
    }

    fn ask(&self, method: &str, params: Json) -> Result<Json, RpcError> {
        let uri = params["uri"].as_str().unwrap_or_default().to_owned();
        self.dialog.request(method, params).map_err(|detail| self.trouble(&uri, "failed", &detail))
    }

    fn listing(&self) -> Result<Listing, RpcError> {
        let resources = self.pages("resources/list", "resources")?;
        // Templates are optional for servers.
        let templates = self.pages("resources/templates/list", "resourceTemplates").unwrap_or_default();
        Ok(Listing { name: self.name.clone(), resources, templates, subscribes: self.dialog.subscribes() })
    }

    fn pages(&self, method: &str, member: &str) -> Result<Vec<Json>, RpcError> {
        let mut all = Vec::new();
        let mut cursor = Json::Null;
        for _ in 0..PAGES {
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let mut page = self.ask(method, params)?;
            if let Json::Array(entries) = page[member].take() {
                all.extend(entries);
            }
            cursor = page["nextCursor"].take();
            if cursor.is_null() {
                break;
            }
        }
        Ok(all)
    }

    /// Reads a resource.
    pub(crate) fn read(&self, uri: &str) -> Result<Contents, RpcError> {
        let answer = self.ask("resources/read", json!({"uri": uri}))?;
        let content = &answer["contents"][0];
        let mime = content["mimeType"].as_str().unwrap_or("text/plain").to_owned();
        let (text, blob) = (text_of(&content["text"]), text_of(&content["blob"]));
        if text.is_none() && blob.is_none() {
            return Err(self.trouble(uri, "failed", &format!("`{uri}` was read and has no contents")));
        }
        Ok(Contents { mime, text, blob })
    }

    /// Calls a tool that says of itself that it only reads; others are refused before they are called.
    pub(crate) fn call_tool(&self, tool: &str, args: &Json) -> Result<Json, RpcError> {
        let tools = self.pages("tools/list", "tools")?;
        match tools.iter().find(|listed| listed["name"] == tool) {
            None => Err(self.trouble("", "failed", &format!("there is no tool `{tool}`"))),
            Some(listed) if listed["annotations"]["readOnlyHint"] == true => {
                self.ask("tools/call", json!({"name": tool, "arguments": args}))
            }
            Some(_) => {
                let message = format!("tool `{tool}` of `{}` is not marked readOnlyHint", self.name);
                Err(RpcError::new(shoal_wire::Code::LeashDenied, message).with(json!({"reason": "not_permitted"})))
            }
        }
    }

    fn listen(&self, uri: &str, inbox: &Arc<Inbox>) -> Result<Stream, RpcError> {
        if !self.dialog.is_modern() {
            let version = shoal_watch::peer::VERSION;
            let spoken = self.dialog.version();
            let message = format!("server `{}` speaks {spoken}; watching needs MCP {version}", self.name);
            let error = RpcError::watch_failed(uri, Some(&self.name), "version", &message, "");
            return Err(error.and("required_version", version));
        }
        self.dialog.listen(uri, inbox).map_err(|detail| self.trouble(uri, "not_subscribable", &detail))
    }
}

/// A resource of a configured server.
pub(crate) struct Remote {
    session: Weak<Session>,
    server: String,
    uri: String,
    open: Mutex<Option<(Arc<Server>, Stream)>>,
}

impl Remote {
    /// A resource of the server that offers it.
    pub(crate) fn new(session: &Arc<Session>, uri: &str) -> Result<Self, RpcError> {
        let server = session.watches.servers.of_uri(session, uri)?.name.clone();
        Ok(Self { session: Arc::downgrade(session), server, uri: uri.to_owned(), open: Mutex::default() })
    }

    fn connect(&self) -> Result<Arc<Server>, RpcError> {
        let session = self.session.upgrade().ok_or_else(|| RpcError::internal("the session is over"))?;
        session.watches.servers.named(&session, &self.server)
    }

    fn open(&self) -> MutexGuard<'_, Option<(Arc<Server>, Stream)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for Remote {
    fn server(&self) -> &str {
        &self.server
    }

    fn subscribe(&self, inbox: &Arc<Inbox>) -> Result<(), RpcError> {
        self.unsubscribe(inbox);
        let server = self.connect()?;
        let stream = server.listen(&self.uri, inbox)?;
        *self.open() = Some((server, stream));
        Ok(())
    }

    fn read(&self) -> Result<Body, RpcError> {
        let contents = self.connect()?.read(&self.uri)?;
        let text = contents.text.or(contents.blob).unwrap_or_default();
        Ok(Body { mime: contents.mime, text })
    }

    fn unsubscribe(&self, _inbox: &Arc<Inbox>) {
        if let Some((server, stream)) = self.open().take() {
            server.dialog.cancel(stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_from_the_configuration() {
        let servers = Servers::of_config(&json!({
            "kube": {"command": "kube-mcp", "args": ["--read-only"], "env": {"KUBECONFIG": "/k"}},
            "broken": {"args": []},
        }));
        let expected = Configured {
            name: "kube".into(),
            command: "kube-mcp".into(),
            args: vec!["--read-only".into()],
            env: vec![("KUBECONFIG".into(), "/k".into())],
        };
        assert_eq!(servers.configured, [expected]);
        assert!(servers.any() && !Servers::of_config(&Json::Null).any());
    }
}
