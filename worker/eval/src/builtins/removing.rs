//! `rm`.

use shoal_value::{ErrorValue, PathValue, Record, Value, code};

use super::place::{path_list, paths};
use crate::Ctx;
use crate::host::{FileErrorKind, FileKind, Meta};
use crate::methods::rows::{MANY, commands, switch};
use crate::registry::{Command, CommandArgs, Done, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// Moves files and directories to the trash, from which `undo` brings them back: a list of `{path, trash}`. With
    /// `--permanent` they are deleted, a directory only with `-r`: a list of paths. With `-f` a missing path is no error.
    ///
    /// shoal> "x".save("f.txt"); rm f.txt; path("f.txt").exists
    /// false
    /// shoal> "x".save("f.txt"); (rm --permanent f.txt).out
    /// [f.txt]
    /// shoal> rm
    /// ! no_matches
    rm "rm [-r|--recursive] [-f|--force] [--permanent] PATH...":
        [switch("recursive", "rR"), switch("force", "f"), switch("permanent", "")],
        Paths, (0, MANY), Outcome, Plain(Types::LIST), Deletes, rm;
};

fn rm(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let targets = paths(&args.args)?;
    if targets.is_empty() {
        let error = ErrorValue::new(code::NO_MATCHES, "rm: no paths given, or the pattern matches nothing");
        return Err(error.with_hint("check first what matches: `glob(\"*.tmp\").expand()`").into());
    }
    let present = present(ctx, targets, args.on("force"))?;
    if args.on("permanent") { delete(ctx, present, args.on("recursive")) } else { trash(ctx, present) }
}

/// The paths that exist. Nothing is removed before all of them are known to.
fn present(ctx: &Ctx<'_>, targets: Vec<PathValue>, force: bool) -> Eval<Vec<(PathValue, Meta)>> {
    let mut present = Vec::new();
    for path in targets {
        match ctx.files().meta(ctx.at(&path), false) {
            Ok(meta) => present.push((path, meta)),
            Err(e) if e.kind == FileErrorKind::NotFound && force => {}
            Err(e) => return Err(ctx.file_error(&e, &path)),
        }
    }
    Ok(present)
}

fn trash(ctx: &mut Ctx<'_>, targets: Vec<(PathValue, Meta)>) -> Eval<Done> {
    let mut moved = Vec::new();
    for (path, _) in targets {
        ctx.step(1)?;
        let trash = ctx.files().trash(ctx.at(&path), ctx.cancel()).map_err(|e| ctx.file_error(&e, &path))?;
        moved.push(Value::Record(Record::leaves([("path", path.into()), ("trash", trash.into())])));
    }
    Ok(Value::list(moved)?.into())
}

fn delete(ctx: &mut Ctx<'_>, targets: Vec<(PathValue, Meta)>, recursive: bool) -> Eval<Done> {
    if let Some((dir, _)) = targets.iter().find(|(_, meta)| meta.kind == FileKind::Dir && !recursive) {
        let error = ErrorValue::new(code::IS_DIR, format!("{}: is a directory", dir.display()));
        return Err(error.with_hint("delete a directory with `rm -r --permanent`").into());
    }
    let mut deleted = Vec::new();
    for (path, _) in targets {
        ctx.step(1)?;
        ctx.files().remove(ctx.at(&path), recursive, ctx.cancel()).map_err(|e| ctx.file_error(&e, &path))?;
        deleted.push(path);
    }
    Ok(path_list(deleted).into())
}
