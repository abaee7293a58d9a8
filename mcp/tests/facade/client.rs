//! A client that writes and reads lines.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kernel::{Kernel, SOON};

pub(crate) struct Facade {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    held: VecDeque<Value>,
    next: u64,
    modern: Option<Value>,
}

/// `_meta` of a 2026 request whose client has these capabilities.
pub(crate) fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
    })
}

impl Facade {
    /// A facade in front of `kernel`, with these variables.
    pub(crate) fn start(kernel: &Kernel, vars: &[(&str, &str)]) -> Facade {
        Facade::at(&kernel.socket(), kernel.dir.path(), vars)
    }

    pub(crate) fn at(socket: &std::path::Path, home: &std::path::Path, vars: &[(&str, &str)]) -> Facade {
        let mut child = Command::new(env!("CARGO_BIN_EXE_shoal-mcp"))
            .arg("--socket")
            .arg(socket)
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin")
            .env("SHOAL_NO_AUTOSTART", "1")
            .env("SECRET_OF_OURS", "x")
            .envs(vars.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                let frame = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON on stdout: {line}"));
                if tell.send(frame).is_err() {
                    return;
                }
            }
        });
        Facade { child, stdin, lines, held: VecDeque::new(), next: 1, modern: None }
    }

    /// A facade that has been greeted in the 2025 era.
    pub(crate) fn legacy(kernel: &Kernel, version: &str) -> Facade {
        let mut facade = Facade::start(kernel, &[]);
        facade.initialize(version);
        facade
    }

    /// A facade that is talked to in the 2026 era.
    pub(crate) fn modern(kernel: &Kernel) -> Facade {
        let mut facade = Facade::start(kernel, &[]);
        facade.speak_modern(json!({}));
        facade
    }

    pub(crate) fn speak_modern(&mut self, capabilities: Value) {
        self.modern = Some(meta(capabilities));
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let info = json!({ "name": "tester", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": info });
        self.result("initialize", params)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Writes a line that is no request, and expects the error of this code for it.
    pub(crate) fn refuses(&mut self, line: &[u8], code: i64) {
        self.write(line);
        self.write(b"\n");
        assert_eq!(self.answer(&Value::Null)["error"]["code"], code, "{}", String::from_utf8_lossy(line));
    }

    pub(crate) fn send(&mut self, frame: &Value) {
        self.write(format!("{frame}\n").as_bytes());
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if let Some(meta) = &self.modern {
            let extra = params["_meta"].take();
            params["_meta"] = meta.clone();
            for (name, value) in extra.as_object().into_iter().flatten() {
                params["_meta"][name] = value.clone();
            }
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The first frame, held or coming, that `wanted` takes.
    pub(crate) fn frame(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.held.iter().position(&wanted) {
            return self.held.remove(at).unwrap();
        }
        let until = Instant::now() + SOON;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(frame) if wanted(&frame) => return frame,
                Ok(frame) => self.held.push_back(frame),
                Err(RecvTimeoutError::Timeout) => panic!("{what} did not come; held: {:?}", self.held),
                Err(RecvTimeoutError::Disconnected) => panic!("{what} did not come before the end"),
            }
        }
    }

    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        self.frame(&format!("the answer to {id}"), |frame| frame.get("method").is_none() && frame["id"] == *id)
    }

    pub(crate) fn notification(&mut self, method: &str) -> Value {
        self.frame(method, |frame| frame["method"] == method)["params"].take()
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(&json!(id))
    }

    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    pub(crate) fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer.get("result").is_none(), "{answer}");
        answer["error"].take()
    }

    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Everything that came and was not asked for, after a round trip that comes behind it.
    pub(crate) fn rest(&mut self) -> Vec<Value> {
        let id = json!(format!("rest-{}", self.next));
        self.next += 1;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "_meta": meta(json!({})) } }),
        );
        self.answer(&id);
        self.held.drain(..).collect()
    }

    /// Closes stdin; the exit status, and how long it took.
    pub(crate) fn close(&mut self) -> (Option<i32>, Duration) {
        let began = Instant::now();
        drop(self.stdin.take());
        let status = self.child.wait().unwrap();
        (status.code(), began.elapsed())
    }

    /// Frames that are left after the end.
    pub(crate) fn remaining(&mut self) -> Vec<Value> {
        self.held.drain(..).chain(self.lines.iter()).collect()
    }

    /// Peak resident memory in KiB, where the system tells.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let mut text = String::new();
        std::fs::File::open(format!("/proc/{}/status", self.child.id())).ok()?.read_to_string(&mut text).ok()?;
        text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
    }
}

impl Drop for Facade {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // Ended already in most tests; in a failing one nothing is to stay behind.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
