//! Filters in Shoal's own language: one run per event, in a scope of their own that lasts as long as the watch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value as Json;
use shoal_eval::cancel::CancelToken;
use shoal_eval::effects::Effect;
use shoal_eval::host::{Meter, Note, Run, Sink};
use shoal_eval::request::{Evaluators, Position, State};
use shoal_eval::scope::{Binding, BindingKind};
use shoal_syntax::ast::Program;
use shoal_syntax::tree_json::to_json;
use shoal_value::{ErrorValue, Str, Value, code, json, render};
use shoal_watch::filter::{Filter, FilterError, text_of};
use shoal_watch::limits::{FILTER_BYTES, FILTER_MS, SOURCE_BYTES};
use shoal_wire::RpcError;
use shoal_wire::error::Reason;

use super::filter_host::FilterHost;
use crate::clock;
use crate::session::Session;

/// A filter that was checked.
pub(crate) struct ShoalFilter {
    source: String,
    program: Program,
    evaluators: Evaluators,
    host: Arc<FilterHost>,
    state: State,
}

impl ShoalFilter {
    /// Parses a filter and checks what it would do. It sees the session's directory and variables, not its names.
    pub(crate) fn compile(session: &Arc<Session>, source: &str) -> Result<Self, RpcError> {
        if source.len() > SOURCE_BYTES {
            let message = format!("on_event: a filter has at most {SOURCE_BYTES} bytes, this one has {}", source.len());
            return Err(RpcError::invalid("on_event", Reason::TooLarge, message));
        }
        let mut state = State::new(session.snapshot().place);
        bind(&mut state, "event", Value::Null, BindingKind::Let);
        bind(&mut state, "state", Value::Null, BindingKind::Var);
        let parsed = shoal_syntax::parse(source, &state.names());
        if let Some(diag) = parsed.diags.first() {
            let span = serde_json::json!({"start": diag.at.start, "end": diag.at.end});
            let error = RpcError::invalid("on_event", Reason::Syntax, format!("on_event: {}", diag.message()));
            return Err(error.and("span", span).and("hint", diag.hint.clone()));
        }
        let host = FilterHost::new(session);
        let evaluators = Evaluators::new(host.clone(), |_| {});
        let filter = Self { source: source.to_owned(), program: parsed.program, evaluators, host, state };
        filter.check_effects()?;
        Ok(filter)
    }

    /// Runs it on a sample. A name that does not exist and an effect that is refused fail it; that members are missing
    /// in the sample does not.
    pub(crate) fn check_on(&mut self, sample: &Json) -> Result<(), RpcError> {
        let before = self.state.clone();
        let result = self.evaluate(sample);
        self.state = before;
        let fatal = [code::UNDEFINED_VAR, code::NOT_PERMITTED, code::SPAWN_DENIED];
        match result {
            Err(error) if fatal.contains(&&*error.code) || is_unknown_command(&error) => {
                Err(refusal(&format!("{}: {}", error.code, error.msg)))
            }
            _ => Ok(()),
        }
    }

    fn check_effects(&self) -> Result<(), RpcError> {
        let request = self.request(&Arc::new(Printed::default()));
        let effects = self.evaluators.derive(&self.program, &self.state, request);
        // What is opaque is refused by the host when it happens, except calls of tools and reads of resources.
        let harmless = |effect: &&Effect| {
            matches!(effect, Effect::Read(_) | Effect::EnvRead(_) | Effect::Time | Effect::Journal | Effect::Opaque)
        };
        if let Some(effect) = effects.iter().find(|effect| !harmless(effect)) {
            return Err(refusal(&format!("{}: a filter may not {effect}", code::NOT_PERMITTED)));
        }
        if starts_tasks(&to_json(&self.program)) {
            return Err(refusal(&format!("{}: a filter may not start tasks", code::NOT_PERMITTED)));
        }
        Ok(())
    }

    fn request(&self, printed: &Arc<Printed>) -> Run {
        let meter = Arc::new(Budget { until: clock::now() + FILTER_TIME, used: Mutex::default() });
        Run { id: 0, cancel: CancelToken::new(), meter, sink: printed.clone() }
    }

