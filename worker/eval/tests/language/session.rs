//! Requests of a session: snapshot, commit, tasks, transcript.

use std::sync::{Arc, Mutex, MutexGuard};

use shoal_eval::cancel::{CancelReason, CancelToken};
use shoal_eval::host::{Host, Meter, Run, Silent, Sink, Unmetered};
use shoal_eval::place::Place;
use shoal_eval::request::{Evaluators, Finish, Position, State, Transcript};
use shoal_eval::stack;
use shoal_value::{ErrorValue, Table, Value, render};

use crate::support::TestHost;
use crate::verdict::environment;

/// Results so far, newest last.
#[derive(Clone, Default)]
struct Results(Vec<Value>);

impl Transcript for Results {
    fn newest(&self) -> Result<Value, ErrorValue> {
        let newest = self.0.iter().rev().find(|v| !matches!(v, Value::Null | Value::Error(_)));
        Ok(newest.cloned().unwrap_or(Value::Null))
    }

    fn nth(&self, n: i64) -> Result<Option<Value>, ErrorValue> {
        let at = if n < 0 { self.0.len() as i64 + n } else { n - 1 };
        Ok(usize::try_from(at).ok().and_then(|at| self.0.get(at)).cloned())
    }

    fn table(&self) -> Result<Table, ErrorValue> {
        Table::new(Vec::new())
    }
}

/// A session over the test host.
#[derive(Clone)]
struct Session {
    evaluators: Evaluators,
    state: Arc<Mutex<(State, Results)>>,
    host: Arc<TestHost>,
}

impl Session {
    fn new() -> Self {
        let host = TestHost::new();
        let cwd = host.cwd();
        let home = cwd.path().display().into_owned();
        let state = State::new(Place::new(cwd, environment(&home)));
        let state = Arc::new(Mutex::new((state, Results::default())));
        let commits = state.clone();
        let on_task_end = move |changes| commits.lock().expect("no panic").0.commit_task(changes);
        let evaluators = Evaluators::new(host.clone() as Arc<dyn Host>, on_task_end);
        Self { evaluators, state, host }
    }

    fn lock(&self) -> MutexGuard<'_, (State, Results)> {
        self.state.lock().expect("no panic")
    }

    fn snapshot(&self) -> State {
        let (state, results) = &*self.lock();
        State { transcript: Some(Arc::new(results.clone())), ..state.clone() }
    }

    /// Runs a source on a snapshot without committing.
    fn start(&self, source: &str, snapshot: State, run: Run) -> Finish {
        let (this, source) = (self.clone(), source.to_owned());
        stack::run_on_big_stack(move || {
            let parsed = shoal_syntax::parse(&source, &snapshot.names());
            assert_eq!(parsed.diags, vec![], "{source}");
            let position = Position { statement: true, session: true };
            this.evaluators.run(&parsed.program, &source, &snapshot, position, run)
        })
        .expect("a thread for the evaluator")
    }

    fn commit(&self, finish: Finish) -> String {
        let shown = match &finish.result {
            Ok(value) => render::inline(value),
            Err(error) => format!("! {}", error.code),
        };
        let mut state = self.lock();
        state.0.commit(finish.changes);
        state.1.0.push(finish.result.unwrap_or_else(Value::Error));
        shown
    }

    fn request(&self, source: &str) -> String {
        let finish = self.start(source, self.snapshot(), run());
        self.commit(finish)
    }
}

fn run() -> Run {
    Run { id: 1, cancel: CancelToken::new(), meter: Arc::new(Unmetered), sink: Arc::new(Silent) }
}

/// Requests one after another, each with its result.
fn check(requests: &[(&str, &str)]) {
    let session = Session::new();
    for (source, wanted) in requests {
        assert_eq!(session.request(source), *wanted, "{source}");
    }
}

#[test]
fn later_requests_see_what_earlier_ones_did() {
    check(&[("let x = 4", "null"), ("x + 1", "5")]);
    check(&[("fn inc() { n += 1 }; var n = 0", "null"), ("inc()", "1"), ("n", "1"), ("n = 7; inc()", "8"), ("n", "8")]);
    check(&[("fn a() { b() }; fn b() { 1 }", "null"), ("a()", "1"), ("fn b() { 2 }", "null"), ("a()", "2")]);
    check(&[("fn c() { var n = 0; () => { n += 1 } }; let t = c()", "null"), ("t()", "1"), ("t()", "2")]);
    check(&[("var n = 0; n = 3; raise(\"no\")", "! raised"), ("n", "3")]);
    check(&[("env.Q = \"1\"", "\"1\""), ("env.Q", "\"1\""), ("env.Q = null", "null"), ("env.Q", "null")]);
    check(&[("mkdir d; cd d; pwd.name", "\"d\""), ("pwd.name", "\"d\""), ("cd -; pwd.name == \"d\"", "false")]);
    check(&[("let y = 1; exit 3", "null"), ("y", "1")]);
    check(&[("with env: {W: \"1\"} { 1 }", "1"), ("env.W", "null")]);
}

