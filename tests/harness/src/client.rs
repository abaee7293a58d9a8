//! A client of the public socket: newline JSON over a UNIX stream, nothing else.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

/// An error answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// Code.
    pub code: i64,
    /// Message.
    pub message: String,
    /// Data, null when absent.
    pub data: Value,
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
    next_id: i64,
    /// Frames that came while another was waited for.
    waiting: VecDeque<Value>,
}

impl Client {
    /// Connects as the user the socket belongs to; a read waits for [`crate::patience`] at most.
    pub fn connect(socket: &Path) -> Self {
        let connected = std::fs::metadata(socket)
            .map(|meta| meta.uid())
            .and_then(|uid| crate::place::acting_as(uid, || UnixStream::connect(socket)));
        let stream = connected.unwrap_or_else(|e| panic!("connect {}: {e}", socket.display()));
        stream.set_read_timeout(Some(crate::patience())).expect("a timeout");
        stream.set_write_timeout(Some(crate::patience())).expect("a timeout");
        Self { stream, buffer: Vec::new(), next_id: 1, waiting: VecDeque::new() }
    }

    /// Writes bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Closes the writing side.
    pub fn shutdown_write(&self) {
        self.stream.shutdown(std::net::Shutdown::Write).expect("an open socket");
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        let mut line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        line.push('\n');
        self.send_raw(line.as_bytes()).expect("the kernel reads");
        id
    }

    /// The next frame as it comes; `None` at the end of the connection.
    pub fn frame(&mut self) -> Option<Value> {
        if let Some(frame) = self.waiting.pop_front() {
            return Some(frame);
        }
        self.read_frame()
    }

    fn read_frame(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("frames are JSON"));
            }
            let mut chunk = [0; 65536];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(got) => self.buffer.extend_from_slice(&chunk[..got]),
                // Another thread that connects changes the user of all threads, which interrupts them.
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return None,
                Err(e) => panic!("no frame: {e}"),
            }
        }
    }

    /// Waits for the answer of an id; other frames are kept for [`Client::frame`].
    pub fn answer(&mut self, id: i64) -> Result<Value, RpcError> {
        let is_it =
            |frame: &Value| frame.get("id").and_then(Value::as_i64) == Some(id) && frame.get("method").is_none();
        let frame = match self.waiting.iter().position(is_it).and_then(|at| self.waiting.remove(at)) {
            Some(frame) => frame,
            None => loop {
                let frame = self.read_frame().unwrap_or_else(|| panic!("connection ended before the answer of {id}"));
                if is_it(&frame) {
                    break frame;
                }
                self.waiting.push_back(frame);
            },
        };
        match (frame.get("result"), frame.get("error")) {
            (Some(result), None) => Ok(result.clone()),
            (None, Some(error)) => Err(RpcError {
                code: error["code"].as_i64().expect("a code"),
                message: error["message"].as_str().expect("a message").to_owned(),
                data: error.get("data").cloned().unwrap_or(Value::Null),
            }),
            _ => panic!("neither result nor error, or both: {frame}"),
        }
    }

    /// Sends a request and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// A call that must succeed.
    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|e| panic!("{method}: {e:?}"))
    }

    /// A call that must fail.
    pub fn err(&mut self, method: &str, params: Value) -> RpcError {
        match self.call(method, params) {
            Err(error) => error,
            Ok(result) => panic!("{method} must fail, got {result}"),
        }
    }

    /// Attaches as the local user in person.
    pub fn attach(&mut self, session: &str) -> Value {
        self.ok("session.attach", json!({"session": session, "client": {"kind": "test"}}))
    }

    /// Runs a source in value position.
    pub fn value(&mut self, src: &str) -> Value {
        self.ok("exec", json!({"src": src, "position": "value"}))
    }

    /// Runs a source in value position and returns its render.
    pub fn render(&mut self, src: &str) -> String {
        self.value(src)["render"].as_str().expect("a render").to_owned()
    }
}
