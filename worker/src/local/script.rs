//! A script for people: values as text on standard output, mistakes with their line on standard error.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::ExitCode;
use std::sync::Arc;

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, Note, Run, Sink, Unmetered};
use shoal_eval::request::{Evaluators, Position, State};
use shoal_eval::scope::{Binding, BindingKind};
use shoal_eval::stack;
use shoal_value::render::{self, Style};
use shoal_value::{Bytes, ErrorValue, PathValue, Value, code};

use super::{set_up, trusts_manifests};

/// Lines of each output of a failed command shown with its error.
const SHOWN_LINES: usize = 20;
/// Bytes of those lines.
const SHOWN_BYTES: usize = 16 * 1024;
/// Exit status of a source that does not parse.
const NOT_PARSED: u8 = 2;

/// Runs a file.
pub(crate) fn run_file(path: OsString, args: Vec<OsString>) -> io::Result<ExitCode> {
    on_big_stack(move || {
        let (host, state) = set_up(trusts_manifests())?;
        let at = At { dir: &state.place.cwd, path: path.as_bytes() };
        let source = host.files().read(at, shoal_syntax::MAX_SOURCE as u64, &CancelToken::new());
        let source = match source {
            Ok(source) => source,
            Err(error) => {
                let error = error.about(path.as_bytes());
                complain(&format!("shoal: {}: {}", error.code, error.msg))?;
                return Ok(ExitCode::FAILURE);
            }
        };
        let name = path.to_string_lossy().into_owned();
        Script { name: &name, path: Some(PathValue::from(path.into_vec())), args }.run(source, host, state)
    })
}

/// Runs a text; `name` stands for it in messages.
pub(crate) fn run_text(name: &'static str, source: Vec<u8>, args: Vec<OsString>) -> io::Result<ExitCode> {
    on_big_stack(move || {
        let (host, state) = set_up(trusts_manifests())?;
        Script { name, path: None, args }.run(source, host, state)
    })
}

fn on_big_stack(body: impl FnOnce() -> io::Result<ExitCode> + Send + 'static) -> io::Result<ExitCode> {
    stack::run_on_big_stack(body)?
}

struct Script<'a> {
    name: &'a str,
    path: Option<PathValue>,
    args: Vec<OsString>,
}

impl Script<'_> {
    fn run(self, source: Vec<u8>, host: Arc<dyn shoal_eval::host::Host>, mut state: State) -> io::Result<ExitCode> {
        let Ok(source) = String::from_utf8(source) else {
            complain(&format!("{}: utf8_error: the source is not UTF-8", self.name))?;
            return Ok(ExitCode::from(NOT_PARSED));
        };
        self.bind(&mut state);
        let parsed = shoal_syntax::parse(&source, &state.names());
        if let Some(diag) = parsed.diags.first() {
            let place = Place::of(&source, diag.at.start, diag.at.end);
            self.show(diag.code, &diag.message(), diag.hint.as_deref(), Some(place))?;
            return Ok(ExitCode::from(NOT_PARSED));
        }
        let run = Run { id: 0, cancel: CancelToken::new(), meter: Arc::new(Unmetered), sink: Arc::new(Printed) };
        let evaluators = Evaluators::new(host, |_| {});
        let position = Position { statement: true, session: false };
        let finish = evaluators.run(&parsed.program, &source, &state, position, run);
        evaluators.close();
        if let Some(status) = finish.exit {
            // A status beyond a byte is cut by the system as well.
            return Ok(ExitCode::from(u8::try_from(status & 0xff).unwrap_or(u8::MAX)));
        }
        match finish.result {
            Ok(value) => {
                print(&value)?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => {
                self.show_error(&source, &error)?;
                Ok(status_of(&error))
            }
        }
    }

    /// `args` and, of a file, `script`.
    fn bind(&self, state: &mut State) {
        let arg = |arg: &OsString| match arg.to_str() {
            Some(text) => Value::str(text),
            None => Value::Path(PathValue::from(arg.as_bytes())),
        };
        let args = Value::list(self.args.iter().map(arg).collect()).unwrap_or(Value::Null);
        let script = self.path.clone().map(|path| ("script", Value::Path(path)));
        let bound = [("args", args)].into_iter().chain(script);
        let bound = bound.map(|(name, value)| (name.into(), Binding { value, kind: BindingKind::Let }));
        state.commit_bindings(bound.collect());
    }

    fn show_error(&self, source: &str, error: &ErrorValue) -> io::Result<()> {
        let place = error.span.map(|span| Place::of(source, span.start as usize, span.end as usize));
        self.show(&error.code, &error.msg, error.hint.as_deref(), place)?;
        for (label, bytes) in [("stdout", &error.stdout), ("stderr", &error.stderr)] {
            if let Some(bytes) = bytes.as_ref().filter(|b| *error.code == *code::CMD_FAILED && !Bytes::is_empty(b)) {
                let text = bytes.to_text_lossy();
                let tail = render::tail_lines(text.trim_end_matches('\n'), SHOWN_LINES, SHOWN_BYTES);
                complain(&format!("{label}:\n{}", render::escape_controls(tail)))?;
            }
        }
        Ok(())
    }

    fn show(&self, code: &str, message: &str, hint: Option<&str>, place: Option<Place<'_>>) -> io::Result<()> {
        match place {
            Some(Place { line, col, text, width }) => {
                complain(&format!("{}:{line}:{col}: {code}: {message}", self.name))?;
                let caret = "^".repeat(width);
                complain(&format!("{}\n{}{caret}", render::escape_controls(text), " ".repeat(col.saturating_sub(1))))?;
            }
            None => complain(&format!("{}: {code}: {message}", self.name))?,
        }
        hint.map_or(Ok(()), |hint| complain(&format!("hint: {hint}")))
    }
}

/// A place in a source, for people.
struct Place<'a> {
    line: usize,
    col: usize,
    text: &'a str,
    width: usize,
}

impl<'a> Place<'a> {
    fn of(source: &'a str, start: usize, end: usize) -> Self {
        let start = source.floor_char_boundary(start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let end = source.floor_char_boundary(end.clamp(start, line_end));
        Self {
            line: source[..start].matches('\n').count() + 1,
            col: source[line_start..start].chars().count() + 1,
            text: &source[line_start..line_end],
            width: source[start..end].chars().count().max(1),
        }
    }
}

/// The status of an uncaught failed command, else 1; death by a signal is 1 too.
fn status_of(error: &ErrorValue) -> ExitCode {
    let status = error.status.filter(|_| *error.code == *code::CMD_FAILED);
    match status.and_then(|status| u8::try_from(status).ok()) {
        Some(status) if status > 0 => ExitCode::from(status),
        Some(_) | None => ExitCode::FAILURE,
    }
}

/// Prints a value in block form; null and what was shown already print nothing.
fn print(value: &Value) -> io::Result<()> {
    let shown = matches!(value, Value::Outcome(outcome) if outcome.shown);
    if value.is_null() || shown {
        return Ok(());
    }
    let text = render::block(value, &Style::default());
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}

fn complain(text: &str) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{text}")
}

/// Bare commands between the statements are shown like the final value.
struct Printed;

impl Sink for Printed {
    fn value(&self, value: &Value, bare: bool) {
        if bare {
            // A closed output is noticed by the final value; the program goes on for its effects.
            let _closed: io::Result<()> = print(value);
        }
    }

    fn text(&self, text: &str) {
        let _closed: io::Result<()> = writeln!(io::stdout().lock(), "{text}");
    }

    fn note(&self, note: Note) {
        let _closed: io::Result<()> = complain(&format!("note: {}", note.msg));
    }
}
