//! External programs: finding, launching, and the outcome.

use shoal_value::outcome::{Out, OutcomeBody, Stage, Usage};
use shoal_value::{Bytes, ErrorValue, Outcome, PathValue, Str, Value, code};

use super::words::{push_arguments, push_matches};
use super::{FlagWord, Invocation, Language, RedirectForm, Word};
use crate::ctx::join_path;
use crate::host::{
    At, Chain, Exit, FileError, FileErrorKind, FileKind, Finished, Input, Output, Program, StartError, StartErrorKind,
    process::RunError,
};
use crate::machine::Machine;
use crate::unwind::{Eval, Stop, Unwind};

/// Whether and how a stage that ended so counts as ok.
fn stage_ok(exit: &Exit, last: bool) -> bool {
    match exit {
        Exit::Status(0) => true,
        // Its reader had closed the pipe.
        Exit::Status(141) => !last,
        Exit::Signal(name) => !last && **name == *"SIGPIPE",
        Exit::Status(_) => false,
    }
}

impl Machine {
    /// Runs one program.
    pub(super) fn invoke_program(&mut self, invocation: Invocation<'_>) -> Eval<Value> {
        let redirects = invocation.redirects.clone();
        let program = self.program(invocation)?;
        let mut stdin = Input::Null;
        let mut stdout = Output::Capture;
        for (kind, target) in redirects {
            let Value::Path(path) = target else { continue };
            match kind {
                RedirectForm::In => stdin = Input::File(path),
                RedirectForm::Out => stdout = Output::File { path, append: false },
                RedirectForm::Append => stdout = Output::File { path, append: true },
            }
        }
        self.launch(vec![program], stdin, stdout)
    }

    /// The program of a command: found, with its arguments and environment.
    pub(super) fn program(&mut self, invocation: Invocation<'_>) -> Eval<Program> {
        let Invocation { site, env, words, block, .. } = invocation;
        if block.is_some() {
            return Err(super::builtin::stray_block(&site.head).into());
        }
        let mut argv = vec![site.head.as_bytes().to_vec()];
        let mut vars = self.place.env.clone();
        for (name, word) in env {
            match self.env_word(&name, word)? {
                Some(value) => vars.insert_mut(name, value),
                None => drop(vars.remove_mut(&*name)),
            }
        }
        let path = match &site.language {
            Some(language) => {
                let (path, tool) = self.find_interpreter(&language.tool)?;
                argv[0] = tool.as_bytes().to_vec();
                argv.extend(language_args(language));
                path
            }
            None => self.find_head(&site.head)?,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            self.push_argument(word, &mut words, &mut argv)?;
        }
        if argv.iter().any(|arg| arg.contains(&0)) {
            return Err(ErrorValue::arg_error(format!("an argument of `{}` holds a NUL byte", site.head)).into());
        }
        let env = vars.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect();
        Ok(Program { path, argv, env })
    }

    fn push_argument(
        &mut self,
        word: Word,
        words: &mut impl Iterator<Item = Word>,
        argv: &mut Vec<Vec<u8>>,
    ) -> Eval<()> {
        match word {
            Word::Plain(text) | Word::Text(text) => argv.push(text.as_bytes().to_vec()),
            Word::Value(value) => push_arguments(self, &value, argv)?,
            Word::Glob(pattern) => {
                let glob = self.glob_of(&pattern);
                push_matches(self, &glob, argv)?;
            }
            Word::Short { raw, .. } => argv.push(raw.as_bytes().to_vec()),
            Word::DashDash => argv.push(b"--".to_vec()),
            Word::Long { name, raw, value } => match value {
                FlagWord::None => argv.push(raw.as_bytes().to_vec()),
                FlagWord::Given(word) => {
                    let mut value = Vec::new();
                    self.push_argument(*word, words, &mut value)?;
                    let flag = format!("--{name}=").into_bytes();
                    argv.extend(value.into_iter().map(|value| [flag.as_slice(), &value].concat()));
                }
                FlagWord::Next => match words.next() {
                    None => argv.push(raw.as_bytes().to_vec()),
                    Some(word) => {
                        argv.push(raw.as_bytes().to_vec());
                        self.push_argument(word, words, argv)?;
                    }
                },
            },
        }
        Ok(())
    }

