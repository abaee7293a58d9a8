//! `ls` and `stat`: files as records.

use std::sync::Arc;

use shoal_value::record::Shape;
use shoal_value::{PathValue, Record, Table, Value};

use super::place::{child, last_part, own_meta, paths, target_meta};
use crate::Ctx;
use crate::host::{FileErrorKind, FileKind, Meta};
use crate::methods::path::{lexical, modified};
use crate::methods::rows::{MANY, commands, switch};
use crate::registry::{Command, CommandArgs, Done, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// The children of directories, and files themselves, as a table `{name, type, size, modified, path}` sorted by path.
    /// Names with a leading dot are shown only with `-a`. Without a path, the working directory.
    ///
    /// shoal> touch b.txt a.txt .hidden; ls.map(.name)
    /// ["a.txt", "b.txt"]
    /// shoal> mkdir sub; touch f.txt; (ls .).where(.type == "dir").map(.name)
    /// ["sub"]
    ls "ls [-a|--all] [PATH...]": [switch("all", "a")], Paths, (0, MANY), Outcome, Plain(Types::TABLE), Reads, ls;

    /// What is known about each path: one record `{name, type, size, modified, path}`, or a table for several. A symbolic
    /// link is not followed.
    ///
    /// shoal> "hi".save("f.txt"); (stat f.txt).size
    /// 2b
    /// shoal> stat nope.txt
    /// ! not_found
    stat "stat PATH...": [], Paths, (1, MANY), Outcome, Plain(Types::RECORD.or(Types::TABLE)), Reads, stat;
};

const COLUMNS: [&str; 5] = ["name", "type", "size", "modified", "path"];

fn ls(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let mut targets = paths(&args.args)?;
    if targets.is_empty() && !args.unmatched {
        targets.push(".".into());
    }
    let shape = Shape::new(COLUMNS);
    let mut rows = Vec::new();
    for target in &targets {
        if target_meta(ctx, target)?.is_some_and(|meta| meta.kind == FileKind::Dir) {
            list_children(ctx, target, args.on("all"), &shape, &mut rows)?;
        } else {
            let meta = own_meta(ctx, target)?;
            rows.push(row(ctx, &shape, target, &own_name(ctx, target), &meta)?);
        }
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Ok(Value::from(Table::with_columns(COLUMNS, rows)?).into())
}

/// A row with the path it is sorted by.
type Row = (PathValue, Record);

fn list_children(
    ctx: &mut Ctx<'_>,
    dir: &PathValue,
    hidden: bool,
    shape: &Arc<Shape>,
    rows: &mut Vec<Row>,
) -> Eval<()> {
    let entries = ctx.files().list(ctx.at(dir), ctx.cancel()).map_err(|e| ctx.file_error(&e, dir))?;
    for entry in entries.into_iter().filter(|entry| hidden || !entry.name.starts_with(b".")) {
        ctx.step(1)?;
        let path = child(dir, &entry.name);
        match ctx.files().meta(ctx.at(&path), false) {
            Ok(meta) => rows.push(row(ctx, shape, &path, &entry.name, &meta)?),
            // It was removed after the directory was read.
            Err(e) if e.kind == FileErrorKind::NotFound => {}
            Err(e) => return Err(ctx.file_error(&e, &path)),
        }
    }
    Ok(())
}

fn row(ctx: &Ctx<'_>, shape: &Arc<Shape>, path: &PathValue, name: &[u8], meta: &Meta) -> Eval<Row> {
    let path = plain(&ctx.absolute(path));
    let values = vec![
        Value::str(String::from_utf8_lossy(name)),
        Value::str(meta.kind.name()),
        Value::Size(meta.size),
        modified(ctx, meta),
        Value::Path(path.clone()),
    ];
    Ok((path, Record::with_shape(shape, values)?))
}

/// Name of a file given as an argument, also if it is given as `.`.
fn own_name(ctx: &Ctx<'_>, path: &PathValue) -> Vec<u8> {
    last_part(&plain(&ctx.absolute(path)))
}

/// The path without `.` parts and repeated slashes. `..` stays: what it leads to depends on links.
fn plain(path: &PathValue) -> PathValue {
    use std::os::unix::ffi::OsStrExt;
    let plain: std::path::PathBuf = lexical(path).components().collect();
    plain.as_os_str().as_bytes().into()
}

fn stat(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let shape = Shape::new(COLUMNS);
    let mut rows = Vec::new();
    for path in paths(&args.args)? {
        ctx.step(1)?;
        let meta = own_meta(ctx, &path)?;
        rows.push(row(ctx, &shape, &path, &own_name(ctx, &path), &meta)?.1);
    }
    let out = match &*rows {
        [only] => Value::Record(only.clone()),
        _ => Table::with_columns(COLUMNS, rows)?.into(),
    };
    Ok(out.into())
}
