//! One execution: parse and claim, wait for the order, evaluate on a snapshot, commit, number, tell.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use shoal_chan::ChanError;
use shoal_eval::host::{Note, Run, Sink};
use shoal_eval::place::Env;
use shoal_eval::request::{Changes, Finish, ModuleCache, Position, State};
use shoal_proto::broker_worker::{self as edge, Ending, Finished, Prepare, Prepared, Purpose, ToBroker};
use shoal_proto::launcher_worker::RunId;
use shoal_proto::{Bytes, List, Text, Violation};
use shoal_syntax::{Diag, Parsed};
use shoal_sys::heap;
use shoal_value::{ErrorValue, Value, code};

use crate::broker_edge::Unrecorded;
use crate::claim;
use crate::clock;
use crate::finish::{self, Ended};
use crate::ports;
use crate::runs::RunState;
use crate::session::{Order, Session, env_list};
use crate::transcript::Entry;

/// After an execution that took this long, or whose result takes so many bytes, memory that is no longer used is given back:
/// the look at it takes far less.
const LONG: Duration = Duration::from_millis(50);
const BULKY: usize = 1024 * 1024;
/// Bytes of a session's environment: more than the system gives to any program, and little enough for a message.
const MAX_ENV: usize = 8 * 1024 * 1024;

/// Serves one execution from its source to its end; the claim is for the broker at the end it came over.
pub(crate) fn serve(
    session: &Arc<Session>,
    prepare: Prepare,
    epoch: u64,
    run: &Arc<RunState>,
    orders: &Receiver<Order>,
) {
    if let Err(error) = go(session, prepare, epoch, run, orders) {
        crate::note_edge(&error.into());
    }
}

/// Tells that there was no thread for an execution: the session has as many processes as it may.
pub(crate) fn refuse(session: &Session, run: RunId, epoch: u64, error: &std::io::Error) -> Result<(), ChanError> {
    let claim = Bytes::new(json!({"no_thread": error.to_string()}).to_string());
    let claim = claim.map_err(|e| Violation::Encode(e.to_string()))?;
    session.broker.answer(epoch, &ToBroker::Prepared(Prepared { run, claim, parsed: false }))
}

fn go(
    session: &Arc<Session>,
    prepare: Prepare,
    epoch: u64,
    run: &Arc<RunState>,
    orders: &Receiver<Order>,
) -> Result<(), Violation> {
    let snapshot = session.snapshot();
    let looked = unbroken(|| claimed(session, &prepare, run, &snapshot));
    let (parsed, claim) = looked.unwrap_or_else(|_broken| (None, refusal("broke_down")));
    let prepared = ToBroker::Prepared(Prepared { run: prepare.run, claim, parsed: parsed.is_some() });
    // A claim alone is forgotten before it is told: the same number may be prepared again at once.
    let kept = parsed.filter(|_| prepare.purpose != Purpose::Plan);
    if kept.is_none() {
        session.forget(prepare.run);
    }
    let told = session.broker.answer(epoch, &prepared);
    let Some(parsed) = kept else { return Ok(()) };
    if told.is_err() || orders.recv() != Ok(Order::Run) {
        session.forget(prepare.run);
        return Ok(());
    }
    let started = clock::now();
    let finish = evaluate(session, &prepare, &parsed, run, snapshot);
    // What the programs print from here on belongs to nobody who waits.
    run.log.end();
    let told = tell_or_say_why_not(Over { session, prepare: &prepare, run, started }, finish);
    run.set_over();
    session.forget_orders(prepare.run);
    let left_much = told.as_ref().is_ok_and(|weight| *weight >= BULKY) || session.results.take_read_back();
    if left_much || clock::now().duration_since(started) >= LONG {
        heap::give_back();
    }
    told.map(drop)
}

