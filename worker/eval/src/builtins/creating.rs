//! `mkdir`, `touch` and `ln`: new names.

use shoal_value::{ErrorValue, Record, Value};

use super::place::{path_list, paths};
use crate::Ctx;
use crate::methods::rows::{MANY, commands, switch};
use crate::registry::{Command, CommandArgs, Done, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// Makes directories; with `-p` also those above them, and an existing one is fine.
    ///
    /// shoal> mkdir -p a/b/c; path("a/b/c").is_dir
    /// true
    /// shoal> mkdir x/y
    /// ! not_found
    mkdir "mkdir [-p|--parents] PATH...": [switch("parents", "p")], Paths, (1, MANY), Outcome, Plain(Types::LIST), Writes, mkdir;

    /// Creates empty files, or sets the time of the last change of existing ones to now.
    ///
    /// shoal> (touch a.txt b.txt).out
    /// [a.txt, b.txt]
    touch "touch PATH...": [], Paths, (1, MANY), Outcome, Plain(Types::LIST), Writes, touch;

    /// A second name for a file, or with `-s` a symbolic link that holds TARGET as it is written.
    ///
    /// shoal> "hi".save("t.txt"); (ln -s t.txt l.txt).out
    /// {target: t.txt, link: l.txt, symbolic: true}
    ln "ln [-s|--symbolic] TARGET LINK": [switch("symbolic", "s")], Paths, (2, 2), Outcome, Plain(Types::RECORD), Links, ln;
};

fn mkdir(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let made = paths(&args.args)?;
    for path in &made {
        ctx.step(1)?;
        ctx.files().make_dir(ctx.at(path), args.on("parents")).map_err(|e| ctx.file_error(&e, path))?;
    }
    Ok(path_list(made).into())
}

fn touch(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let touched = paths(&args.args)?;
    for path in &touched {
        ctx.step(1)?;
        ctx.files().touch(ctx.at(path)).map_err(|e| ctx.file_error(&e, path))?;
    }
    Ok(path_list(touched).into())
}

fn ln(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let symbolic = args.on("symbolic");
    let names = paths(&args.args)?;
    let [target, link] = &*names else {
        return Err(ErrorValue::arg_error("ln needs exactly a target and a link").into());
    };
    if !symbolic {
        // The failure to find the target is about the target, not about the link.
        super::place::own_meta(ctx, target)?;
    }
    ctx.files().link(ctx.at(target), ctx.at(link), symbolic).map_err(|e| ctx.file_error(&e, link))?;
    let record = Record::leaves([
        ("target", target.clone().into()),
        ("link", link.clone().into()),
        ("symbolic", symbolic.into()),
    ]);
    Ok(Value::from(record).into())
}
