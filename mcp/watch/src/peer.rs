//! The client side of MCP towards one server over its stdio, without the stdio.
//!
//! It probes with `server/discover` of 2026-07-28 and falls back to `initialize` on any error or silence. A server of
//! the older kind can be read and listed; watching it is refused.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// The version that watching needs.
pub const VERSION: &str = "2026-07-28";
/// The version offered to older servers.
const LEGACY: &str = "2025-11-25";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";
const UNSUPPORTED_VERSION: i64 = -32022;

/// Number of a request; a listen stream goes by the number of its request.
pub type Number = u64;

/// Something the server said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// It can be used now.
    Ready,
    /// It cannot be used.
    Refused(String),
    /// The answer to a request.
    Answer(Number, Result<Value, String>),
    /// A stream is open for these URIs.
    Acknowledged(Number, Vec<String>),
    /// Something under a URI of a stream changed.
    Updated(Number, String),
    /// A stream has ended.
    Ended(Number, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    AwaitDiscover(Number),
    AwaitInitialize(Number),
    Modern,
    Legacy,
    Refused,
}

/// Frames to write, and what was said.
#[derive(Debug, Default, PartialEq)]
pub struct Out {
    /// Lines to the server, each with its LF.
    pub lines: Vec<Vec<u8>>,
    /// What it said.
    pub said: Vec<Said>,
}

/// One server.
pub struct Peer {
    next: Number,
    phase: Phase,
    listens: HashMap<Number, String>,
    capabilities: Value,
    version: String,
}

impl Peer {
    /// A peer, and the probe to send first.
    pub fn connect() -> (Peer, Vec<u8>) {
        let mut peer = Peer {
            next: 1,
            phase: Phase::Refused,
            listens: HashMap::new(),
            capabilities: Value::Null,
            version: String::new(),
        };
        let (number, line) = peer.frame("server/discover", Map::new(), true);
        peer.phase = Phase::AwaitDiscover(number);
        (peer, line)
    }

    /// Whether it can be watched.
    pub fn is_modern(&self) -> bool {
        self.phase == Phase::Modern
    }

    /// The version it is spoken to in; empty before it is ready.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether it offers subscriptions that a watch can use.
    pub fn subscribes(&self) -> bool {
        self.is_modern() && self.capabilities["resources"]["subscribe"] == true
    }

    /// The probe stayed unanswered: a server of the older kind.
    pub fn on_silence(&mut self) -> Out {
        match self.phase {
            Phase::AwaitDiscover(_) => Out { lines: vec![self.initialize()], said: Vec::new() },
            Phase::AwaitInitialize(_) => self.refuse("the server answers neither server/discover nor initialize"),
            _ => Out::default(),
        }
    }

    /// A request; the answer carries its number.
    pub fn request(&mut self, method: &str, params: Map<String, Value>) -> (Number, Vec<u8>) {
        let modern = self.phase == Phase::Modern;
        self.frame(method, params, modern)
    }

    /// Opens a stream for one URI.
    pub fn listen(&mut self, uri: &str) -> (Number, Vec<u8>) {
        let notifications = json!({ "resourceSubscriptions": [uri] });
        let params = Map::from_iter([("notifications".to_owned(), notifications)]);
        let (number, line) = self.frame("subscriptions/listen", params, true);
        self.listens.insert(number, uri.to_owned());
        (number, line)
    }

    /// Ends a stream; nothing of it is reported any more.
    pub fn cancel(&mut self, stream: Number) -> Vec<u8> {
        self.listens.remove(&stream);
        notification("notifications/cancelled", json!({ "requestId": stream }))
    }

    /// A line of the server. Lines that are no JSON-RPC are passed over: some servers print to stdout.
    pub fn on_line(&mut self, line: &[u8]) -> Out {
        let Ok(mut frame) = serde_json::from_slice::<Value>(line) else { return Out::default() };
        let method = frame["method"].as_str().map(str::to_owned);
        match (method, frame["id"].as_u64()) {
            (None, Some(number)) => self.on_answer(number, &mut frame),
            (Some(method), None) => self.on_notification(&method, &frame["params"]),
            (Some(_), Some(_)) => Out { lines: vec![refusal(&frame["id"])], said: Vec::new() },
            (None, None) => Out::default(),
        }
    }

