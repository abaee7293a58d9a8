//! `cp` and `mv`.

use shoal_value::{ErrorValue, PathValue};

use super::place::{child, own_meta, path_list, paths, placed, target_meta};
use crate::Ctx;
use crate::host::{FileError, FileErrorKind, FileKind, Meta};
use crate::methods::path::meta;
use crate::methods::rows::{MANY, commands, switch};
use crate::registry::{Command, CommandArgs, Done, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// Copies files to DST, or into it if it is a directory, overwriting. Directories are copied with `-r`. Gives the paths
    /// written.
    ///
    /// shoal> "hi".save("a.txt"); (cp a.txt b.txt).out
    /// [b.txt]
    /// shoal> mkdir d; cp d e
    /// ! arg_error
    cp "cp [-r|-R|--recursive] SRC... DST": [switch("recursive", "rR")], Paths, (2, MANY), Outcome, Plain(Types::LIST), Copies, cp;

    /// Renames files or directories to DST, or moves them into it if it is a directory, overwriting files. Gives the new
    /// paths.
    ///
    /// shoal> "x".save("a.txt"); mkdir d; (mv a.txt d).out
    /// [d/a.txt]
    mv "mv SRC... DST": [], Paths, (2, MANY), Outcome, Plain(Types::LIST), Moves, mv;
};

/// Directories inside directories that are copied; a tree made deeper than this while it is copied has an end.
const MAX_LEVELS: usize = 1_000;

fn cp(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let recursive = args.on("recursive");
    let mut written = Vec::new();
    for (src, dst) in placed(ctx, paths(&args.args)?)? {
        let from = meta(ctx, &src)?;
        if from.kind == FileKind::Dir && !recursive {
            let error = ErrorValue::arg_error(format!("cp: {} is a directory", src.display()));
            return Err(error.with_hint("copy a directory with `cp -r`").into());
        }
        let target = target_meta(ctx, &dst)?;
        if target.is_some_and(|to| to.id == from.id) {
            let msg = format!("cp: {} and {} are the same file", src.display(), dst.display());
            return Err(ErrorValue::arg_error(msg).into());
        }
        if from.kind == FileKind::Dir {
            refuse_inside(ctx, &src, &dst, &from)?;
        }
        copy(ctx, &src, &dst, &from, 0)?;
        written.push(dst);
    }
    Ok(path_list(written).into())
}

/// A directory cannot be copied into itself: the copy would be part of what is copied.
fn refuse_inside(ctx: &Ctx<'_>, src: &PathValue, dst: &PathValue, from: &Meta) -> Eval<()> {
    let full = ctx.absolute(dst);
    for above in crate::methods::path::lexical(&full).ancestors().skip(1) {
        use std::os::unix::ffi::OsStrExt;
        let above = PathValue::from(above.as_os_str().as_bytes());
        if target_meta(ctx, &above)?.is_some_and(|meta| meta.id == from.id) {
            let msg = format!("cp: {} is inside {}", dst.display(), src.display());
            return Err(ErrorValue::arg_error(msg).into());
        }
    }
    Ok(())
}

fn copy(ctx: &mut Ctx<'_>, src: &PathValue, dst: &PathValue, from: &Meta, level: usize) -> Eval<()> {
    ctx.step(1)?;
    match from.kind {
        FileKind::File => ctx.files().copy(ctx.at(src), ctx.at(dst), ctx.cancel()).map_err(|e| ctx.file_error(&e, dst)),
        FileKind::Dir => copy_dir(ctx, src, dst, level),
        FileKind::Symlink => copy_link(ctx, src, dst),
        FileKind::Other => {
            let error = FileError::new(FileErrorKind::Io, "it is neither a file nor a directory nor a link");
            Err(ctx.file_error(&error, src))
        }
    }
}

fn copy_dir(ctx: &mut Ctx<'_>, src: &PathValue, dst: &PathValue, level: usize) -> Eval<()> {
    if level >= MAX_LEVELS {
        let error = FileError::new(FileErrorKind::Io, format!("directories are nested deeper than {MAX_LEVELS}"));
        return Err(ctx.file_error(&error, src));
    }
    match target_meta(ctx, dst)? {
        Some(meta) if meta.kind == FileKind::Dir => {}
        _ => ctx.files().make_dir(ctx.at(dst), false).map_err(|e| ctx.file_error(&e, dst))?,
    }
    let mut entries = ctx.files().list(ctx.at(src), ctx.cancel()).map_err(|e| ctx.file_error(&e, src))?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in entries {
        let (from, to) = (child(src, &entry.name), child(dst, &entry.name));
        let kind = own_meta(ctx, &from)?;
        copy(ctx, &from, &to, &kind, level + 1)?;
    }
    Ok(())
}

/// A link inside a copied directory stays a link; one that is in the way is replaced.
fn copy_link(ctx: &mut Ctx<'_>, src: &PathValue, dst: &PathValue) -> Eval<()> {
    let target = ctx.files().read_link(ctx.at(src)).map_err(|e| ctx.file_error(&e, src))?;
    let link = |ctx: &Ctx<'_>| ctx.files().link(ctx.at(&target), ctx.at(dst), true);
    match link(ctx) {
        Err(e) if e.kind == FileErrorKind::Exists => {
            ctx.files().remove(ctx.at(dst), false, ctx.cancel()).map_err(|e| ctx.file_error(&e, dst))?;
            link(ctx).map_err(|e| ctx.file_error(&e, dst))
        }
        other => other.map_err(|e| ctx.file_error(&e, dst)),
    }
}

fn mv(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let mut moved = Vec::new();
    for (src, dst) in placed(ctx, paths(&args.args)?)? {
        ctx.step(1)?;
        let from = own_meta(ctx, &src)?;
        let onto_itself = ctx.files().meta(ctx.at(&dst), false).is_ok_and(|to| to.id == from.id);
        if !onto_itself {
            let renamed = ctx.files().rename(ctx.at(&src), ctx.at(&dst), ctx.cancel());
            // The source is there, so what is missing is on the way to the target.
            renamed.map_err(|e| ctx.file_error(&e, &dst))?;
        }
        moved.push(dst);
    }
    Ok(path_list(moved).into())
}
