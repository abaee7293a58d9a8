//! The language on the work that `against_python.py` does in Python.

mod programs;
#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "benches use a part of it")]
mod support;

use std::hint::black_box;
use std::sync::Arc;

use criterion::Criterion;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Host, Run, Silent, Unmetered};
use shoal_eval::place::{Env, Place};
use shoal_eval::request::{Changes, Evaluators, Position, State};
use shoal_eval::stack::run_on_big_stack;

/// Items of each kind.
const ITEMS: u32 = 1_000_000;

struct Session {
    evaluators: Evaluators,
    state: State,
}

impl Session {
    fn new() -> Self {
        let host = support::TestHost::new();
        let state = State::new(Place::new(host.cwd(), Env::new_sync()));
        let mut session = Self { evaluators: Evaluators::new(host as Arc<dyn Host>, |_| {}), state };
        let changes = session.finish(&programs::data(ITEMS));
        session.state.commit(changes);
        session
    }

    fn finish(&self, source: &str) -> Changes {
        let parsed = shoal_syntax::parse(source, &self.state.names());
        assert!(parsed.diags.is_empty(), "{source}: {:?}", parsed.diags);
        let run = Run { id: 0, cancel: CancelToken::new(), meter: Arc::new(Unmetered), sink: Arc::new(Silent) };
        let position = Position { statement: false, session: true };
        let finish = self.evaluators.run(&parsed.program, source, &self.state, position, run);
        black_box(finish.result.expect("the program runs"));
        finish.changes
    }
}

fn main() {
    // An evaluator needs its own large stack, so the whole harness runs on it.
    run_on_big_stack(|| {
        let mut criterion = Criterion::default().configure_from_args();
        let session = Session::new();
        let mut group = criterion.benchmark_group("python");
        group.sample_size(10);
        for (name, source) in programs::PROGRAMS {
            group.bench_function(*name, |b| b.iter(|| session.finish(source)));
        }
        group.finish();
        criterion.final_summary();
    })
    .expect("a thread for the evaluator");
}
