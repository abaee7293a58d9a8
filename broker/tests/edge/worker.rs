//! A worker whose sources are scripts: the first word says what happens.
//!
//! `value TEXT` ends with that text; `raise`; `hang` runs until it is cancelled; `wait` runs until the test lets it go;
//! `unclaimed` is derived for ever; `deaf N` is heard by the Nth worker of the session and those after it;
//! `cd DIR`; `ask METHOD PARAMS` ends with the JSON of what the broker answers; `opaque` has an effect nobody can tell; anything that begins with `!` does not parse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use shoal_chan::{Chan, ChanError};
use shoal_proto::broker_worker::{
    Answer, Ending, Finished, Method, OpenRun, Prepare, Prepared, Purpose, Setup, Statement, ToBroker, ToWorker,
    UpCall, UpMethod, WorkerHello,
};
use shoal_proto::{Bytes, List, Text};

use crate::crash::{Crash, Point};
use crate::kernel::hello;

type Edge = Chan<ToBroker, ToWorker>;

#[derive(Default)]
struct State {
    /// Which broker it belongs to: what one that is gone said last is not done any more.
    epoch: u64,
    cwd: String,
    env: Vec<Vec<u8>>,
    next: u64,
    prepared: BTreeMap<u64, String>,
    running: BTreeMap<u64, String>,
    finished: BTreeMap<u64, Finished>,
    /// Workers of the session that died.
    deaths: u32,
    frozen: bool,
    over: bool,
}

/// What a worker keeps over a change of brokers.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    state: Arc<Mutex<State>>,
    born_in: String,
    crash: Crash,
}

impl Memory {
    /// A worker that starts in `cwd`.
    pub(crate) fn new(cwd: &str, crash: Crash) -> Self {
        let state = State { cwd: cwd.to_owned(), next: 1, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), born_in: cwd.to_owned(), crash }
    }

    /// It gets a fresh edge: the epoch of who serves it.
    pub(crate) fn renew(&self) -> u64 {
        let mut state = self.state();
        state.epoch += 1;
        state.epoch
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic in a fake")
    }

    /// Whether the session was made with this directory.
    pub(crate) fn starts_in(&self, dir: &str) -> bool {
        self.born_in == dir
    }

    /// The worker is gone.
    pub(crate) fn end(&self) {
        self.state().over = true;
    }

    /// It is stopped or goes on.
    pub(crate) fn freeze(&self, frozen: bool) {
        self.state().frozen = frozen;
    }

    /// Whether it is stopped.
    pub(crate) fn is_frozen(&self) -> bool {
        self.state().frozen
    }

    /// Whether it is.
    pub(crate) fn is_over(&self) -> bool {
        self.state().over
    }
}

/// Plays the worker until its end closes or it is gone.
pub(crate) fn serve(edge: Edge, memory: &Memory, epoch: u64) {
    let path = |source: &str| source.split_whitespace().nth(1).map(str::to_owned);
    let mut end = End { edge, memory: memory.clone(), epoch };
    loop {
        if memory.is_over() {
            return;
        }
        if memory.is_frozen() {
            std::thread::park_timeout(Duration::from_millis(20));
            continue;
        }
        let message = match end.edge.recv_deadline(Duration::from_millis(20)) {
            Ok(received) => received.msg,
            Err(ChanError::TimedOut) => {
                end.release(path);
                continue;
            }
            Err(_) => return,
        };
        end.on_message(message);
    }
}

/// What a worker that serves one broker has: its end, and the memory it shares with those before and after it.
struct End {
    edge: Edge,
    memory: Memory,
    epoch: u64,
}

impl End {
    /// Ends the runs whose file to wait for is there.
    fn release(&mut self, path: impl Fn(&str) -> Option<String>) {
        let due: Vec<u64> = {
            let state = self.memory.state();
            let ready = |source: &String| {
                source.starts_with("wait") && path(source).is_some_and(|p| std::fs::exists(p).unwrap_or(false))
            };
            state.running.iter().filter(|(_, source)| ready(source)).map(|(run, _)| *run).collect()
        };
        for run in due {
            self.finish(run, Ending::Value, "waited");
        }
    }

    fn send(&mut self, message: ToBroker) {
        // A broker that was killed does not hear it; the next one asks again.
        self.edge.send(&message, &[]).ok();
    }

