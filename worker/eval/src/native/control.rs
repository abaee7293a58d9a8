//! `raise`, `assert`, `parallel`, `exit`.

use shoal_value::{ErrorValue, Value, code};

use crate::Ctx;
use crate::registry::{Args, Command, CommandArgs, Done, Function, Gives, Param, Touches, Types, Words};
use crate::unwind::{Eval, Stop, Unwind};
use crate::vm::downcast;

pub(super) static FUNCTIONS: &[Function] = &[
    Function {
        name: "raise",
        params: &[
            Param::required("msg", Types::STR.or(Types::ERROR)),
            Param::optional("text", Types::STR),
            Param::optional("hint", Types::STR.or(Types::NULL)),
        ],
        gives: Gives::Any,
        touches: Touches::Nothing,
        doc: "Raises an error: `raise(msg)` with code `raised`, `raise(code, msg)` with a code of your own, or a caught \
              error again.\n\nshoal> raise(\"app_down\", \"no answer\") catch e { e.code }\n\"app_down\"",
        run: raise,
    },
    Function {
        name: "assert",
        params: &[Param::required("cond", Types::ANY), Param::optional("msg", Types::ANY)],
        gives: Gives::Plain(Types::NULL),
        touches: Touches::Nothing,
        doc: "Raises `assert_failed` unless the condition holds.\n\nshoal> assert(1 < 2)\nnull",
        run: assert,
    },
    Function {
        name: "parallel",
        params: &[Param::rest("thunks", Types::CLOSURE), Param::optional("settle", Types::BOOL)],
        gives: Gives::Any,
        touches: Touches::Closures,
        doc: "Runs functions at the same time and gives their results in order. The first error is raised after all have \
              finished; with `settle: true` each failure is an error value in the list.\n\n\
              shoal> parallel(() => 1, () => 2)\n[1, 2]",
        run: parallel,
    },
];

pub(super) static COMMANDS: &[Command] = &[exit_row("exit", "exit [N = 0]"), exit_row("quit", "quit [N = 0]")];

const fn exit_row(name: &'static str, synopsis: &'static str) -> Command {
    Command {
        name,
        flags: &[],
        words: Words::Values,
        arity: (0, 1),
        outcome: false,
        synopsis,
        gives: Gives::Plain(Types::NULL),
        touches: Touches::Nothing,
        doc: "Stops the program at once with a status, 0 if none is given.\n\nshoal> exit 3; raise(\"never\")\nnull",
        run: exit,
    }
}

fn raise(_ctx: &mut Ctx<'_>, mut args: Args) -> Eval<Value> {
    let first = args.take(0);
    let (text, hint) = (args.take(1), args.take(2));
    let error = match (first, text) {
        (Value::Error(error), Value::Null) => error,
        (Value::Error(_), _) => return Err(ErrorValue::arg_error("raise(err) takes no further arguments").into()),
        (Value::Str(msg), Value::Null) => ErrorValue::new(code::RAISED, msg),
        (Value::Str(code), Value::Str(msg)) => {
            if !is_code(&code) {
                let text = format!("raise: \"{code}\" is no code: expected lower-case letters, digits and `_`");
                return Err(ErrorValue::arg_error(text).into());
            }
            ErrorValue::new(code, msg)
        }
        _ => return Err(ErrorValue::arg_error("raise needs a message").into()),
    };
    Err(match hint {
        Value::Str(hint) => error.with_hint(hint),
        _ => error,
    }
    .into())
}

fn is_code(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn assert(_ctx: &mut Ctx<'_>, mut args: Args) -> Eval<Value> {
    let cond = args.take(0);
    if crate::ctx::condition(&cond)? {
        return Ok(Value::Null);
    }
    Err(crate::vm::assertion(&shoal_value::render::inline(&cond), &args.take(1)).into())
}

fn parallel(ctx: &mut Ctx<'_>, mut args: Args) -> Eval<Value> {
    let settle = args.is_on(1);
    let mut tasks = Vec::new();
    for thunk in args.take_rest() {
        let Value::Closure(callable) = &thunk else { continue };
        if shoal_value::handle::concrete::<crate::vm::Lambda>(&**callable).is_none() {
            tasks.push(Err(ctx.call(&thunk, &[])));
            continue;
        }
        let lambda = downcast(callable);
        if !lambda.code.params.iter().all(|p| p.has_default) {
            let text = format!("parallel: expected functions without parameters, found {}", callable.repr());
            return Err(ErrorValue::arg_error(text).into());
        }
        tasks.push(Ok(ctx.machine().start_thunk(lambda)?));
    }
    let mut results = Vec::new();
    let mut first: Option<Unwind> = None;
    for task in tasks {
        let result = match task {
            Err(done) => done,
            Ok(task) => ctx.machine().join_thunk(&task),
        };
        match result {
            Ok(value) => results.push(value),
            Err(Unwind::Raise(error)) if settle => results.push(Value::Error(error)),
            Err(unwind) => drop(first.get_or_insert(unwind)),
        }
    }
    match first {
        Some(unwind) => Err(unwind),
        None => Ok(Value::list(results)?),
    }
}

fn exit(_ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let status = match args.args.first() {
        None => 0,
        Some(Value::Int(status)) => *status,
        Some(Value::Str(text)) => shoal_value::convert::parse_int(text)?,
        Some(other) => {
            return Err(ErrorValue::arg_error(format!("exit: expected int, found {}", other.type_name())).into());
        }
    };
    Err(Stop::Exit(status).into())
}
