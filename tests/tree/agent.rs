//! An agent: a real facade over a real kernel, and what agents do with its tools.

use base64::Engine as _;
use serde_json::{Value, json};
use shoal_harness::{Kernel, Mcp, Place};

/// One agent in one session.
pub(crate) struct Agent(Mcp);

impl Agent {
    /// A facade of its own, attached to `session`.
    pub(crate) fn of(place: &Place, kernel: &Kernel, session: &str) -> Self {
        let mut mcp = Mcp::start(place, |command| {
            command.arg("--socket").arg(kernel.socket()).args(["--session", session]);
        });
        mcp.initialize();
        Self(mcp)
    }

    /// A tool's whole result.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.0.tool(tool, arguments)
    }

    /// The structured half of a tool's result, which must not be an error.
    pub(crate) fn tool(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], json!(false), "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// The structured half of an error.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], json!(true), "{tool}: {result}");
        result["structuredContent"].clone()
    }

    /// Runs a source to its end.
    pub(crate) fn exec(&mut self, src: &str) -> Value {
        self.tool("shoal_exec", json!({"src": src}))
    }

    /// Starts a source in the background; its task.
    pub(crate) fn start(&mut self, src: &str) -> String {
        let started = self.tool("shoal_exec", json!({"src": src, "background": true}));
        started["task"].as_str().unwrap_or_else(|| panic!("no task: {started}")).to_owned()
    }

    /// Bytes of a result by reference, in as many reads as it takes.
    pub(crate) fn bytes(&mut self, reference: &Value, path: &str, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut at = from;
        while at < to {
            let end = to.min(at + 4096);
            let part = self.tool("shoal_get", json!({"ref": reference, "path": path, "slice": [at, end]}));
            let coded = part["value"]["v"].as_str().unwrap_or_else(|| panic!("no bytes: {part}"));
            bytes.extend(base64::engine::general_purpose::STANDARD.decode(coded).expect("base64"));
            at = end;
        }
        bytes
    }

    /// A resource's JSON.
    pub(crate) fn resource(&mut self, uri: &str) -> Value {
        let answer = self.0.call("resources/read", json!({"uri": uri}));
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{uri}: {answer}"));
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{uri}: {e}: {text}"))
    }

    /// Opens a terminal; its id.
    pub(crate) fn open(&mut self, cmd: &str, args: &[&str]) -> String {
        let wanted = json!({"cmd": cmd, "args": args, "cols": 80, "rows": 24});
        let opened = self.tool("shoal_pty_open", wanted);
        opened["pty_id"].as_str().expect("an id").to_owned()
    }

    /// Types; all of it must be taken.
    pub(crate) fn send(&mut self, pty: &str, input: Value) {
        let sent = self.tool("shoal_pty_send", json!({"pty_id": pty, "input": input}));
        assert_eq!(sent["complete"], json!(true), "{sent}");
    }

    /// The screen once `text` is on it.
    pub(crate) fn see(&mut self, pty: &str, text: &str) -> Value {
        let screen = self.read(pty, json!({"text": text}));
        assert_eq!(screen["matched"], json!("text"), "{text:?} never came: {screen:#}");
        screen
    }

    /// The screen after a wait of at most 15 s.
    pub(crate) fn read(&mut self, pty: &str, mut wait: Value) -> Value {
        // Below the harness's own patience, so that a wait in vain shows the screen.
        wait["timeout_ms"] = json!(15_000);
        self.tool("shoal_pty_read", json!({"pty_id": pty, "wait": wait}))
    }

    /// Waits for the program's end; its status.
    pub(crate) fn ended(&mut self, pty: &str) -> Value {
        let screen = self.read(pty, json!({"exit": true}));
        assert_eq!(screen["alive"], json!(false), "{screen:#}");
        screen["exit"].clone()
    }
}
