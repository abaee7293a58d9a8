//! Running a source text in a new evaluator over the test host.

use std::sync::Arc;

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Run, Silent, Unmetered};
use shoal_eval::place::{Env, Place};
use shoal_eval::request::{Evaluators, Position, State};
use shoal_eval::stack::run_on_big_stack;
use shoal_value::{ErrorValue, Value, render};

use crate::support::TestHost;

/// Runs `source` as a script in an empty directory; the inline form of its value, or `! CODE`.
pub(crate) fn shown(source: &str) -> String {
    match evaluate(source) {
        Ok(value) => render::inline(&value),
        Err(error) => format!("! {}", error.code),
    }
}

/// Runs `source` as a script in an empty directory.
pub(crate) fn evaluate(source: &str) -> Result<Value, ErrorValue> {
    let source = source.to_owned();
    run_on_big_stack(move || evaluate_here(&source)).expect("a thread for the evaluator")
}

fn evaluate_here(source: &str) -> Result<Value, ErrorValue> {
    let host = TestHost::new();
    let home = host.cwd().path().as_bytes().into();
    let env = Env::new_sync().insert("HOME".into(), home);
    let state = State::new(Place::new(host.cwd(), env));
    let parsed = shoal_syntax::parse(source, &state.names());
    if let Some(diag) = parsed.diags.first() {
        return Err(ErrorValue::new(shoal_value::code::PARSE_ERROR, format!("{diag:?}")));
    }
    let evaluators = Evaluators::new(host, |_| {});
    let run = Run { id: 0, cancel: CancelToken::new(), meter: Arc::new(Unmetered), sink: Arc::new(Silent) };
    let position = Position { statement: false, session: false };
    let finish = evaluators.run(&parsed.program, source, &state, position, run);
    evaluators.close();
    finish.result
}
