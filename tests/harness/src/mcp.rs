//! A facade process and its pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use serde_json::{Value, json};

use crate::place::Place;
use crate::until;

/// A running `shoal-mcp`.
#[derive(Debug)]
pub struct Mcp {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: i64,
}

impl Mcp {
    /// Starts a facade; `change` may set its flags and environment.
    pub fn start(place: &Place, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = place.shoal("shoal-mcp");
        change(&mut command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("shoal-mcp starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next_id: 1 }
    }

    /// Writes one line as it is.
    pub fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(line.as_bytes()).expect("the facade reads");
        stdin.write_all(b"\n").expect("the facade reads");
        stdin.flush().expect("the facade reads");
    }

    /// The next line, parsed: nothing but protocol may stand there.
    pub fn line(&mut self) -> Value {
        match self.lines.recv_timeout(crate::patience()) {
            Ok(line) => serde_json::from_str(&line).unwrap_or_else(|e| panic!("stdout holds {line:?}: {e}")),
            Err(RecvTimeoutError::Timeout) => panic!("the facade is silent"),
            Err(RecvTimeoutError::Disconnected) => panic!("the facade ended: {:?}", self.child.try_wait()),
        }
    }

    /// Sends a request and waits for its answer; notifications in between are dropped.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        loop {
            let line = self.line();
            if line["id"] == json!(id) && line.get("method").is_none() {
                return line;
            }
        }
    }

    /// The handshake of the 2025 era.
    pub fn initialize(&mut self) -> Value {
        let answer = self.call(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        );
        self.send_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer["result"].clone()
    }

    /// Calls a tool and returns the whole result.
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.call("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(answer.get("result").is_some(), "{name}: {answer}");
        answer["result"].clone()
    }

    /// Closes its stdin and waits for the end.
    pub fn close(mut self) -> ExitStatus {
        self.stdin = None;
        let mut status = None;
        until("the facade ends after its stdin", || {
            status = self.child.try_wait().expect("the child is ours");
            status.is_some()
        });
        status.expect("waited for")
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.stdin = None;
        if self.child.try_wait().is_ok_and(|s| s.is_none())
            && let Err(e) = self.child.kill().and_then(|()| self.child.wait().map(drop))
        {
            eprintln!("cannot end the facade: {e}");
        }
    }
}