    fn on_message(&mut self, message: ToWorker) {
        match message {
            ToWorker::Setup(setup) => self.greet(&setup),
            ToWorker::Prepare(prepare) => {
                self.memory.crash.pass(Point::ClaimAsked);
                if prepare.src.as_str() == "unclaimed" || self.is_deaf_to(prepare.src.as_str()) {
                    return;
                }
                let claim = claim(&prepare);
                if prepare.purpose != Purpose::Plan {
                    self.memory.state().prepared.insert(prepare.run, prepare.src.to_string());
                }
                let claim = Bytes::new(claim.to_string()).expect("fits");
                self.send(ToBroker::Prepared(Prepared { run: prepare.run, claim, parsed: true }));
                self.memory.crash.pass(Point::ClaimTold);
            }
            ToWorker::Run(run) => {
                self.memory.crash.pass(Point::RunAsked);
                let mut state = self.memory.state();
                let source = state.prepared.remove(&run.run).expect("prepared before it runs");
                if state.epoch != self.epoch {
                    // Said by a broker that is gone; the one there now was told that nothing runs.
                    return;
                }
                state.running.insert(run.run, source);
                drop(state);
                self.evaluate(run.run);
            }
            ToWorker::Cancel(cancel) => {
                let ending = if cancel.deadline { Ending::Deadline } else { Ending::Cancelled };
                if self.memory.state().running.contains_key(&cancel.run) {
                    self.finish(cancel.run, ending, "cancelled");
                }
            }
            ToWorker::Discard(run) => {
                self.memory.state().prepared.remove(&run.run);
            }
            ToWorker::Ack(run) => {
                self.memory.crash.pass(Point::EndRecorded);
                self.memory.state().finished.remove(&run.run);
            }
            ToWorker::Call(call) => {
                let params: Value = serde_json::from_slice(call.params.as_slice()).expect("JSON");
                let body = match call.method {
                    Method::Snapshot => {
                        let mut body = params;
                        body["cwd"] = json!({"display": self.memory.state().cwd});
                        body
                    }
                    // A stored value comes back as it is.
                    Method::ValueGet if !params["stored"].is_null() => {
                        json!({"ref": params["ref"], "value": params["stored"]})
                    }
                    _ => json!({"asked": params}),
                };
                let body = Bytes::new(body.to_string()).expect("fits");
                let message = Text::new("").expect("fits");
                self.send(ToBroker::Answer(Answer { call: call.call, code: 0, message, body }));
            }
            // A call has the number of its run.
            ToWorker::Told(answer) => {
                let text = match answer.code {
                    0 => String::from_utf8(answer.body.into_vec()).expect("text"),
                    code => json!({"code": code, "message": answer.message.as_str()}).to_string(),
                };
                self.finish(answer.call, Ending::Value, &text);
            }
            ToWorker::Freeze(_) | ToWorker::Thaw(_) => {}
        }
    }

    fn greet(&mut self, setup: &Setup) {
        let mut state = self.memory.state();
        state.deaths = setup.hello.generation;
        if !setup.adopted {
            state.next = setup.next_out;
            state.cwd = String::from_utf8_lossy(setup.cwd.as_slice()).into_owned();
            state.env = setup.env.as_slice().iter().map(|entry| entry.as_slice().to_vec()).collect();
        }
        let open = |run: &u64, finished, prepared| OpenRun {
            run: *run,
            finished,
            prepared,
            suspended: false,
            deadline_ms: None,
        };
        let mut runs: Vec<OpenRun> = state.running.keys().map(|run| open(run, false, false)).collect();
        runs.extend(state.finished.keys().map(|run| open(run, true, false)));
        if self.memory.starts_in("/thief") {
            // It claims whatever anybody may be running.
            runs.extend((1..=64).map(|run| open(&run, false, false)));
        }
        let env = state.env.iter().map(|entry| Bytes::new(entry.clone()).expect("fits")).collect::<Vec<_>>();
        let mut again: Vec<Finished> = state.finished.values().cloned().collect();
        again.sort_by_key(|finished| finished.n);
        let hello = WorkerHello {
            hello: hello(),
            open: List::new(runs).expect("few"),
            next_out: again.first().map_or(state.next, |first| first.n),
            cwd: Bytes::new(state.cwd.as_bytes()).expect("fits"),
            env: List::new(env).expect("few"),
        };
        let running: Vec<u64> = state.running.keys().copied().collect();
        drop(state);
        self.send(ToBroker::Hello(hello));
        again.into_iter().for_each(|finished| self.send(ToBroker::Finished(finished)));
        running.into_iter().for_each(|run| self.evaluate(run));
    }

