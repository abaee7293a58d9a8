//! Running one program in a fresh evaluator, as the verdict host does.

use std::collections::HashMap;
use std::sync::Arc;

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Host, Run, Silent, Unmetered};
use shoal_eval::place::{Env, Place};
use shoal_eval::request::{Evaluators, Position, State};
use shoal_eval::stack;
use shoal_value::render;

use crate::support::TestHost;

/// What came of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Inline rendering of its value.
    Value(String),
    /// Code, message and hint.
    Error(String, String),
    /// It does not parse: message and hint.
    Parse(String),
}

/// Environment of the programs: what they need to find other programs, and nothing personal.
pub(crate) fn environment(home: &str) -> Env {
    let path = std::env::var("PATH").unwrap_or_default();
    let vars = HashMap::from([("PATH", &*path), ("HOME", home), ("TZ", "UTC"), ("TERM", "dumb"), ("NO_COLOR", "1")]);
    vars.into_iter().map(|(name, value)| (name.into(), value.as_bytes().into())).collect()
}

/// Runs `source` in the host's directory.
pub(crate) fn run(host: &Arc<TestHost>, source: &str) -> Verdict {
    let (host, source) = (host.clone(), source.to_owned());
    stack::run_on_big_stack(move || run_here(&host, &source)).expect("a thread for the evaluator")
}

fn run_here(host: &Arc<TestHost>, source: &str) -> Verdict {
    let cwd = host.cwd();
    let home = cwd.path().display().into_owned();
    let state = State::new(Place::new(cwd, environment(&home)));
    let parsed = shoal_syntax::parse(source, &state.names());
    if let Some(diag) = parsed.diags.first() {
        return Verdict::Parse(format!("{} {}", diag.message(), diag.hint.as_deref().unwrap_or("")));
    }
    let evaluators = Evaluators::new(host.clone() as Arc<dyn Host>, |_| {});
    let run = Run { id: 0, cancel: CancelToken::new(), meter: Arc::new(Unmetered), sink: Arc::new(Silent) };
    let position = Position { statement: true, session: false };
    let finish = evaluators.run(&parsed.program, source, &state, position, run);
    evaluators.close();
    match finish.result {
        Ok(value) => Verdict::Value(render::inline(&value)),
        Err(error) => {
            Verdict::Error(error.code.to_string(), format!("{} {}", error.msg, error.hint.as_deref().unwrap_or("")))
        }
    }
}
