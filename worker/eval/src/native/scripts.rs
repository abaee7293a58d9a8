//! `source` and `run`.

use shoal_value::{ErrorValue, PathValue, Str, Value, code};

use crate::Ctx;
use crate::command::{Found, find_program};
use crate::host::{Input, Output, Program};
use crate::machine::Machine;
use crate::module::script_args;
use crate::registry::{Args, Command, CommandArgs, Done, Function, Gives, Param, Touches, Types, Words};
use crate::unwind::Eval;

pub(super) static FUNCTIONS: &[Function] = &[Function {
    name: "run",
    params: &[Param::required("target", Types::STR.or(Types::PATH)), Param::rest("args", Types::ANY)],
    gives: Gives::Any,
    touches: Touches::Opaque,
    doc: "Runs a script by its path or a program by its name, past builtins, functions and adapters.\n\n\
          shoal> \"args.len()\".save(\"s.shl\"); run(\"./s.shl\", \"a\", \"b\")\n2",
    run: |ctx, mut args: Args| {
        let target = args.take(0);
        let rest = args.take_rest();
        run(ctx, target, rest)
    },
}];

pub(super) static COMMANDS: &[Command] = &[
    Command {
        name: "source",
        flags: &[],
        words: Words::Paths,
        arity: (1, 1),
        outcome: false,
        synopsis: "source PATH",
        gives: Gives::Any,
        touches: Touches::Opaque,
        doc: "Runs a file in the scope at hand and gives its last value.\n\n\
              shoal> \"let x = 4\".save(\"s.shl\"); source s.shl; x\n4",
        run: |ctx, args: CommandArgs| match args.args.first() {
            Some(Value::Path(path)) => {
                let path = path.clone();
                ctx.machine().source_file(&path).map(Done::from)
            }
            _ => Err(ErrorValue::arg_error("source needs a path").into()),
        },
    },
    Command {
        name: "run",
        flags: &[],
        words: Words::Values,
        arity: (1, usize::MAX),
        outcome: false,
        synopsis: "run TARGET [ARG...]",
        gives: Gives::Any,
        touches: Touches::Opaque,
        doc: "Runs a script by its path or a program by its name, past builtins, functions and adapters.\n\n\
              shoal> \"args\".save(\"s.shl\"); run ./s.shl a b\n[\"a\", \"b\"]",
        run: |ctx, args: CommandArgs| {
            let mut args = args.args.into_iter();
            let target = args.next().unwrap_or(Value::Null);
            run(ctx, target, args.collect()).map(Done::from)
        },
    },
];

/// Programs that run files of an extension.
const RUNNERS: &[(&str, &[&str])] = &[
    ("sh", &["sh"]),
    ("py", &["python3"]),
    ("js", &["node"]),
    ("ts", &["deno", "run"]),
    ("rb", &["ruby"]),
    ("lua", &["lua"]),
    ("rs", &["rust-script"]),
];

fn run(ctx: &mut Ctx<'_>, target: Value, args: Vec<Value>) -> Eval<Value> {
    let path = match &target {
        Value::Str(text) => PathValue::from(&*ctx.machine().expand_home(text)?),
        Value::Path(path) => path.clone(),
        other => {
            return Err(
                ErrorValue::type_error(format!("run: expected str or path, found {}", other.type_name())).into()
            );
        }
    };
    let text: Str = path.display().into();
    let extension = text.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ext)| ext.to_owned());
    let runner = match extension.as_deref() {
        Some(extension) => runner_of(ctx.peek(), extension)?,
        None => None,
    };
    let meta = ctx.files().meta(ctx.at(&path), true).ok();
    let exists = meta.is_some();
    let is_script = text.contains('/') || text.starts_with(['.', '~']) || runner.is_some() && exists;
    if !is_script {
        return program(ctx.machine(), &text, &[], args);
    }
    match (runner, exists) {
        (Some(_), false) => Err(ErrorValue::new(code::NOT_FOUND, format!("{text}: no such file")).into()),
        (Some(words), true) if words.is_empty() => {
            let args = script_args(ctx, args)?;
            ctx.machine().run_script(&path, args)
        }
        (Some(words), true) => {
            let words: Vec<Str> = words.into_iter().chain([text]).collect();
            program(ctx.machine(), &words[0], &words[1..], args)
        }
        (None, true) => {
            let Some(interpreter) = interpreter(ctx, &path)? else { return Err(no_runner(&text).into()) };
            let file: Str = if text.contains('/') { text } else { format!("./{text}").into() };
            if meta.is_some_and(|meta| meta.executable) {
                return program(ctx.machine(), &file, &[], args);
            }
            let words: Vec<Str> = interpreter.into_iter().chain([file]).collect();
            program(ctx.machine(), &words[0], &words[1..], args)
        }
        (None, false) => Err(no_runner(&text).into()),
    }
}

fn no_runner(text: &str) -> ErrorValue {
    ErrorValue::new(code::RUNNER_NOT_FOUND, format!("{text}: no way to run this file"))
        .with_hint("give it an extension with a runner (shl, sh, py, js, ...) or a first line `#!`")
}

/// The words before the file, of a manifest before the usual ones; none for a script of the language itself.
fn runner_of(machine: &Machine, extension: &str) -> Eval<Option<Vec<Str>>> {
    if extension == "shl" {
        return Ok(Some(Vec::new()));
    }
    let usual = || RUNNERS.iter().find(|(known, _)| *known == extension).map(|(_, words)| *words);
    let usual = || usual().map(|words| words.iter().map(|word| Str::from(*word)).collect());
    Ok(crate::reef::runner(machine, extension)?.or_else(usual))
}

/// The words of the first line `#!` of a file: a program and at most one argument, as the system reads them.
fn interpreter(ctx: &Ctx<'_>, path: &PathValue) -> Eval<Option<Vec<Str>>> {
    use std::io::Read;
    /// Longest first line that Linux reads.
    const LONGEST: u64 = 256;
    let file = ctx.files().open(ctx.at(path), ctx.cancel()).map_err(|e| ctx.file_error(&e, path))?;
    let mut start = Vec::new();
    let read = file.take(LONGEST).read_to_end(&mut start);
    let text = String::from_utf8_lossy(&start);
    let Some(line) = text.strip_prefix("#!").and_then(|text| text.lines().next()).filter(|_| read.is_ok()) else {
        return Ok(None);
    };
    let words: Vec<Str> = line.trim().splitn(2, char::is_whitespace).map(|word| Str::from(word.trim())).collect();
    Ok(Some(words).filter(|words| !words[0].is_empty()))
}

/// Runs a program with values as its arguments; its outcome.
pub(crate) fn run_program(machine: &mut Machine, head: &Str, args: Vec<Value>) -> Eval<Value> {
    program(machine, head, &[], args)
}

fn program(machine: &mut Machine, head: &Str, before: &[Str], args: Vec<Value>) -> Eval<Value> {
    let path = match find_program(machine, head)? {
        Found::Program(path) => path,
        Found::Refused(error) => return Err(error.into()),
        Found::Nothing => return Err(machine.command_not_found(head).into()),
    };
    let mut argv = vec![head.as_bytes().to_vec()];
    argv.extend(before.iter().map(|word| word.as_bytes().to_vec()));
    for arg in &args {
        crate::command::push_arguments(machine, arg, &mut argv)?;
    }
    let env = machine.place.env.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect();
    machine.launch(vec![Program { path, argv, env }], Input::Null, Output::Capture)
}
