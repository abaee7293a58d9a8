//! Methods of the public protocol that the worker answers.

mod streams;
mod value_get;

pub(crate) use streams::Fetched;

use std::sync::Arc;

use serde_json::{Value as Json, json};
use shoal_chan::ChanError;
use shoal_proto::broker_worker::{Answer, Call, Method, ToBroker};
use shoal_proto::{Bytes, Text};
use shoal_syntax::complete;
use shoal_syntax::tree_json::{Malformed, from_json, to_json};
use shoal_watch::Spec;
use shoal_wire::RpcError;
use shoal_wire::error::Reason;

use crate::claim;
use crate::output::{Query, Stream};
use crate::runs::RunState;
use crate::session::Session;
use crate::watches::{self, Starter};

/// Version of the syntax tree's vocabulary.
const AST_VERSION: u32 = 2;

/// Answers one call of the broker at this end.
pub(crate) fn answer(session: &Arc<Session>, call: Call, epoch: u64) {
    let number = call.call;
    let result = match serde_json::from_slice::<Json>(call.params.as_slice()) {
        Ok(params) => dispatch(session, call.method, &params),
        Err(error) => Err(RpcError::internal(format!("params: {error}"))),
    };
    let answer = match result {
        Ok(body) => encode(number, 0, "", Some(&body)),
        Err(error) => {
            let code = i32::try_from(error.code).unwrap_or(-32_603);
            encode(number, code, &error.message, error.data.as_ref())
        }
    };
    tell(session, epoch, answer);
}

/// A broker that is gone waits for no answer.
fn tell(session: &Session, epoch: u64, answer: Answer) {
    match session.broker.answer(epoch, &ToBroker::Answer(answer)) {
        Ok(()) | Err(ChanError::Closed) => {}
        Err(error) => crate::note_edge(&error),
    }
}

/// Answers a call for which there was no thread: the session has as many processes as it may.
pub(crate) fn answer_without_thread(session: &Session, call: u64, epoch: u64, error: &std::io::Error) {
    let error = RpcError::internal(format!("no thread in the session's worker: {error}"));
    tell(session, epoch, encode(call, -32_603, &error.message, error.data.as_ref()));
}

fn encode(call: u64, code: i32, message: &str, body: Option<&Json>) -> Answer {
    match Bytes::new(body.map(Json::to_string).unwrap_or_default()) {
        Ok(body) => Answer { call, code, message: Text::cut(message), body },
        Err(_) => {
            let message = Text::cut("the answer is larger than a frame");
            Answer { call, code: -32_603, message, body: Bytes::default() }
        }
    }
}

fn dispatch(session: &Arc<Session>, method: Method, params: &Json) -> Result<Json, RpcError> {
    match method {
        Method::ValueGet => value_get::answer(session, params),
        Method::Snapshot => Ok(snapshot(session, params)),
        Method::Env => Ok(env(session)),
        Method::Reef => Ok(json!({"active_scope": null, "bindings": []})),
        Method::Parse => parse(session, params),
        Method::Complete => Ok(completions(session, params)),
        Method::Explain => explain(session, params),
        Method::TaskOutput => task_output(session, params),
        Method::Event => event(session, params),
        Method::WatchStart => watch_start(session, params),
        Method::WatchStop => {
            let name = text(params, "name")?;
            Ok(json!({"name": name, "stopped": watches::stop(session, name, Starter::Client)?}))
        }
        Method::WatchList => Ok(json!({"watches": session.watches.records()})),
        Method::WatchGet => {
            let name = text(params, "name")?;
            let unknown = || RpcError::unknown_ref(&format!("watch:{name}"), "unknown", None);
            session.watches.record(name).ok_or_else(unknown)
        }
        Method::StreamPull => streams::pull(session, params),
        Method::StreamClose => streams::close(session, params),
    }
}

fn watch_start(session: &Arc<Session>, params: &Json) -> Result<Json, RpcError> {
    let (name, uri) = (text(params, "name")?.to_owned(), text(params, "uri")?.to_owned());
    let spec = Spec {
        name: name.clone(),
        uri: uri.clone(),
        on_event: params["on_event"].as_str().map(str::to_owned),
        lang: params["lang"].as_str().unwrap_or("shoal").to_owned(),
        persist: params["persist"].as_bool().unwrap_or(true),
    };
    let shape = watches::start(session, spec, Starter::Client)?;
    Ok(json!({"name": name, "uri": uri, "shape": shape.word()}))
}

/// The broker's facts completed by ours.
fn snapshot(session: &Session, facts: &Json) -> Json {
    let state = session.lock();
    let cwd = state.place.cwd.path().clone();
    let env_hash = env_hash(&state.place.env);
    drop(state);
    let exists = crate::files::OpenDir::open(cwd.as_bytes()).is_ok();
    let mut answer = json!({
        "session": facts["session"], "owner": facts["owner"], "state": facts["state"],
        "cwd": claim::wire_path(cwd.as_bytes()), "cwd_exists": exists, "env_hash": env_hash,
    });
    for member in ["last_ref", "execs_running", "idle_ttl_ms"] {
        answer[member] = facts[member].clone();
    }
    answer
}

