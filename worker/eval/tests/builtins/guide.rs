//! The guide to the language, `docs/language.md`: every transcript in it is true.
#![allow(clippy::disallowed_methods, reason = "the test compares and refreshes a file of the repository")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Run, Silent, Unmetered};
use shoal_eval::place::{Env, Place};
use shoal_eval::request::{Evaluators, Position, State, Transcript};
use shoal_eval::stack::run_on_big_stack;
use shoal_value::{ErrorValue, Table, Value, render};

use crate::REFRESH;
use crate::support::TestHost;

const FENCE: &str = "```";
const TRANSCRIPT: &str = "```shoal";
const PROMPT: &str = "shoal> ";
const CONTINUED: &str = "     > ";

fn guide_file() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "language.md"].iter().collect()
}

#[test]
fn every_transcript_of_the_guide_is_true() {
    let kept = std::fs::read_to_string(guide_file()).expect("docs/language.md exists");
    let (replayed, blocks) = replayed(&kept);
    assert!(blocks > 0, "docs/language.md has no transcripts");
    if std::env::var_os(REFRESH).is_some() {
        std::fs::write(guide_file(), replayed).expect("docs/language.md can be written");
        return;
    }
    let (kept, found): (Vec<_>, Vec<_>) = (kept.lines().collect(), replayed.lines().collect());
    if let Some(at) = (0..kept.len().max(found.len())).find(|at| kept.get(*at) != found.get(*at)) {
        let line = |lines: &[&str]| lines.get(at).copied().unwrap_or("the end").to_owned();
        panic!("docs/language.md, line {}:\n    it says {}\n    found   {}", at + 1, line(&kept), line(&found));
    }
}

/// The guide with the results that its prompts really give, and how many transcripts it has.
fn replayed(guide: &str) -> (String, usize) {
    let (mut text, mut blocks) = (String::new(), 0);
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        if line == TRANSCRIPT {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != FENCE).collect();
            text.push_str(&replayed_block(&block));
            text.push_str(FENCE);
            text.push('\n');
            blocks += 1;
        }
    }
    (text, blocks)
}

/// The prompts of a block with the results they give, all in one fresh session.
fn replayed_block(block: &[&str]) -> String {
    let session = Session::new();
    let (mut text, mut at) = (String::new(), 0);
    while at < block.len() {
        let Some(first) = block[at].strip_prefix(PROMPT) else {
            at += 1;
            continue;
        };
        let more: Vec<&str> = block[at + 1..].iter().map_while(|line| line.strip_prefix(CONTINUED)).collect();
        let source = [&[first], &*more].concat().join("\n");
        let written = &block[at..=at + more.len()];
        at += written.len();
        for line in written.iter().copied().map(str::to_owned).chain(session.request(&source)) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// Results so far, oldest first.
#[derive(Clone, Default)]
struct Results(Vec<Value>);

impl Transcript for Results {
    fn newest(&self) -> Result<Value, ErrorValue> {
        let newest = self.0.iter().rev().find(|v| !matches!(v, Value::Null | Value::Error(_)));
        Ok(newest.cloned().unwrap_or(Value::Null))
    }

    fn nth(&self, n: i64) -> Result<Option<Value>, ErrorValue> {
        let len = i64::try_from(self.0.len()).expect("few");
        let at = if n < 0 { len + n } else { n - 1 };
        Ok(usize::try_from(at).ok().and_then(|at| self.0.get(at)).cloned())
    }

    fn table(&self) -> Result<Table, ErrorValue> {
        Table::new(Vec::new())
    }
}

/// A session in an empty directory.
struct Session {
    evaluators: Evaluators,
    state: Arc<Mutex<(State, Results)>>,
}

impl Session {
    fn new() -> Self {
        let host = TestHost::new();
        let home = host.cwd().path().as_bytes().into();
        let path = std::env::var("PATH").unwrap_or_default().into_bytes().into();
        let env = Env::new_sync().insert("HOME".into(), home).insert("PATH".into(), path);
        let state = Arc::new(Mutex::new((State::new(Place::new(host.cwd(), env)), Results::default())));
        let commits = state.clone();
        let evaluators = Evaluators::new(host, move |changes| commits.lock().expect("no panic").0.commit_task(changes));
        Self { evaluators, state }
    }

    fn snapshot(&self) -> State {
        let (state, results) = &*self.state.lock().expect("no panic");
        State { transcript: Some(Arc::new(results.clone())), ..state.clone() }
    }

    /// Runs a request; the lines that stand below its prompt: none for null.
    fn request(&self, source: &str) -> Vec<String> {
        let snapshot = self.snapshot();
        let parsed = shoal_syntax::parse(source, &snapshot.names());
        if let Some(diag) = parsed.diags.first() {
            return failed(diag.code, &diag.message(), diag.hint.as_deref());
        }
        let run = Run { id: 0, cancel: CancelToken::new(), meter: Arc::new(Unmetered), sink: Arc::new(Silent) };
        let position = Position { statement: true, session: true };
        let evaluators = self.evaluators.clone();
        let program = source.to_owned();
        let finish = run_on_big_stack(move || evaluators.run(&parsed.program, &program, &snapshot, position, run))
            .expect("a thread for the evaluator");
        let mut state = self.state.lock().expect("no panic");
        state.0.commit(finish.changes);
        let shown = match &finish.result {
            Ok(Value::Null) => Vec::new(),
            Ok(value) => vec![render::inline(value)],
            Err(error) => failed(&error.code, &error.msg, error.hint.as_deref()),
        };
        state.1.0.push(finish.result.unwrap_or_else(Value::Error));
        shown
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.evaluators.close();
    }
}

fn failed(code: &str, message: &str, hint: Option<&str>) -> Vec<String> {
    let mut lines: Vec<String> = format!("! {code}: {message}").lines().map(str::to_owned).collect();
    lines.extend(hint.into_iter().flat_map(str::lines).map(|line| format!("  hint: {line}")));
    lines
}
