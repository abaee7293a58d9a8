//! A kernel that answers by script and remembers what it was asked.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// Longest wait for something that is bound to happen.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// What the script says to a request.
pub(crate) enum Say {
    Result(Value),
    Error(Value),
    /// Nothing now; the test answers by [`Kernel::answer`].
    Later,
}

type Script = dyn Fn(&str, &Value) -> Say + Send + Sync;

pub(crate) struct Kernel {
    pub(crate) dir: tempfile::TempDir,
    seen: Mutex<Receiver<(String, Value, Value)>>,
    writers: Arc<Mutex<Vec<UnixStream>>>,
}

impl Kernel {
    /// Answers attaches and subscriptions itself and everything else by `script`.
    pub(crate) fn start(script: impl Fn(&str, &Value) -> Say + Send + Sync + 'static) -> Kernel {
        Kernel::start_as("human", script)
    }

    /// The same under a policy with this `approve`.
    pub(crate) fn start_as(
        approve: &'static str,
        script: impl Fn(&str, &Value) -> Say + Send + Sync + 'static,
    ) -> Kernel {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("k.sock")).unwrap();
        let (tell, seen) = channel();
        let writers = Arc::new(Mutex::new(Vec::new()));
        let (script, all): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&writers));
        std::thread::spawn(move || {
            for (count, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                all.lock().unwrap().push(stream.try_clone().unwrap());
                let (script, tell) = (Arc::clone(&script), tell.clone());
                std::thread::spawn(move || serve(stream, count, approve, &*script, &tell));
            }
        });
        Kernel { dir, seen: Mutex::new(seen), writers }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("k.sock")
    }

    /// The next request of `method`: its id and parameters. Others in between are passed over.
    pub(crate) fn request(&self, method: &str) -> (Value, Value) {
        let seen = self.seen.lock().unwrap();
        loop {
            let (name, id, params) = seen.recv_timeout(SOON).unwrap_or_else(|_| panic!("no {method} came"));
            if name == method {
                return (id, params);
            }
        }
    }

    /// Answers a request that was left for later.
    pub(crate) fn answer(&self, id: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    pub(crate) fn event(&self, channel: &str, seq: u64, payload: Value) {
        let params = json!({ "channel": channel, "seq": seq, "ts": 1, "payload": payload });
        self.send(&json!({ "jsonrpc": "2.0", "method": "event", "params": params }));
    }

    fn send(&self, frame: &Value) {
        let mut writers = self.writers.lock().unwrap();
        put(writers.last_mut().expect("a connection"), frame).unwrap();
    }

    /// Breaks every connection.
    pub(crate) fn drop_connections(&self) {
        for stream in self.writers.lock().unwrap().drain(..) {
            stream.shutdown(std::net::Shutdown::Both).ok();
        }
    }
}

/// Writes a frame in one piece: answers and events come from different threads.
fn put(stream: &mut UnixStream, frame: &Value) -> std::io::Result<()> {
    stream.write_all(format!("{frame}\n").as_bytes())
}

fn serve(stream: UnixStream, count: usize, approve: &str, script: &Script, tell: &Sender<(String, Value, Value)>) {
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let request: Value = serde_json::from_str(&line).unwrap();
        let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
        let say = match method {
            "session.attach" => Say::Result(json!({"session":"default","owner":"agent:docs","principal":"agent:docs",
                "created":true,"protocol":1,"connection":count,"caps":{"approve":approve}})),
            "events.subscribe" => {
                Say::Result(json!({"channel":params["channel"],"subscribed":true,"next_seq":5,"history_lost":false}))
            }
            "events.unsubscribe" => Say::Result(json!({"channel":params["channel"],"subscribed":false})),
            _ => script(method, params),
        };
        let answer = match say {
            Say::Result(result) => Some(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })),
            Say::Error(error) => Some(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })),
            Say::Later => None,
        };
        if let Some(answer) = answer {
            // The other end may be gone.
            put(&mut writer, &answer).ok();
        }
        // The test may have ended.
        tell.send((method.to_owned(), request["id"].clone(), params.clone())).ok();
    }
}
