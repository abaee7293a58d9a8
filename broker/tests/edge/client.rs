//! A client that speaks lines and waits no longer than its deadline.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

/// Nothing in these tests takes longer on any machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// A connection.
pub(crate) struct Client {
    /// To write bytes that are no request.
    pub(crate) stream: UnixStream,
    reader: BufReader<UnixStream>,
    pushes: VecDeque<Value>,
    next: u64,
}

impl Client {
    /// Connects.
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("connected");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        let reader = BufReader::new(stream.try_clone().expect("a copy"));
        Self { stream, reader, pushes: VecDeque::new(), next: 0 }
    }

    /// Sends a request and returns its id; nothing when the other end is gone.
    pub(crate) fn try_send(&mut self, method: &str, params: Value) -> Option<u64> {
        self.next += 1;
        let frame = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.stream.write_all(format!("{frame}\n").as_bytes()).ok()?;
        Some(self.next)
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.try_send(method, params).expect("sent")
    }

    /// The next frame, or `None` at the end.
    pub(crate) fn frame(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            // A broker that is killed may be in the middle of a frame.
            Ok(_) if !line.ends_with('\n') => None,
            Ok(_) => Some(serde_json::from_str(&line).expect("JSON")),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no frame: {error}"),
        }
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let mut frame = self.frame().expect("an answer");
            if frame.get("method").is_some() {
                self.pushes.push_back(frame["params"].take());
                continue;
            }
            assert_eq!(frame["id"], id, "{frame}");
            return match frame.get_mut("error") {
                Some(error) => Err(error.take()),
                None => Ok(frame["result"].take()),
            };
        }
    }

    /// Calls a method.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a method that succeeds.
    pub(crate) fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method that fails; the code and data.
    pub(crate) fn fails(&mut self, method: &str, params: Value) -> (i64, Value) {
        let mut error = self.call(method, params).expect_err("an error");
        (error["code"].as_i64().expect("a code"), error["data"].take())
    }

    /// Forgets the pushes that came while answers were waited for.
    pub(crate) fn forget_pushes(&mut self) {
        self.pushes.clear();
    }

    /// The next push.
    pub(crate) fn push(&mut self) -> Value {
        if let Some(push) = self.pushes.pop_front() {
            return push;
        }
        let mut frame = self.frame().expect("a push");
        assert_eq!(frame["method"], "event", "{frame}");
        frame["params"].take()
    }
}

/// Bytes of a base64 text.
pub(crate) fn decoded(text: &Value) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text.as_str().expect("text")).expect("base64")
}
