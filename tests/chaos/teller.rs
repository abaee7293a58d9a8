//! A client that asks until it is told: after a lost connection it asks again under the same key.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use shoal_harness::{Client, patience};

use crate::ledger::{Ledger, Told};

/// Works through numbered requests of a ledger.
pub(crate) struct Teller<'a> {
    socket: &'a Path,
    ledger: &'a Ledger,
    client: Option<Client>,
    next: usize,
}

/// An answer, or the end of the connection before it.
enum Answer {
    Result(Value),
    Error(i64, Value),
    Gone,
}

impl<'a> Teller<'a> {
    pub(crate) fn new(socket: &'a Path, ledger: &'a Ledger) -> Teller<'a> {
        Teller { socket, ledger, client: None, next: 0 }
    }

    pub(crate) fn work_until(mut self, closing: &AtomicBool) {
        while !closing.load(Ordering::Acquire) {
            self.tell();
        }
    }

    /// Asks for one more line and stays with it until it is done or known to be lost.
    pub(crate) fn tell(&mut self) {
        let request = self.next;
        self.next += 1;
        let (src, key) = (self.ledger.source(request), self.ledger.key(request));
        let end = Instant::now() + patience();
        let told = loop {
            assert!(Instant::now() < end, "{key}: no answer in {:?}", patience());
            match self.ask("exec", json!({"src": src, "key": key})) {
                Answer::Result(result) => break Told::Done(out_number(&result)),
                Answer::Error(-32050 | -32002, _) => break Told::Lost,
                Answer::Error(-32053, _) | Answer::Gone => self.client = None,
                Answer::Error(code, error) => panic!("{key}: {code} {error}"),
            }
        };
        self.ledger.write(request, told);
    }

    /// One request on an attached connection.
    fn ask(&mut self, method: &str, params: Value) -> Answer {
        if self.client.is_none() {
            let mut client = Client::connect(self.socket);
            let attach = json!({"session": self.ledger.session, "client": {"kind": "test"}});
            match exchange(&mut client, "session.attach", &attach) {
                Answer::Result(_attached) => self.client = Some(client),
                refused => return refused,
            }
        }
        let client = self.client.as_mut().expect("attached above");
        exchange(client, method, &params)
    }
}

fn exchange(client: &mut Client, method: &str, params: &Value) -> Answer {
    let mut line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    line.push('\n');
    if client.send_raw(line.as_bytes()).is_err() {
        return Answer::Gone;
    }
    match client.frame() {
        None => Answer::Gone,
        Some(frame) => match frame["error"]["code"].as_i64() {
            Some(code) => Answer::Error(code, frame["error"].clone()),
            None => Answer::Result(frame["result"].clone()),
        },
    }
}

/// `N` of a result's `out:N`; a result that was rebuilt from the journal names the stored value instead.
fn out_number(result: &Value) -> Option<u64> {
    let reference = result["ref"].as_str().unwrap_or_else(|| panic!("no ref: {result}"));
    let number = reference.strip_prefix("out:")?;
    Some(number.parse().expect("a number"))
}
