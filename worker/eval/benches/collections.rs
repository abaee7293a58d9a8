//! Collection methods on a million items, through the language.

#[path = "../tests/support/mod.rs"]
#[allow(dead_code, reason = "benches use a part of it")]
mod support;

use std::hint::black_box;
use std::sync::Arc;

use criterion::Criterion;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Host, Run, Silent, Unmetered};
use shoal_eval::place::{Env, Place};
use shoal_eval::request::{Evaluators, Position, State};
use shoal_eval::stack::run_on_big_stack;

/// What the programs work on.
const DATA: &str = "
    let ints = (0..1000000).map(i => i * 7919 % 1000003)
    let words = ints.map(i => \"w{i}\")
    let rows = ints.map(i => {id: i, group: i % 10}).to_table()
";

const PROGRAMS: &[(&str, &str)] = &[
    ("map", "ints.map(x => x * 2).len()"),
    ("where", "ints.where(x => x % 2 == 0).len()"),
    ("reduce", "ints.reduce(0, (acc, x) => acc + x)"),
    ("sum", "ints.sum()"),
    ("sort ints", "ints.sort().len()"),
    ("sort strs", "words.sort().len()"),
    ("sort_by", "rows.sort_by(.id).len()"),
    ("uniq", "ints.uniq().len()"),
    ("group", "rows.group_by(.group).len()"),
    ("table where", "rows.where(.id > 500000).len()"),
    ("table map field", "rows.map(.id).sum()"),
    ("select", "rows.select(\"id\").len()"),
    ("join", "words.join(\",\").len()"),
    ("split", "words.join(\",\").split(\",\").len()"),
    ("enumerate", "ints.enumerate().len()"),
];

struct Bench {
    evaluators: Evaluators,
    state: State,
}

impl Bench {
    fn new() -> Self {
        let host = support::TestHost::new();
        let state = State::new(Place::new(host.cwd(), Env::new_sync()));
        let mut bench = Self { evaluators: Evaluators::new(host as Arc<dyn Host>, |_| {}), state };
        bench.state.commit(bench.finish(DATA));
        bench
    }

    fn finish(&self, source: &str) -> shoal_eval::request::Changes {
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
        collections(&mut criterion);
        criterion.final_summary();
    })
    .expect("a thread for the evaluator");
}

fn collections(criterion: &mut Criterion) {
    let bench = Bench::new();
    let mut group = criterion.benchmark_group("a million items");
    group.sample_size(10);
    for (name, source) in PROGRAMS {
        group.bench_function(*name, |b| b.iter(|| bench.finish(source)));
    }
    group.finish();
}
