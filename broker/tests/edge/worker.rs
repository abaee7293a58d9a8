//! A worker whose sources are scripts: the first word says what happens.
//!
//! `value TEXT` ends with that text; `raise`; `hang` runs until it is cancelled; `wait` runs until the test lets it go;
//! `cd DIR`; `opaque` has an effect nobody can tell; anything that begins with `!` does not parse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use shoal_chan::{Chan, ChanError};
use shoal_proto::broker_worker::{
    Answer, Ending, Finished, Method, OpenRun, Prepare, Prepared, ToBroker, ToWorker, WorkerHello,
};
use shoal_proto::{Bytes, List, Text};

use crate::kernel::hello;

type Edge = Chan<ToBroker, ToWorker>;

#[derive(Default)]
struct State {
    cwd: String,
    env: Vec<Vec<u8>>,
    next: u64,
    prepared: BTreeMap<u64, String>,
    running: BTreeMap<u64, String>,
    finished: BTreeMap<u64, Finished>,
    over: bool,
}

/// What a worker keeps over a change of brokers.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<State>>);

impl Memory {
    /// A worker that starts in `cwd`.
    pub(crate) fn new(cwd: &str) -> Self {
        let state = State { cwd: cwd.to_owned(), next: 1, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic in a fake")
    }

    /// The worker is gone.
    pub(crate) fn end(&self) {
        self.state().over = true;
    }

    /// Whether it is.
    pub(crate) fn is_over(&self) -> bool {
        self.state().over
    }
}

/// Plays the worker until its end closes or it is gone.
pub(crate) fn serve(mut edge: Edge, memory: &Memory) {
    let path = |source: &str| source.split_whitespace().nth(1).map(str::to_owned);
    loop {
        if memory.is_over() {
            return;
        }
        let message = match edge.recv_deadline(Duration::from_millis(20)) {
            Ok(received) => received.msg,
            Err(ChanError::TimedOut) => {
                release(&mut edge, memory, path);
                continue;
            }
            Err(_) => return,
        };
        on_message(&mut edge, memory, message);
    }
}

/// Ends the runs whose file to wait for is there.
fn release(edge: &mut Edge, memory: &Memory, path: impl Fn(&str) -> Option<String>) {
    let due: Vec<u64> = {
        let state = memory.state();
        let ready = |source: &String| {
            source.starts_with("wait") && path(source).is_some_and(|p| std::fs::exists(p).unwrap_or(false))
        };
        state.running.iter().filter(|(_, source)| ready(source)).map(|(run, _)| *run).collect()
    };
    for run in due {
        finish(edge, memory, run, Ending::Value, "waited");
    }
}

fn send(edge: &mut Edge, message: ToBroker) {
    // A broker that was killed does not hear it; the next one asks again.
    edge.send(&message, &[]).ok();
}

fn on_message(edge: &mut Edge, memory: &Memory, message: ToWorker) {
    match message {
        ToWorker::Setup(setup) => {
            let mut state = memory.state();
            if !setup.adopted {
                state.next = setup.next_out;
                state.cwd = String::from_utf8_lossy(setup.cwd.as_slice()).into_owned();
                state.env = setup.env.as_slice().iter().map(|entry| entry.as_slice().to_vec()).collect();
            }
            let open = |run: &u64, finished, prepared| OpenRun { run: *run, finished, prepared };
            let mut runs: Vec<OpenRun> = state.running.keys().map(|run| open(run, false, false)).collect();
            runs.extend(state.finished.keys().map(|run| open(run, true, false)));
            let env = state.env.iter().map(|entry| Bytes::new(entry.clone()).expect("fits")).collect::<Vec<_>>();
            let hello = WorkerHello {
                hello: hello(),
                open: List::new(runs).expect("few"),
                next_out: state.next,
                cwd: Bytes::new(state.cwd.as_bytes()).expect("fits"),
                env: List::new(env).expect("few"),
            };
            let again: Vec<Finished> = state.finished.values().cloned().collect();
            drop(state);
            send(edge, ToBroker::Hello(hello));
            again.into_iter().for_each(|finished| send(edge, ToBroker::Finished(finished)));
        }
        ToWorker::Prepare(prepare) => {
            let claim = claim(&prepare);
            if !prepare.plan {
                memory.state().prepared.insert(prepare.run, prepare.src.to_string());
            }
            let claim = Bytes::new(claim.to_string()).expect("fits");
            send(edge, ToBroker::Prepared(Prepared { run: prepare.run, claim, parsed: true }));
        }
        ToWorker::Run(run) => {
            let source = memory.state().prepared.remove(&run.run).expect("prepared before it runs");
            memory.state().running.insert(run.run, source.clone());
            match source.split_whitespace().next().unwrap_or_default() {
                "hang" | "wait" => {}
                "raise" => finish(edge, memory, run.run, Ending::Raised, "no"),
                _ => finish(edge, memory, run.run, Ending::Value, source.split_once(' ').map_or("", |(_, rest)| rest)),
            }
        }
        ToWorker::Cancel(cancel) => {
            let ending = if cancel.deadline { Ending::Deadline } else { Ending::Cancelled };
            if memory.state().running.contains_key(&cancel.run) {
                finish(edge, memory, cancel.run, ending, "cancelled");
            }
        }
        ToWorker::Discard(run) => {
            memory.state().prepared.remove(&run.run);
        }
        ToWorker::Ack(run) => {
            memory.state().finished.remove(&run.run);
        }
        ToWorker::Call(call) => {
            let params: Value = serde_json::from_slice(call.params.as_slice()).expect("JSON");
            let body = match call.method {
                Method::Snapshot => {
                    let mut body = params;
                    body["cwd"] = json!({"display": memory.state().cwd});
                    body
                }
                _ => json!({"asked": params}),
            };
            let body = Bytes::new(body.to_string()).expect("fits");
            let message = Text::new("").expect("fits");
            send(edge, ToBroker::Answer(Answer { call: call.call, code: 0, message, body }));
        }
        ToWorker::Told(_) | ToWorker::Freeze(_) | ToWorker::Thaw(_) => {}
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

fn finish(edge: &mut Edge, memory: &Memory, run: u64, ending: Ending, word: &str) {
    let mut state = memory.state();
    let source = state.running.remove(&run).unwrap_or_default();
    if let Some(dir) = source.strip_prefix("cd ") {
        state.cwd = dir.to_owned();
    }
    let n = state.next;
    state.next += 1;
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
    let finished = Finished {
        run,
        n,
        ending,
        value: Bytes::new(value.to_string()).expect("fits"),
        render: Text::new(word).expect("fits"),
        detail: Bytes::new(detail.to_string()).expect("fits"),
        elapsed_ms: 1,
        cwd: Bytes::new(state.cwd.as_bytes()).expect("fits"),
        env_changed: false,
        env: List::default(),
        session_cwd: Bytes::new(state.cwd.as_bytes()).expect("fits"),
        stdout: false,
        stderr: false,
        full: false,
    };
    state.finished.insert(run, finished.clone());
    drop(state);
    send(edge, ToBroker::Finished(finished));
}