    fn find_head(&mut self, head: &Str) -> Eval<PathValue> {
        let head = self.expand_home(head)?;
        match find_program(self, &head)? {
            Found::Program(path) => Ok(path),
            Found::Refused(error) => Err(error.into()),
            Found::Nothing => Err(self.command_not_found(&head).into()),
        }
    }

    fn find_interpreter(&mut self, tool: &Str) -> Eval<(PathValue, Str)> {
        let candidates: &[&str] = if **tool == *"python" { &["python", "python3"] } else { &[tool] };
        for name in candidates {
            if let Found::Program(path) = find_program(self, name)? {
                return Ok((path, (*name).into()));
            }
        }
        Err(self.command_not_found(tool).into())
    }

    /// The executable a bare name means, if there is one.
    pub(crate) fn find_bare_program(&mut self, name: &str) -> Eval<Option<PathValue>> {
        Ok(match find_program(self, name)? {
            Found::Program(path) => Some(path),
            Found::Nothing | Found::Refused(_) => None,
        })
    }

    /// Runs a chain; its outcome.
    pub(crate) fn launch(&mut self, stages: Vec<Program>, stdin: Input<'_>, stdout: Output) -> Eval<Value> {
        if let Some(reason) = self.run.cancel.reason() {
            return Err(Stop::Cancelled(reason).into());
        }
        let names: Vec<Str> = stages.iter().map(|program| command_text(&program.argv)).collect();
        let heads: Vec<Str> = stages.iter().map(|p| String::from_utf8_lossy(&p.argv[0]).into()).collect();
        let redirected = match &stdout {
            Output::File { path, .. } => Some(path.clone()),
            Output::Capture => None,
        };
        let redirect = match &stdin {
            Input::File(path) => Some(path.clone()),
            _ => redirected.clone(),
        };
        let chain = Chain { run: self.run.id, task: self.task, cwd: self.place.cwd.clone(), stages, stdin, stdout };
        let host = self.session.host.clone();
        let finished = match host.processes().run(chain, &self.run.cancel) {
            Ok(finished) => finished,
            Err(RunError::Source(unwind)) => return Err(unwind),
            Err(RunError::Start(error)) => return Err(start_error(&error, &heads, redirect.as_ref()).into()),
        };
        if finished.cancelled
            && let Some(reason) = self.run.cancel.reason()
        {
            return Err(Stop::Cancelled(reason).into());
        }
        Ok(Value::Outcome(self.outcome(finished, &names, redirected.is_some())))
    }

    fn outcome(&self, finished: Finished, names: &[Str], redirected: bool) -> Outcome {
        let last = finished.stages.len() - 1;
        let stages: Vec<Stage> = finished
            .stages
            .iter()
            .zip(names)
            .enumerate()
            .map(|(at, (end, name))| {
                let (status, signal) = exit_parts(&end.exit);
                let ok = stage_ok(&end.exit, at == last);
                Stage { cmd: name.clone(), status, signal, ok, dur_ns: end.dur_ns }
            })
            .collect();
        let shown = stages.iter().rposition(|stage| !stage.ok).unwrap_or(last);
        let mut stderr = Vec::new();
        let single = finished.stages.len() == 1;
        for end in &finished.stages {
            match end.stderr.held() {
                Some(held) => stderr.extend_from_slice(held),
                // Of what is not in memory both ends stand for the whole.
                None => stderr.extend_from_slice(end.stderr.to_text_lossy().as_bytes()),
            }
        }
        let body = OutcomeBody {
            status: stages[shown].status,
            ok: stages.iter().all(|stage| stage.ok),
            signal: stages[shown].signal.clone(),
            limit: finished.stages.iter().find_map(|end| end.limit.clone()),
            dur_ns: finished.stages.iter().map(|end| end.dur_ns).max().unwrap_or(0),
            pid: Some(finished.stages[last].pid),
            cmd: names[last].clone(),
            stdout: finished.stdout,
            stderr: if single { finished.stages[0].stderr.clone() } else { Bytes::from(stderr) },
            out: if redirected { Out::Value(Value::Null) } else { Out::Stdout },
            stages,
            capture: Some(finished.capture),
            usage: finished.stages.iter().map(|end| end.usage).reduce(Usage::and),
            span: self.span_here(),
            shown: false,
        };
        Outcome::new(body)
    }
}