/// The parsed source, if it can run, and its claim. What does not fit into a message is told as such: somebody waits.
fn claimed(
    session: &Session,
    prepare: &Prepare,
    run: &Arc<RunState>,
    snapshot: &State,
) -> (Option<Parsed>, edge::Json) {
    let parsed = shoal_syntax::parse(prepare.src.as_str(), &snapshot.names());
    if let Some(diag) = parsed.diags.first() {
        let claim = Bytes::new(parse_error(diag).to_string());
        return (None, claim.unwrap_or_else(|_| refusal("too_large")));
    }
    let claim = claim::of(session, &parsed.program, snapshot, run, prepare.purpose);
    match Bytes::new(claim.to_string()) {
        Ok(claim) => (Some(parsed), claim),
        Err(_) => (None, refusal("too_large")),
    }
}

/// A claim that says why there is none.
fn refusal(why: &str) -> edge::Json {
    // A few bytes always fit.
    Bytes::new(json!({ why: true }).to_string()).unwrap_or_default()
}

fn evaluate(
    session: &Arc<Session>,
    prepare: &Prepare,
    parsed: &Parsed,
    run: &Arc<RunState>,
    snapshot: State,
) -> Finish {
    let meter: Arc<RunState> = Arc::clone(run);
    let request = Run { id: prepare.run, cancel: run.cancel.clone(), meter, sink: Arc::new(Unheard) };
    let position = Position { statement: prepare.position == edge::Position::Stmt, session: true };
    let modules = snapshot.modules.clone();
    let evaluate = || {
        ports::inside(prepare.run, || {
            session.evaluators.run(&parsed.program, prepare.src.as_str(), &snapshot, position, request)
        })
    };
    unbroken(evaluate).unwrap_or_else(|broken| fruitless(broken, modules))
}

/// Does a part of an execution; a panic, which is a mistake of ours, becomes an error: somebody waits.
fn unbroken<T>(work: impl FnOnce() -> T) -> Result<T, ErrorValue> {
    // What unwinding leaves behind is dropped with the execution: it worked on a snapshot.
    catch_unwind(AssertUnwindSafe(work)).map_err(|_panic| {
        ErrorValue::new(code::CUSTOM, "the evaluator broke down; please report the source that did it")
    })
}

/// The end of an execution that failed and changes nothing.
fn fruitless(error: ErrorValue, modules: ModuleCache) -> Finish {
    let mut changes = Changes::default();
    changes.modules = modules;
    Finish { result: Err(error), exit: None, changes }
}

/// An execution whose end is to be told.
#[derive(Clone, Copy)]
struct Over<'a> {
    session: &'a Session,
    prepare: &'a Prepare,
    run: &'a RunState,
    started: Instant,
}

/// Tells the end of an execution. One that cannot be told ends with an error that says so and changes nothing, because
/// somebody waits for it.
fn tell_or_say_why_not(over: Over<'_>, finish: Finish) -> Result<usize, Violation> {
    let modules = finish.changes.modules.clone();
    let why = match unbroken(|| tell(over, finish)) {
        Ok(Ok(weight)) => return Ok(weight),
        Ok(Err(violation)) => {
            let error = ErrorValue::too_large(format!("the end of this execution cannot be told: {violation}"));
            error.with_hint("nothing of it was kept; make its result, its error or its environment smaller")
        }
        Err(broken) => broken,
    };
    tell(over, fruitless(why, modules))
}

