//! One program, one line of JSON: what the language's tests read.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value as Json, json};
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{Note, Run, Sink, Unmetered};
use shoal_eval::request::{Evaluators, Finish, Position};
use shoal_eval::stack;
use shoal_syntax::{Diag, Names};
use shoal_value::{ErrorValue, Value, render, wire};

use super::set_up;

/// A wire value longer than this is left out: the line is for tests, which compare the rendering.
const MAX_VALUE: usize = 1024 * 1024;

/// Evaluates the source and prints its verdict. The exit code says only whether there is one.
pub(crate) fn run(source: Vec<u8>) -> io::Result<ExitCode> {
    let verdict = stack::run_on_big_stack(move || verdict(source))??;
    let mut out = io::stdout().lock();
    // What was echoed may have ended in the middle of a line.
    writeln!(out, "\n{verdict}")?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn verdict(source: Vec<u8>) -> io::Result<Json> {
    let source = match String::from_utf8(source) {
        Ok(source) => source,
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let error =
                json!({"code": "parse_error", "msg": "the source is not UTF-8", "hint": null, "span": [at, at]});
            return Ok(json!({"ok": false, "phase": "parse", "error": error}));
        }
    };
    let parsed = shoal_syntax::parse(&source, &Names::script());
    if let Some(diag) = parsed.diags.first() {
        return Ok(json!({"ok": false, "phase": "parse", "error": diag_json(diag)}));
    }
    let (host, state) = set_up(true)?;
    let sink = Arc::new(Notes::default());
    for note in parsed.notes {
        sink.add(note.text, Some((note.at.start, note.at.end)));
    }
    let run = Run { id: 0, cancel: CancelToken::new(), meter: Arc::new(Unmetered), sink: sink.clone() };
    let evaluators = Evaluators::new(host, |_| {});
    let position = Position { statement: true, session: false };
    let Finish { result, exit, .. } = evaluators.run(&parsed.program, &source, &state, position, run);
    evaluators.close();
    let mut verdict = match result {
        Ok(value) => value_json(&value),
        Err(error) => json!({"ok": false, "phase": "eval", "error": error_json(&error)}),
    };
    if let Json::Object(members) = &mut verdict {
        members.extend(exit.map(|status| ("exit".to_owned(), status.into())));
        members.extend(sink.take().map(|notes| ("notes".to_owned(), notes)));
    }
    Ok(verdict)
}

fn value_json(value: &Value) -> Json {
    let mut members = Map::new();
    members.insert("ok".into(), true.into());
    members.insert("render".into(), render::inline(value).into());
    members.insert("type".into(), value.type_name().into());
    if let Some(wire) = wire::to_wire(value, MAX_VALUE)
        && let Ok(wire) = serde_json::from_str(&wire)
    {
        members.insert("value".into(), wire);
    }
    Json::Object(members)
}

fn diag_json(diag: &Diag) -> Json {
    json!({"code": diag.code, "msg": diag.message(), "hint": diag.hint, "span": [diag.at.start, diag.at.end]})
}

fn error_json(error: &ErrorValue) -> Json {
    let mut members = Map::new();
    members.insert("code".into(), (&*error.code).into());
    members.insert("msg".into(), (&*error.msg).into());
    members.insert("hint".into(), error.hint.as_deref().into());
    members.insert("span".into(), error.span.map_or(Json::Null, |span| json!([span.start, span.end])));
    let streams = [("stderr", &error.stderr), ("stdout", &error.stdout)];
    for (name, bytes) in streams {
        members.extend(bytes.as_ref().map(|bytes| (name.to_owned(), bytes.to_text_lossy().into_owned().into())));
    }
    members.extend(error.status.map(|status| ("status".to_owned(), status.into())));
    Json::Object(members)
}

/// A sink that keeps the notes and drops the echoes.
#[derive(Default)]
struct Notes(Mutex<Vec<Json>>);

impl Notes {
    fn add(&self, msg: String, span: Option<(usize, usize)>) {
        let span = span.map_or(Json::Null, |(start, end)| json!([start, end]));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(json!({"msg": msg, "span": span}));
    }

    fn take(&self) -> Option<Json> {
        let notes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        (!notes.is_empty()).then(|| notes.into())
    }
}

impl Sink for Notes {
    fn value(&self, _value: &Value, _bare: bool) {}

    fn text(&self, _text: &str) {}

    fn note(&self, note: Note) {
        self.add(note.msg, note.span.map(|span| (span.start as usize, span.end as usize)));
    }
}
