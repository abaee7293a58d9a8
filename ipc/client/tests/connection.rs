//! A connection against a scripted peer: matching, loss, restarts, events.
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_client::{Attach, CallError, Client, Config, ConnectError, Connection, Flags, Vars};
use shoal_wire::{Method, RpcError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// The kernel's side of one connection.
struct Peer {
    lines: tokio::io::Lines<BufReader<tokio::net::unix::OwnedReadHalf>>,
    writer: tokio::net::unix::OwnedWriteHalf,
}

impl Peer {
    fn new(stream: UnixStream) -> Peer {
        let (reader, writer) = stream.into_split();
        Peer { lines: BufReader::new(reader).lines(), writer }
    }

    async fn request(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().expect("a request")).unwrap()
    }

    async fn send(&mut self, frame: Value) {
        self.writer.write_all(format!("{frame}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }
}

fn attached(created: bool) -> Value {
    json!({"session":"default","owner":"uid:1","principal":"uid:1","created":created,"protocol":1,"caps":{"approve":"human"}})
}

fn config(socket: PathBuf) -> Config {
    let vars = Vars::from_pairs(&[("SHOAL_NO_AUTOSTART", "1"), ("SHOAL_STATE_DIR", "/nonexistent")]);
    let flags = Flags { socket: Some(socket), ..Flags::default() };
    Config { deadline: Duration::from_secs(5), ..Config::resolve(flags, &vars).unwrap() }
}

fn pair() -> (Connection, Peer) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Connection::over(ours), Peer::new(theirs))
}

#[tokio::test(flavor = "current_thread")]
async fn answers_are_matched_by_id_in_any_order() {
    let (connection, mut peer) = pair();
    let none = json!({});
    let script = async {
        let first = peer.request().await;
        let second = peer.request().await;
        assert_eq!((&first["method"], &second["method"]), (&json!("session.env"), &json!("task.list")));
        peer.answer(&second, json!("tasks")).await;
        peer.answer(&first, json!("env")).await;
    };
    let (env, tasks, ()) =
        tokio::join!(connection.call(Method::SessionEnv, &none), connection.call(Method::TaskList, &none), script);
    assert_eq!((env.unwrap().get(), tasks.unwrap().get()), ("\"env\"", "\"tasks\""));
}

#[tokio::test(flavor = "current_thread")]
async fn errors_keep_their_code_and_data() {
    let (connection, mut peer) = pair();
    let error = RpcError::unknown_task("task:9");
    let script = async {
        let request = peer.request().await;
        peer.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error.clone()})).await;
    };
    let task = json!({"task": "task:9"});
    let (outcome, ()) = tokio::join!(connection.call(Method::TaskGet, &task), script);
    assert_eq!(outcome.unwrap_err().kernel(), Some(&error));
}

#[tokio::test(flavor = "current_thread")]
async fn calls_in_flight_are_lost_with_their_connection() {
    let (connection, mut peer) = pair();
    let script = async {
        peer.request().await;
        drop(peer);
    };
    let none = json!({});
    let (outcome, ()) = tokio::join!(connection.call(Method::TaskList, &none), script);
    assert!(matches!(outcome, Err(CallError::Lost)));
    connection.lost().await;
    assert!(connection.is_lost());
    assert!(matches!(connection.call(Method::TaskList, &json!({})).await, Err(CallError::Lost)));
}

#[tokio::test(flavor = "current_thread")]
async fn a_dropped_call_leaves_the_connection_usable() {
    let (connection, mut peer) = pair();
    let none = json!({});
    tokio::select! {
        _ = connection.call(Method::TaskList, &none) => panic!("nobody answers that"),
        request = peer.request() => {
            assert_eq!(request["method"], "task.list");
            peer.answer(&request, json!(1)).await;
        }
    }
    let script = async {
        let request = peer.request().await;
        peer.answer(&request, json!(2)).await;
    };
    let (outcome, ()) = tokio::join!(connection.call(Method::TaskList, &none), script);
    assert_eq!(outcome.unwrap().get(), "2");
}