    fn evaluate(&mut self, event: &Json) -> Result<Option<String>, ErrorValue> {
        let event = json::parse(&event.to_string())?;
        bind(&mut self.state, "event", event, BindingKind::Let);
        let printed = Arc::new(Printed::default());
        let request = self.request(&printed);
        self.host.begin(clock::now() + FILTER_TIME);
        let position = Position { statement: false, session: true };
        let finish = self.evaluators.run(&self.program, &self.source, &self.state, position, request);
        self.state.commit(finish.changes);
        let value = finish.result?;
        let text = match &value {
            Value::Outcome(outcome) => return Ok(Some(outcome.text()?)),
            Value::Str(text) => Json::from(&**text),
            other => serde_json::from_str(&json::stringify(other)?).unwrap_or_default(),
        };
        Ok(text_of(&text, &printed.text()))
    }
}

const FILTER_TIME: std::time::Duration = std::time::Duration::from_millis(FILTER_MS);

impl Filter for ShoalFilter {
    fn run(&mut self, event: &Json) -> Result<Option<String>, FilterError> {
        let late = clock::now() + FILTER_TIME;
        let outcome = self.evaluate(event);
        // Late is late, also when the last thing it did was to wait and nothing looked at the clock after that.
        if clock::now() >= late {
            let message = format!("the filter ran longer than {} s", FILTER_MS / 1000);
            return Err(FilterError { code: code::TIMEOUT.to_owned(), message });
        }
        outcome.map_err(|error| FilterError { code: error.code.to_string(), message: error.msg.to_string() })
    }
}

fn refusal(message: &str) -> RpcError {
    RpcError::invalid("on_event", Reason::FilterError, format!("on_event: {message}"))
}

fn bind(state: &mut State, name: &str, value: Value, kind: BindingKind) {
    state.commit_bindings(vec![(Str::from(name), Binding { value, kind })]);
}

/// A word at the head of a command that names nothing.
fn is_unknown_command(error: &ErrorValue) -> bool {
    *error.code == *code::NOT_FOUND && error.msg.contains("command")
}

/// Whether a `spawn` or a `&` is anywhere in a syntax tree.
fn starts_tasks(tree: &Json) -> bool {
    match tree {
        Json::Array(items) => items.iter().any(starts_tasks),
        Json::Object(members) => {
            members.get("kind").is_some_and(|kind| kind == "spawn")
                || members.get("background") == Some(&Json::Bool(true))
                || members.values().any(starts_tasks)
        }
        _ => false,
    }
}

/// Time and memory of one run.
struct Budget {
    until: Instant,
    used: Mutex<u64>,
}

impl Meter for Budget {
    fn step(&self, _n: u64) -> Result<(), String> {
        if clock::now() < self.until {
            Ok(())
        } else {
            Err(format!("a filter has {} s for an event", FILTER_MS / 1000))
        }
    }

    fn alloc(&self, bytes: u64) -> Result<(), String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.saturating_add(bytes);
        if *used <= FILTER_BYTES as u64 {
            return Ok(());
        }
        Err(format!("a filter has {} MiB for an event", FILTER_BYTES / (1 << 20)))
    }
}

/// What earlier statements show; the line of an event is short, so little of it is kept.
#[derive(Default)]
struct Printed(Mutex<String>);

/// Bytes kept of printed text: more than a line takes.
const MAX_PRINTED: usize = 64 * 1024;

impl Printed {
    fn push(&self, text: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() + text.len() < MAX_PRINTED {
            if !all.is_empty() {
                all.push('\n');
            }
            all.push_str(text);
        }
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Sink for Printed {
    fn value(&self, value: &Value, _bare: bool) {
        match value {
            Value::Null => {}
            Value::Outcome(outcome) => self.push(&outcome.peek_text()),
            other => self.push(&render::inline(other)),
        }
    }

    fn text(&self, text: &str) {
        self.push(text);
    }

    fn note(&self, _note: Note) {}
}