/// BLAKE3 of the environment: each variable as `NAME=value` and a NUL, sorted by name.
pub(crate) fn env_hash(env: &shoal_eval::place::Env) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, value) in env.iter() {
        hasher.update(name.as_bytes()).update(b"=").update(value).update(b"\0");
    }
    hasher.finalize().to_hex().to_string()
}

/// Names, and the values whose names the policy lets be read.
fn env(session: &Session) -> Json {
    let granted: Vec<&str> = match &session.facts["policy"]["env_read"] {
        Json::Array(entries) => entries.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let all = granted.contains(&"*");
    let state = session.lock();
    let names: Vec<&str> = state.place.env.keys().map(|name| &**name).collect();
    let readable = state.place.env.iter().filter(|(name, _)| all || granted.contains(&&***name));
    let values: serde_json::Map<String, Json> = readable
        .filter_map(|(name, value)| Some((name.to_string(), std::str::from_utf8(value).ok()?.into())))
        .collect();
    let mut answer = json!({"granted": all, "names": names});
    if !values.is_empty() {
        answer["env"] = values.into();
    }
    answer
}

/// News of a channel that watches listen to; or an event that a client published, for the channels of the language: a
/// tagged value, or plain JSON.
fn event(session: &Session, params: &Json) -> Result<Json, RpcError> {
    if let Some(channel) = params["changed"].as_str() {
        session.watches.changed(channel);
        return Ok(json!({}));
    }
    let payload = params["payload"].to_string();
    let payload = match shoal_value::wire::from_wire(&payload) {
        Ok(value) => value,
        Err(_) => shoal_value::json::parse(&payload).map_err(|e| RpcError::internal(e.msg.to_string()))?,
    };
    let delivered = session.evaluators.deliver(text(params, "channel")?, payload);
    delivered.map_err(|e| RpcError::internal(e.msg.to_string()))?;
    Ok(json!({}))
}

fn text<'p>(params: &'p Json, member: &str) -> Result<&'p str, RpcError> {
    params[member].as_str().ok_or_else(|| RpcError::missing(member))
}

/// Parses a source with the session's names; the first mistake is the error.
fn parsed(session: &Session, source: &str) -> Result<shoal_syntax::Parsed, RpcError> {
    let parsed = shoal_syntax::parse(source, &session.snapshot().names());
    match parsed.diags.first() {
        None => Ok(parsed),
        Some(diag) => {
            let (start, end) = (diag.at.start as u64, diag.at.end as u64);
            Err(RpcError::source(diag.message(), start, end, diag.hint.as_deref(), diag.partial))
        }
    }
}

fn parse(session: &Session, params: &Json) -> Result<Json, RpcError> {
    let parsed = parsed(session, text(params, "src")?)?;
    Ok(json!({"ast_version": AST_VERSION, "ast": to_json(&parsed.program)}))
}

fn completions(session: &Session, params: &Json) -> Json {
    let source = params["src"].as_str().unwrap_or_default();
    let cursor = params["cursor"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or(source.len());
    let completion = complete(source, cursor, &session.snapshot().names());
    json!({"candidates": completion.candidates})
}

/// The broker adds its verdict.
fn explain(session: &Arc<Session>, params: &Json) -> Result<Json, RpcError> {
    let program = match params["src"].as_str() {
        Some(source) => parsed(session, source)?.program,
        None => from_json(&params["ast"]).map_err(malformed_tree)?,
    };
    let effects = claim::derive(session, &program, &session.snapshot(), &RunState::new());
    Ok(json!({
        "ast_version": AST_VERSION, "ast": to_json(&program), "effects": claim::effects_json(&effects),
        "reversibility": claim::reversibility(&effects),
    }))
}

fn malformed_tree(why: Malformed) -> RpcError {
    let at = if why.path.is_empty() { "ast".to_owned() } else { format!("ast.{}", why.path) };
    RpcError::invalid(&at, Reason::Type, format!("`{at}` must be {}", why.what))
}

fn task_output(session: &Session, params: &Json) -> Result<Json, RpcError> {
    let run = params["run"].as_u64().ok_or_else(|| RpcError::missing("run"))?;
    let task = format!("task:{run}");
    let state = session.runs.find(run).ok_or_else(|| RpcError::unknown_task(&task))?;
    let stream = match params["stream"].as_str() {
        Some("stdout") => Some(Stream::Stdout),
        Some("stderr") => Some(Stream::Stderr),
        _ => None,
    };
    let max = params["max"].as_u64().and_then(|max| usize::try_from(max).ok()).unwrap_or(16_384);
    let mut answer = state.log.read(Query { stream, offset: params["offset"].as_i64().unwrap_or(0), max });
    answer["task"] = task.into();
    Ok(answer)
}