    fn on_answer(&mut self, number: Number, frame: &mut Value) -> Out {
        let outcome = match frame.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame["result"].take()),
        };
        match self.phase {
            Phase::AwaitDiscover(probe) if probe == number => self.on_discovered(outcome),
            Phase::AwaitInitialize(asked) if asked == number => self.on_initialized(outcome),
            _ if self.listens.remove(&number).is_some() => {
                let why = outcome.err().map_or_else(|| "the server ended the subscription".to_owned(), |e| message(&e));
                Out { lines: Vec::new(), said: vec![Said::Ended(number, why)] }
            }
            _ => Out { lines: Vec::new(), said: vec![Said::Answer(number, outcome.map_err(|error| message(&error)))] },
        }
    }

    fn on_discovered(&mut self, outcome: Result<Value, Value>) -> Out {
        let supported = match &outcome {
            Ok(found) => &found["supportedVersions"],
            Err(error) if error["code"] == UNSUPPORTED_VERSION => &error["data"]["supported"],
            Err(_) => &Value::Null,
        };
        let modern = supported.as_array().is_some_and(|versions| versions.iter().any(|version| version == VERSION));
        match outcome {
            Ok(found) if modern => {
                self.phase = Phase::Modern;
                self.capabilities = found["capabilities"].clone();
                VERSION.clone_into(&mut self.version);
                Out { lines: Vec::new(), said: vec![Said::Ready] }
            }
            _ => Out { lines: vec![self.initialize()], said: Vec::new() },
        }
    }

    fn initialize(&mut self) -> Vec<u8> {
        let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client() });
        let params = params.as_object().cloned().unwrap_or_default();
        let (number, line) = self.frame("initialize", params, false);
        self.phase = Phase::AwaitInitialize(number);
        line
    }

    fn on_initialized(&mut self, outcome: Result<Value, Value>) -> Out {
        match outcome {
            Ok(result) => {
                self.phase = Phase::Legacy;
                self.capabilities = result["capabilities"].clone();
                result["protocolVersion"].as_str().unwrap_or("an unnamed version").clone_into(&mut self.version);
                let line = notification("notifications/initialized", json!({}));
                Out { lines: vec![line], said: vec![Said::Ready] }
            }
            Err(error) => self.refuse(&message(&error)),
        }
    }

    fn refuse(&mut self, why: &str) -> Out {
        self.phase = Phase::Refused;
        Out { lines: Vec::new(), said: vec![Said::Refused(why.to_owned())] }
    }

    fn on_notification(&mut self, method: &str, params: &Value) -> Out {
        let stream = params["_meta"][SUBSCRIPTION_KEY].as_u64().filter(|stream| self.listens.contains_key(stream));
        let mut out = Out::default();
        match (method, stream) {
            ("notifications/subscriptions/acknowledged", Some(stream)) => {
                let uris = params["notifications"]["resourceSubscriptions"].as_array().into_iter().flatten();
                let uris = uris.filter_map(Value::as_str).map(str::to_owned).collect();
                out.said.push(Said::Acknowledged(stream, uris));
            }
            ("notifications/resources/updated", Some(stream)) => {
                let uri = params["uri"].as_str().unwrap_or_default();
                if self.listens.get(&stream).is_some_and(|watched| is_under(uri, watched)) {
                    out.said.push(Said::Updated(stream, uri.to_owned()));
                }
            }
            ("notifications/cancelled", _) => {
                let ended = params["requestId"].as_u64().filter(|stream| self.listens.remove(stream).is_some());
                out.said.extend(
                    ended.map(|stream| Said::Ended(stream, "the server cancelled the subscription".to_owned())),
                );
            }
            _ => {}
        }
        out
    }

    fn frame(&mut self, method: &str, mut params: Map<String, Value>, modern: bool) -> (Number, Vec<u8>) {
        let number = self.next;
        self.next += 1;
        if modern {
            let meta = json!({ VERSION_KEY: VERSION, CAPABILITIES_KEY: {}, CLIENT_KEY: client() });
            params.insert("_meta".to_owned(), meta);
        }
        let frame = json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params });
        (number, line(&frame))
    }
}

/// Whether `uri` is the watched one or something below it.
fn is_under(uri: &str, watched: &str) -> bool {
    let place = watched.split(['?', '#']).next().unwrap_or(watched);
    uri == watched || uri == place || uri.strip_prefix(place).is_some_and(|rest| rest.starts_with(['/', '?', '#']))
}

fn client() -> Value {
    json!({ "name": "shoal-watch", "version": env!("CARGO_PKG_VERSION") })
}

