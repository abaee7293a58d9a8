//! Methods of tasks, and `jobs`.

use shoal_value::{Leaf, Record, Table, Value};

use crate::Ctx;
use crate::registry::{Args, Command, CommandArgs, Done, Gives, Method, Touches, Types, Words};
use crate::task::{Task, task_of};
use crate::unwind::Eval;
use std::sync::Arc;

const fn row(name: &'static str, doc: &'static str, run: fn(&mut Ctx<'_>, Value, Args) -> Eval<Value>) -> Method {
    Method { doc, gives: Gives::Any, ..Method::new(name, Types::TASK, run) }
}

pub(super) static METHODS: &[Method] = &[
    row(
        "await",
        "Waits for the end of the task: its result, or its error raised. It can be awaited again.\n\n\
         shoal> (spawn { 1 + 1 }).await()\n2",
        wait,
    ),
    row("wait", "The same as `await`.\n\nshoal> (spawn { 1 + 1 }).wait()\n2", wait),
    row(
        "cancel",
        "Asks the task to end; its running programs are interrupted.\n\nshoal> let t = spawn { sleep 1m }; t.cancel()\nnull",
        |_ctx, recv, _args| with_task(&recv, |task| task.cancel()),
    ),
    row(
        "is_done",
        "Whether the task has ended in any way.\n\nshoal> let t = spawn { 1 }; t.await(); t.is_done()\ntrue",
        |_ctx, recv, _args| match &recv {
            Value::Task(task) => Ok(Value::Bool(task.is_done())),
            _ => Ok(Value::Null),
        },
    ),
    row(
        "is_suspended",
        "Whether the task's programs are stopped.\n\nshoal> let t = spawn { 1 }; t.is_suspended()\nfalse",
        |_ctx, recv, _args| match &recv {
            Value::Task(task) => Ok(Value::Bool(task_of(task)?.is_suspended())),
            _ => Ok(Value::Null),
        },
    ),
    row(
        "suspend",
        "Stops the task's running programs; gives the task.\n\nshoal> let t = spawn { sleep 1m }; t.suspend().is_suspended()\ntrue",
        |ctx, recv, _args| suspend(ctx, recv, true),
    ),
    row(
        "resume",
        "Continues the task's stopped programs; gives the task.\n\nshoal> let t = spawn { sleep 1m }; t.suspend().resume().is_suspended()\nfalse",
        |ctx, recv, _args| suspend(ctx, recv, false),
    ),
];

pub(super) static COMMANDS: &[Command] = &[Command {
    name: "jobs",
    flags: &[],
    words: Words::Values,
    arity: (0, 0),
    outcome: false,
    synopsis: "jobs",
    gives: Gives::Plain(Types::TABLE),
    touches: Touches::Nothing,
    doc: "The tasks of this session: `{id, desc, state, started}`.\n\nshoal> jobs.len()\n0",
    run: jobs,
}];

fn with_task(recv: &Value, act: impl FnOnce(&Arc<Task>)) -> Eval<Value> {
    if let Value::Task(handle) = recv {
        act(&task_of(handle)?);
    }
    Ok(Value::Null)
}

fn wait(ctx: &mut Ctx<'_>, recv: Value, _args: Args) -> Eval<Value> {
    let Value::Task(handle) = &recv else { return Ok(Value::Null) };
    task_of(handle)?.wait(ctx.clock(), ctx.cancel())
}

fn suspend(ctx: &mut Ctx<'_>, recv: Value, stop: bool) -> Eval<Value> {
    with_task(&recv, |task| {
        use shoal_value::TaskHandle;
        task.set_suspended(stop);
        let processes = ctx.host().processes();
        if stop { processes.suspend(task.id()) } else { processes.resume(task.id()) }
    })?;
    Ok(recv)
}

fn jobs(ctx: &mut Ctx<'_>, _args: CommandArgs) -> Eval<Done> {
    use shoal_value::TaskHandle;
    let tasks = ctx.peek().session.tasks.list();
    let rows = tasks.iter().map(|task| {
        Record::leaves([
            ("id", Leaf::from(i64::try_from(task.id()).unwrap_or(i64::MAX))),
            ("desc", task.desc().clone().into()),
            ("state", task.state().into()),
            ("started", task.started().clone().into()),
        ])
    });
    let table = Table::with_columns(["id", "desc", "state", "started"], rows.collect())?;
    Ok(Value::Table(table).into())
}