/// Commits, gives the result its number and tells it; all under one lock, so that numbers follow commits. The bytes that
/// the result takes, about.
fn tell(over: Over<'_>, finish: Finish) -> Result<usize, Violation> {
    let Over { session, prepare, run, started } = over;
    let ended = Ended::new(&finish, run.cancel.reason());
    let elapsed = clock::now().duration_since(started);
    let (stdout, stderr) = ended.outputs();
    // Of a raise only its standard error is stored.
    let wire = ended.wire.as_deref().filter(|_| ended.ending == Ending::Value);
    let entry = Entry::new(ended.value.clone(), ended.is_ok(), prepare.src.as_str(), wire);
    let changed = changed(&finish.changes);
    let cwd = finish.changes.cwd.as_ref().map(|(cwd, ..)| cwd.path().clone());

    let mut state = session.lock();
    let cwd = cwd.unwrap_or_else(|| state.place.cwd.path().clone());
    // Committed with what is told of it, or not at all.
    let mut after = state.clone();
    after.commit(finish.changes);
    let weight = entry.weight();
    let n = session.results.next();
    let value = ended.elided(n, prepare.elide);
    let full = ended.wire.as_ref().filter(|wire| **wire != value);
    let mut fds: Vec<OwnedFd> = Vec::new();
    let mut attach = |name: &str, bytes: Option<&[u8]>| {
        let made = bytes.and_then(|bytes| finish::attach(name, bytes).ok());
        let is_attached = made.is_some();
        fds.extend(made);
        is_attached
    };
    let (has_stdout, has_stderr) = (attach("stdout", stdout.as_deref()), attach("stderr", stderr.as_deref()));
    let has_full = attach("value", full.map(String::as_bytes));
    let env_changed = changed.contains(&"env");
    let finished = Finished {
        run: prepare.run,
        n,
        ending: ended.ending,
        value: json_bytes(value)?,
        render: Text::cut(&ended.render(n, prepare.tty, after.place.cwd.path().clone())),
        detail: json_bytes(ended.detail(n, run.log.counts(), &changed).to_string())?,
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        cwd: path_bytes(cwd.as_bytes())?,
        env_changed,
        env: if env_changed { changed_env(&state.place.env, &after.place.env)? } else { Default::default() },
        session_cwd: path_bytes(after.place.cwd.path().as_bytes())?,
        stdout: has_stdout,
        stderr: has_stderr,
        full: has_full,
    };
    let wanted = [stdout.is_some(), stderr.is_some(), full.is_some()];
    let whole = wanted.into_iter().filter(|wanted| *wanted).count() == fds.len();
    *state = after;
    session.results.push(entry);
    session.broker.finish(Unrecorded { finished, fds, whole });
    Ok(weight)
}

/// The environment after an execution that changed it; refused when it grew beyond what is kept.
fn changed_env(before: &Env, after: &Env) -> Result<List<Bytes<131_072>, 65_536>, Violation> {
    let size = |env: &Env| env.iter().map(|(name, value)| name.len() + value.len() + 2).sum::<usize>();
    let (was, is) = (size(before), size(after));
    if is > MAX_ENV && is > was {
        return Err(Violation::Encode(format!("an environment of {is} bytes, and {MAX_ENV} are kept")));
    }
    env_list(after)
}

fn changed(changes: &Changes) -> Vec<&'static str> {
    let mut changed = Vec::new();
    changed.extend(changes.cwd.is_some().then_some("cwd"));
    changed.extend((!changes.env.is_empty()).then_some("env"));
    changed
}

fn json_bytes<const N: usize>(text: String) -> Result<Bytes<N>, Violation> {
    Bytes::new(text).map_err(|e| Violation::Encode(e.to_string()))
}

fn path_bytes(path: &[u8]) -> Result<Bytes<4096>, Violation> {
    Bytes::new(path).map_err(|e| Violation::Encode(e.to_string()))
}

/// A source that does not parse, as a claim says it.
pub(crate) fn parse_error(diag: &Diag) -> Json {
    json!({"parse_error": {
        "message": diag.message(), "span": {"start": diag.at.start, "end": diag.at.end},
        "hint": diag.hint, "incomplete": diag.partial,
    }})
}

/// Values of statements before the last have no place in an answer.
struct Unheard;

impl Sink for Unheard {
    fn value(&self, _value: &Value, _bare: bool) {}

    fn text(&self, _text: &str) {}

    fn note(&self, _note: Note) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evaluator_that_breaks_down_ends_its_execution_with_an_error() {
        let broken = unbroken(|| std::panic::resume_unwind(Box::new("on purpose")));
        let finish = fruitless(broken.map(|(): ()| ()).expect_err("an error"), ModuleCache::default());
        let error = finish.result.expect_err("an error");
        assert!(error.msg.contains("broke down") && finish.changes.env.is_empty() && finish.changes.cwd.is_none());
    }
}