fn message(error: &Value) -> String {
    error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned)
}

fn notification(method: &str, params: Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// Servers of the older kind may ask things of us that we do not offer.
fn refusal(id: &Value) -> Vec<u8> {
    line(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "method not found" } }))
}

fn line(frame: &Value) -> Vec<u8> {
    let mut line = frame.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &[u8]) -> Value {
        serde_json::from_slice(line).unwrap()
    }

    fn say(peer: &mut Peer, frame: Value) -> Out {
        peer.on_line(frame.to_string().as_bytes())
    }

    fn modern() -> Peer {
        let (mut peer, probe) = Peer::connect();
        let probe = read(&probe);
        assert_eq!(
            (&probe["method"], &probe["params"]["_meta"][VERSION_KEY]),
            (&json!("server/discover"), &json!(VERSION))
        );
        let found = json!({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":[VERSION],"capabilities":{"resources":{"subscribe":true}}}});
        assert_eq!(say(&mut peer, found).said, [Said::Ready]);
        assert!(peer.subscribes());
        peer
    }

    #[test]
    fn a_stream_from_acknowledgement_to_end() {
        let mut peer = modern();
        let (stream, line) = peer.listen("memo://notes?x=1");
        assert_eq!(read(&line)["params"]["notifications"], json!({"resourceSubscriptions":["memo://notes?x=1"]}));
        let meta = json!({ SUBSCRIPTION_KEY: stream });
        let mut tell =
            |method: &str, params: Value| say(&mut peer, json!({"jsonrpc":"2.0","method":method,"params":params})).said;
        let acknowledged = json!({"_meta":meta,"notifications":{"resourceSubscriptions":["memo://notes?x=1"]}});
        assert_eq!(
            tell("notifications/subscriptions/acknowledged", acknowledged),
            [Said::Acknowledged(stream, vec!["memo://notes?x=1".into()])]
        );
        let updated = |uri: &str| json!({ "_meta": meta, "uri": uri });
        assert_eq!(tell("notifications/resources/updated", updated("memo://notes/7")).len(), 1, "a sub-resource");
        assert_eq!(tell("notifications/resources/updated", updated("memo://other")), []);
        assert_eq!(
            tell("notifications/resources/updated", json!({"_meta":{SUBSCRIPTION_KEY:99},"uri":"memo://notes"})),
            []
        );
        let ended = json!({"jsonrpc":"2.0","id":stream,"result":{"resultType":"complete"}});
        assert_eq!(say(&mut peer, ended).said, [Said::Ended(stream, "the server ended the subscription".into())]);
        assert_eq!(
            say(&mut peer, json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":stream}}))
                .said,
            []
        );
    }

    #[test]
    fn older_servers_are_initialized_after_any_refusal_or_silence() {
        for error in [
            json!({"code":-32601,"message":"m"}),
            json!({"code":-32602,"message":"m"}),
            json!({"code":UNSUPPORTED_VERSION,"data":{"supported":["2025-11-25"]}}),
        ] {
            let (mut peer, _) = Peer::connect();
            let out = say(&mut peer, json!({"jsonrpc":"2.0","id":1,"error":error}));
            assert_eq!(read(&out.lines[0])["method"], "initialize");
            let out = say(
                &mut peer,
                json!({"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}),
            );
            assert_eq!(
                (out.said, read(&out.lines[0])["method"].clone()),
                (vec![Said::Ready], json!("notifications/initialized"))
            );
            assert!(!peer.is_modern() && !peer.subscribes());
        }
        let (mut peer, _) = Peer::connect();
        assert_eq!(read(&peer.on_silence().lines[0])["method"], "initialize");
        assert!(matches!(&peer.on_silence().said[..], [Said::Refused(_)]));
    }

    #[test]
    fn requests_of_a_server_are_refused() {
        let mut peer = modern();
        let out = say(&mut peer, json!({"jsonrpc":"2.0","id":5,"method":"roots/list"}));
        assert_eq!(
            read(&out.lines[0]),
            json!({"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"method not found"}})
        );
    }

    proptest! {
        #[test]
        fn any_line_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..80), id in 0u64..4, text in ".{0,20}") {
            let mut peer = modern();
            peer.listen("memo://notes");
            drop(peer.on_line(&bytes));
            drop(say(&mut peer, json!({"id": id, "result": text})));
            drop(say(&mut peer, json!({"method": text, "params": text})));
        }
    }
}
