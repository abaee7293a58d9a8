//! `pwd`, `cd` and the directory stack. They change the session, so they work at the top level only.

use std::sync::Arc;

use shoal_value::{ErrorValue, List, PathValue, Value, code};

use super::place::paths;
use crate::Ctx;
use crate::host::Dir;
use crate::methods::rows::commands;
use crate::registry::{Command, CommandArgs, Done, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// The working directory.
    ///
    /// shoal> pwd.is_dir
    /// true
    pwd "pwd": [], Values, (0, 0), Bare, Plain(Types::PATH), Nothing,
        |ctx, _| Ok(Value::Path(ctx.cwd().path().clone()).into());

    /// Makes PATH the working directory: without one the home directory, with `-` the previous one. Gives its path. Inside a
    /// function, use `with cwd: path { }`.
    ///
    /// shoal> mkdir sub; cd sub; pwd.name
    /// "sub"
    /// shoal> cd nope
    /// ! not_found
    cd "cd [PATH | -]": [], Paths, (0, 1), Bare, Plain(Types::PATH), Session, cd;

    /// Makes PATH the working directory and keeps the present one on the directory stack; without PATH, swaps the working
    /// directory with the top of the stack. Gives the stack.
    ///
    /// shoal> mkdir a; pushd a; dirs.len()
    /// 2
    pushd "pushd [PATH]": [], Paths, (0, 1), Bare, Plain(Types::LIST), Session, pushd;

    /// Goes back to the directory on top of the stack and takes it off. Gives the stack.
    ///
    /// shoal> let start = pwd; mkdir a; pushd a; popd; start == pwd
    /// true
    /// shoal> popd
    /// ! custom
    popd "popd": [], Values, (0, 0), Bare, Plain(Types::LIST), Session, |ctx, _| popd(ctx);

    /// The directory stack: the working directory, then those that `popd` goes back to.
    ///
    /// shoal> dirs.first() == pwd
    /// true
    dirs "dirs": [], Values, (0, 0), Bare, Plain(Types::LIST), Nothing, |ctx, _| Ok(stack_list(ctx).into());
};

fn cd(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    ctx.top_level("cd")?;
    let dir = match &*paths(&args.args)? {
        [] => open(ctx, &home(ctx)?)?,
        [previous, ..] if previous.as_bytes() == b"-" => previous_dir(ctx)?,
        [path, ..] => open(ctx, path)?,
    };
    ctx.enter_dir(dir)?;
    Ok(Value::Path(ctx.cwd().path().clone()).into())
}

fn open(ctx: &Ctx<'_>, path: &PathValue) -> Eval<Arc<dyn Dir>> {
    ctx.files().open_dir(ctx.at(path)).map_err(|e| ctx.file_error(&e, path))
}

fn home(ctx: &Ctx<'_>) -> Result<PathValue, ErrorValue> {
    match ctx.env().get("HOME") {
        Some(home) if !home.is_empty() => Ok(PathValue::from(&**home)),
        _ => Err(ErrorValue::new(code::CUSTOM, "cd: the session has no HOME to go to")
            .with_hint("name a directory: `cd PATH`")),
    }
}

fn previous_dir(ctx: &Ctx<'_>) -> Result<Arc<dyn Dir>, ErrorValue> {
    ctx.place().previous.clone().ok_or_else(|| {
        ErrorValue::new(code::CUSTOM, "cd -: there is no previous directory (OLDPWD is not set)")
            .with_hint("`cd PATH` first; then `cd -` goes back")
    })
}

fn pushd(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    ctx.top_level("pushd")?;
    let (mut stack, here) = (ctx.place().stack.clone(), ctx.cwd().clone());
    let dir = match paths(&args.args)?.first() {
        Some(path) => open(ctx, path)?,
        None => stack.pop().ok_or_else(|| {
            ErrorValue::new(code::CUSTOM, "pushd: nothing to swap with, the directory stack is empty")
                .with_hint("name a directory: `pushd PATH`")
        })?,
    };
    stack.push(here);
    move_to(ctx, "pushd", dir, stack)
}

fn popd(ctx: &mut Ctx<'_>) -> Eval<Done> {
    ctx.top_level("popd")?;
    let mut stack = ctx.place().stack.clone();
    let dir = stack.pop().ok_or_else(|| ErrorValue::new(code::CUSTOM, "popd: the directory stack is empty"))?;
    move_to(ctx, "popd", dir, stack)
}

fn move_to(ctx: &mut Ctx<'_>, command: &str, dir: Arc<dyn Dir>, stack: Vec<Arc<dyn Dir>>) -> Eval<Done> {
    ctx.enter_dir(dir)?;
    ctx.set_dir_stack(command, stack)?;
    Ok(stack_list(ctx).into())
}

/// The working directory, then the stack from the top.
fn stack_list(ctx: &Ctx<'_>) -> Value {
    let below = ctx.place().stack.iter().rev();
    List::leaves(std::iter::once(ctx.cwd()).chain(below).map(|dir| dir.path().clone())).into()
}