    /// Whether this worker never answers what it is asked of a source.
    fn is_deaf_to(&self, source: &str) -> bool {
        let heard_by = source.strip_prefix("deaf ").and_then(|n| n.parse::<u32>().ok());
        heard_by.is_some_and(|n| self.memory.state().deaths + 1 < n)
    }

    /// What a running source does at once.
    fn evaluate(&mut self, run: u64) {
        let Some(source) = self.memory.state().running.get(&run).cloned() else { return };
        match source.split_whitespace().next().unwrap_or_default() {
            "hang" | "wait" => {}
            "thrice" => {
                let word = source.trim_start_matches("thrice ");
                for _ in 0..3 {
                    let src = Text::new(word).expect("fits");
                    self.send(ToBroker::Statement(Statement { run, src, ok: true, status: None, dur_ns: 1 }));
                }
                self.finish(run, Ending::Value, word);
            }
            "raise" => self.finish(run, Ending::Raised, "no"),
            "ask" => {
                let mut words = source.splitn(3, ' ').skip(1);
                let (method, params) = (words.next().expect("a method"), words.next().expect("params"));
                let params = format!(r#"{{"method":"{method}","params":{params}}}"#);
                let params = Bytes::new(params).expect("fits");
                self.send(ToBroker::UpCall(UpCall { call: run, run, method: UpMethod::Resource, params }));
            }
            "store" => {
                let (length, letter) = source.trim_start_matches("store ").split_once(' ').expect("two words");
                let bytes = letter.repeat(length.parse().expect("a length"));
                let memfd = shoal_sys::memfd::sealed("blob", bytes.as_bytes()).expect("made");
                let params = Bytes::new("{}").expect("fits");
                let call = ToBroker::UpCall(UpCall { call: run, run, method: UpMethod::BlobPut, params });
                self.edge.send(&call, &[std::os::fd::AsFd::as_fd(&memfd)]).ok();
            }
            _ => self.finish(run, Ending::Value, source.split_once(' ').map_or("", |(_, rest)| rest)),
        }
    }

    fn finish(&mut self, run: u64, ending: Ending, word: &str) {
        let mut state = self.memory.state();
        if state.epoch != self.epoch {
            // It runs on, and ends for the broker that is there now.
            return;
        }
        let source = state.running.remove(&run).unwrap_or_default();
        if let Some(dir) = source.strip_prefix("cd ") {
            state.cwd = dir.to_owned();
        }
        let n = state.next;
        state.next += 1;
        let finished = finished(run, n, ending, word, &state.cwd);
        state.finished.insert(run, finished.clone());
        drop(state);
        self.send(ToBroker::Finished(finished));
        self.memory.crash.pass(Point::EndTold);
    }
}

fn claim(prepare: &Prepare) -> Value {
    let source = prepare.src.as_str();
    if source.starts_with('!') {
        return json!({"parse_error": {"message": "unexpected `!`", "span": {"start": 0, "end": 1}, "hint": null, "incomplete": false}});
    }
    let effects = if source.starts_with("opaque") { json!([{"kind": "opaque"}]) } else { json!([]) };
    json!({"effects": effects, "reversibility": "reversible", "head": "", "names": [], "programs": [], "scripts": [],
        "ast": {"stmts": []}})
}

fn finished(run: u64, n: u64, ending: Ending, word: &str, cwd: &str) -> Finished {
    let ok = ending == Ending::Value;
    let value = match ok {
        true => json!({"$": "str", "v": word}),
        false => json!({"$": "error", "code": "custom", "msg": word}),
    };
    let error = json!({"code": "custom", "message": word, "span": null, "hint": null, "status": null, "stderr": null});
    let mut detail = json!({"status": if ok { Some(0) } else { None }, "ok": ok, "summary": {"type": "str"}});
    if !ok {
        detail["error"] = error;
    }
    Finished {
        run,
        n,
        ending,
        value: Bytes::new(value.to_string()).expect("fits"),
        render: Text::new(word).expect("fits"),
        detail: Bytes::new(detail.to_string()).expect("fits"),
        elapsed_ms: 1,
        cwd: Bytes::new(cwd.as_bytes()).expect("fits"),
        env_changed: false,
        env: List::default(),
        session_cwd: Bytes::new(cwd.as_bytes()).expect("fits"),
        stdout: false,
        stderr: false,
        full: false,
    }
}