#[tokio::test(flavor = "current_thread")]
async fn events_are_sorted_by_topic_and_end_with_the_connection() {
    let (connection, mut peer) = pair();
    let event = |channel: &str, seq: u64| json!({"jsonrpc":"2.0","method":"event","params":{"channel":channel,"seq":seq,"ts":1,"payload":seq}});
    let script = async {
        let request = peer.request().await;
        assert_eq!(request["params"], json!({"channel": "user.a", "since": 4, "owner": null}));
        // An event may come before the answer of the request that caused it.
        peer.send(event("user.a", 5)).await;
        peer.answer(&request, json!({"channel":"user.a","subscribed":true,"next_seq":6,"history_lost":false})).await;
        peer.send(event("user.b", 1)).await;
        peer.send(event("user.a", 6)).await;
        drop(peer);
    };
    let (subscribed, ()) = tokio::join!(connection.subscribe("user.a", Some(4), None), script);
    let (subscribed, mut events) = subscribed.unwrap();
    assert_eq!((subscribed.next_seq, subscribed.history_lost), (6, false));
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event.seq);
    }
    assert_eq!(seen, [5, 6]);
    assert_eq!(events.dropped(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn a_slow_reader_is_told_how_much_it_missed() {
    let (connection, mut peer) = pair();
    let script = async {
        let request = peer.request().await;
        peer.answer(&request, json!({"next_seq":0,"history_lost":false})).await;
        for seq in 0..1500 {
            peer.send(
                json!({"jsonrpc":"2.0","method":"event","params":{"channel":"c","seq":seq,"ts":1,"payload":null}}),
            )
            .await;
        }
        let request = peer.request().await;
        peer.answer(&request, json!(null)).await;
    };
    let reader = async {
        let subscription = connection.subscribe("c", None, None).await.unwrap().1;
        // The answer comes behind all events, so they have all been sorted when it is here.
        connection.call(Method::TaskList, &json!({})).await.unwrap();
        subscription
    };
    let (mut events, ()) = tokio::join!(reader, script);
    assert_eq!(events.dropped(), 1500 - 1024);
    assert_eq!(events.next().await.map(|event| event.seq), Some(0));
}

#[tokio::test(flavor = "current_thread")]
async fn a_kernel_that_restarts_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let client = Client::new(config(path), Attach::new("default", "cli"));
    let script = async {
        // The supervisor's word, and a connection that breaks under the attach.
        let mut first = Peer::new(listener.accept().await.unwrap().0);
        let restarting = RpcError::restarting(1);
        first.send(json!({"jsonrpc":"2.0","id":null,"error":restarting})).await;
        drop(first);
        drop(listener.accept().await.unwrap());
        let mut third = Peer::new(listener.accept().await.unwrap().0);
        let request = third.request().await;
        assert_eq!(request["params"]["client"], json!({"kind": "cli", "tty": false}));
        third.answer(&request, attached(true)).await;
        third
    };
    let (open, _third) = tokio::join!(client.attached(), script);
    let (_, attached, fresh) = open.unwrap();
    assert!(attached.created && fresh);
    assert_eq!(attached.approve, "human");
}

#[tokio::test(flavor = "current_thread")]
async fn a_lost_attachment_is_made_again_by_the_next_call() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let client = Client::new(config(path), Attach::new("default", "cli"));
    let script = async {
        for round in 0..2 {
            let mut peer = Peer::new(listener.accept().await.unwrap().0);
            let request = peer.request().await;
            peer.answer(&request, attached(false)).await;
            let request = peer.request().await;
            peer.answer(&request, json!(round)).await;
        }
    };
    let calls = async {
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(client.call(Method::TaskList, &json!({})).await.unwrap().get().to_owned());
            if let Some(connection) = client.present().await {
                connection.lost().await;
            }
        }
        seen
    };
    let (seen, ()) = tokio::join!(calls, script);
    assert_eq!(seen, ["0", "1"]);
}

#[tokio::test(flavor = "current_thread")]
async fn without_a_kernel_and_without_autostart_the_path_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let client = Client::new(config(path.clone()), Attach::new("default", "cli"));
    match client.attached().await {
        Err(ConnectError::NoKernel { path: named }) => assert_eq!(named, path),
        other => panic!("{:?}", other.err()),
    }
    let refused = RpcError::auth_failed("token_required", "no");
    let listener = UnixListener::bind(&path).unwrap();
    let script = async {
        let mut peer = Peer::new(listener.accept().await.unwrap().0);
        let request = peer.request().await;
        peer.send(json!({"jsonrpc":"2.0","id":request["id"],"error":refused})).await;
    };
    let (outcome, ()) = tokio::join!(client.attached(), script);
    assert!(matches!(outcome, Err(ConnectError::Refused(error)) if error == refused));
}