/// What a head was found to be.
pub(crate) enum Found {
    Program(PathValue),
    /// It exists but cannot be run.
    Refused(ErrorValue),
    Nothing,
}

/// Looks for the program of a head: a path as it is, a bare name on the session's PATH.
pub(crate) fn find_program(machine: &Machine, head: &str) -> Eval<Found> {
    let place = &machine.place;
    let files = machine.session.host.files();
    let check = |path: &PathValue| -> Result<Option<bool>, FileError> {
        match files.meta(At { dir: &place.cwd, path: path.as_bytes() }, true) {
            Ok(meta) if meta.kind == FileKind::File => Ok(Some(meta.executable)),
            Ok(_) => Ok(Some(false)),
            Err(e) if matches!(e.kind, FileErrorKind::CwdGone | FileErrorKind::NotPermitted) => Err(e),
            Err(_) => Ok(None),
        }
    };
    if head.contains('/') {
        let path = join_path(place.cwd.path(), &PathValue::from(head));
        let found = check(&path).map_err(|e| Unwind::from(e.about(head.as_bytes())))?;
        return Ok(match found {
            Some(true) => Found::Program(path),
            Some(false) => Found::Refused(ErrorValue::new(code::PERMISSION, format!("{head}: not an executable file"))),
            None => Found::Nothing,
        });
    }
    if let Some(path) = crate::reef::locate(machine, head)? {
        return Ok(Found::Program(path));
    }
    Ok(on_path(machine, head).map_or(Found::Nothing, Found::Program))
}

/// The first program of a bare name on the session's PATH.
pub(crate) fn on_path(machine: &Machine, head: &str) -> Option<PathValue> {
    let place = &machine.place;
    let search = place.env.get("PATH").cloned().unwrap_or_else(|| (*b"").into());
    for dir in search.split(|b| *b == b':').filter(|_| !search.is_empty()) {
        let dir = if dir.is_empty() { place.cwd.path().clone() } else { PathValue::from(dir) };
        let path = join_path(place.cwd.path(), &join_path(&dir, &PathValue::from(head)));
        // What cannot be looked at is no program; the search goes on.
        let meta = machine.session.host.files().meta(At { dir: &place.cwd, path: path.as_bytes() }, true);
        if meta.is_ok_and(|meta| meta.kind == FileKind::File && meta.executable) {
            return Some(path);
        }
    }
    None
}

fn language_args(language: &Language) -> Vec<Vec<u8>> {
    let text = language.text.as_bytes().to_vec();
    match &*language.tool {
        "sh" | "bash" | "zsh" | "fish" | "python" | "python3" => vec![b"-c".to_vec(), text],
        "node" | "ruby" | "perl" | "lua" | "Rscript" | "osascript" => vec![b"-e".to_vec(), text],
        "php" => vec![b"-r".to_vec(), text],
        "deno" => vec![b"eval".to_vec(), text],
        _ => vec![text],
    }
}

fn exit_parts(exit: &Exit) -> (Option<i64>, Option<Str>) {
    match exit {
        Exit::Status(status) => (Some(*status), None),
        Exit::Signal(name) => (None, Some(name.clone())),
    }
}

/// The argv joined by spaces.
fn command_text(argv: &[Vec<u8>]) -> Str {
    argv.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" ").into()
}

fn start_error(error: &StartError, heads: &[Str], redirect: Option<&PathValue>) -> ErrorValue {
    let head = heads.get(error.stage).map_or("", |head| head);
    let with_text = |what: &str| match &*error.text {
        "" => format!("{head}: {what}"),
        text => format!("{head}: {text}"),
    };
    match error.kind {
        StartErrorKind::NotFound => ErrorValue::new(code::NOT_FOUND, format!("command not found: {head}")),
        StartErrorKind::Permission => ErrorValue::new(code::PERMISSION, with_text("permission denied")),
        StartErrorKind::Denied => ErrorValue::new(code::SPAWN_DENIED, with_text("refused by policy: spawn")),
        StartErrorKind::CwdGone => FileError::new(FileErrorKind::CwdGone, "").about(b""),
        StartErrorKind::Redirect(kind) => {
            FileError::new(kind, error.text.clone()).about(redirect.map_or(b"", PathValue::as_bytes))
        }
        StartErrorKind::Io => ErrorValue::new(code::IO_ERROR, with_text("cannot be started")),
    }
}