#[test]
fn results_are_at_hand() {
    check(&[
        ("[3, 1]", "[3, 1]"),
        ("it.sort()", "[1, 3]"),
        (".len()", "2"),
        ("null", "null"),
        ("it", "2"),
        ("out[1]", "[3, 1]"),
        ("out[-2]", "2"),
        ("out[99]", "! index_range"),
        ("let it = 5", "null"),
        ("it", "5"),
    ]);
}

#[test]
fn overlapping_requests_do_not_disturb_each_other() {
    let session = Session::new();
    session.request("var kept = 0");
    let (a, b) = (session.snapshot(), session.snapshot());
    let first = session.start("let k = \"a\"; env.E = \"a\"; k", a, run());
    let second = session.start("let k = \"b\"; kept = 1; k", b, run());
    assert_eq!(session.commit(second), "\"b\"");
    assert_eq!(session.commit(first), "\"a\"");
    assert_eq!(session.request("[k, kept, env.E]"), "[\"a\", 1, \"a\"]");
}

#[test]
fn tasks_go_on_after_their_request_and_commit_at_their_end() {
    let session = Session::new();
    assert_eq!(session.request("var n = 0; let t = spawn { n += 5; n }; 1"), "1");
    assert_eq!(session.request("t.await()"), "5");
    assert_eq!(session.request("n"), "5");
    assert_eq!(session.request("(spawn { cd / }).await(); (pwd) == path(\"/\")"), "false");
}

#[test]
fn a_token_and_a_meter_end_a_run_past_every_handler() {
    let session = Session::new();
    let token = CancelToken::new();
    token.cancel(CancelReason::Cancelled);
    let cancelled = Run { cancel: token, ..run() };
    let loops = "var done = 0; try { while true { done = 1 } } catch { 1 }";
    let finish = session.start(loops, session.snapshot(), cancelled);
    assert_eq!(session.commit(finish), "! cancelled");
    let token = CancelToken::new();
    token.cancel(CancelReason::Deadline);
    let finish = session.start("while true { }", session.snapshot(), Run { cancel: token, ..run() });
    assert_eq!(session.commit(finish), "! deadline_exceeded");
    let budget = Run { meter: Arc::new(Steps(Mutex::new(1_000))), ..run() };
    let finish = session.start("[1].each { while true { 1 catch 2 } } catch 3", session.snapshot(), budget);
    assert_eq!(session.commit(finish), "! budget_exceeded");
}

/// A meter with so many steps.
struct Steps(Mutex<u64>);

impl Meter for Steps {
    fn step(&self, n: u64) -> Result<(), String> {
        let mut left = self.0.lock().expect("no panic");
        *left = left.checked_sub(n).ok_or("more than 1000 steps")?;
        Ok(())
    }

    fn alloc(&self, _bytes: u64) -> Result<(), String> {
        Ok(())
    }
}

/// Keeps what is echoed.
#[derive(Default)]
struct Echo(Mutex<Vec<String>>);

impl Sink for Echo {
    fn value(&self, value: &Value, bare: bool) {
        let text = render::inline(value);
        self.0.lock().expect("no panic").push(if bare { format!("{text} bare") } else { text });
    }

    fn text(&self, text: &str) {
        self.0.lock().expect("no panic").push(text.to_owned());
    }

    fn note(&self, note: shoal_eval::host::Note) {
        self.0.lock().expect("no panic").push(format!("note: {}", note.msg));
    }
}

#[test]
fn values_of_statements_that_are_not_the_last_are_echoed() {
    let session = Session::new();
    let echoed = |source: &str| {
        let sink = Arc::new(Echo::default());
        let finish = session.start(source, session.snapshot(), Run { sink: sink.clone(), ..run() });
        session.commit(finish);
        sink.0.lock().expect("no panic").clone()
    };
    assert_eq!(echoed("1; let x = 2; x = 3 catch 4; x"), ["1"]);
    assert_eq!(echoed("1 + 1; [1]; 2"), ["2", "[1]"]);
    assert_eq!(echoed("true && false; 1"), ["true bare", "false"]);
    assert_eq!(echoed("fn f(a: int, b = 1) -> int { a }; f --help; 1")[0], "f(a: int, b) -> int\n");
    assert!(echoed("echo *.none")[0].contains("matched nothing"));
    assert!(session.host.cwd().path().as_bytes().starts_with(b"/"));
}
