//! Methods of path. Those without arguments are fields too.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use shoal_value::{DateTime, ErrorValue, MAX_TEXT, PathValue, Str, Value, code};

use super::rows::{Checked, PATH_LIKE, methods, need};
use super::text::lines_of;
use crate::Ctx;
use crate::ctx::join_path;
use crate::host::{FileKind, Meta};
use crate::registry::{Method, Types};
use crate::unwind::Eval;

const PATH: Types = Types::PATH;
const TEXT_OR_NULL: Types = Types::STR.or(Types::NULL);

pub(super) const METHODS: &[Method] = methods! {
    /// Its last part, or null.
    ///
    /// shoal> path("sub/b.log").name
    /// "b.log"
    name: PATH, [], Plain(TEXT_OR_NULL), Pure, |recv, _| Ok(part(lexical(path(&recv)?).file_name()));

    /// Its last part without the extension, or null.
    ///
    /// shoal> path("sub/b.log").stem
    /// "b"
    stem: PATH, [], Plain(TEXT_OR_NULL), Pure, |recv, _| Ok(part(lexical(path(&recv)?).file_stem()));

    /// Its extension without the dot, or null.
    ///
    /// shoal> path("README").ext
    /// null
    ext: PATH, [], Plain(TEXT_OR_NULL), Pure, |recv, _| Ok(part(lexical(path(&recv)?).extension()));

    /// The directory it is in; null for a bare name and for the root.
    ///
    /// shoal> path("a/b/c.txt").parent
    /// a/b
    parent: PATH, [], Plain(PATH.or(Types::NULL)), Pure, |recv, _| {
        let parent = lexical(path(&recv)?).parent().map(|p| p.as_os_str().as_bytes());
        Ok(parent.filter(|p| !p.is_empty()).map_or(Value::Null, |p| Value::Path(p.into())))
    };

    /// A path below it. An absolute argument is the result itself.
    ///
    /// shoal> path("a").join("b.txt")
    /// a/b.txt
    join: PATH, [need("part", PATH_LIKE)], Plain(PATH), Pure, |recv, args| {
        let (base, part) = (path(&recv)?, path_like(args.value_at(0))?);
        Ok(Value::Path(if base.as_bytes().is_empty() { part } else { join_path(base, &part) }))
    };

    /// The path from the root: the working directory joined with it.
    ///
    /// shoal> path("/tmp/x.txt").abs
    /// /tmp/x.txt
    abs: PATH, [], Plain(PATH), Nothing, |ctx, recv, _| Ok(Value::Path(ctx.absolute(path(&recv)?)));

    /// Whether there is a file or directory of that name.
    ///
    /// shoal> path("nope.txt").exists
    /// false
    exists: PATH, [], Plain(Types::BOOL), Reads, |ctx, recv, _| Ok(Value::Bool(is_kind(ctx, &recv, |_| true)?));

    /// Whether it is a directory.
    ///
    /// shoal> mkdir d; path("d").is_dir
    /// true
    is_dir: PATH, [], Plain(Types::BOOL), Reads,
        |ctx, recv, _| Ok(Value::Bool(is_kind(ctx, &recv, |meta| meta.kind == FileKind::Dir)?));

    /// Whether it is a regular file.
    ///
    /// shoal> touch f.txt; path("f.txt").is_file
    /// true
    is_file: PATH, [], Plain(Types::BOOL), Reads,
        |ctx, recv, _| Ok(Value::Bool(is_kind(ctx, &recv, |meta| meta.kind == FileKind::File)?));

    /// Length of the file.
    ///
    /// shoal> "hello".save("f.txt"); path("f.txt").size
    /// 5b
    /// shoal> path("nope.txt").size
    /// ! not_found
    size: PATH, [], Plain(Types::SIZE), Reads, |ctx, recv, _| Ok(Value::Size(meta(ctx, path(&recv)?)?.size));

    /// Time of the last change, or null if the file system keeps none.
    ///
    /// shoal> touch f.txt; path("f.txt").modified <= now
    /// true
    modified: PATH, [], Plain(Types::DATETIME.or(Types::NULL)), Reads,
        |ctx, recv, _| Ok(modified(ctx, &meta(ctx, path(&recv)?)?));

    /// The contents as text. What is not UTF-8 is `utf8_error`.
    ///
    /// shoal> "hello".save("f.txt"); path("f.txt").read
    /// "hello"
    read: PATH, [], Plain(Types::STR), Reads, |ctx, recv, _| Ok(Value::Str(read_text(ctx, path(&recv)?)?));

    /// The contents as bytes.
    ///
    /// shoal> "hello".save("f.txt"); path("f.txt").read_bytes
    /// bytes(5b)
    read_bytes: PATH, [], Plain(Types::BYTES), Reads,
        |ctx, recv, _| Ok(Value::Bytes(read_file(ctx, path(&recv)?)?.into()));

    /// The lines of the file, as `str.lines` gives them.
    ///
    /// shoal> "a\r\nb\n".save("f.txt"); path("f.txt").lines
    /// ["a", "b"]
    lines: PATH, [], Plain(Types::LIST), Reads, |ctx, recv, _| Ok(lines_of(&read_text(ctx, path(&recv)?)?).into());
};

fn path(value: &Value) -> Result<&PathValue, ErrorValue> {
    match value {
        Value::Path(path) => Ok(path),
        other => Err(ErrorValue::type_error(format!("expected path, found {}", other.type_name()))),
    }
}

/// A str or path as a path.
pub(crate) fn path_like(value: &Value) -> Result<PathValue, ErrorValue> {
    match value {
        Value::Path(path) => Ok(path.clone()),
        Value::Str(text) => Ok(PathValue::from(&**text)),
        other => Err(ErrorValue::type_error(format!("expected str or path, found {}", other.type_name()))),
    }
}

/// The path for taking apart. Nothing is looked up.
pub(crate) fn lexical(path: &PathValue) -> &Path {
    Path::new(OsStr::from_bytes(path.as_bytes()))
}

fn part(part: Option<&OsStr>) -> Value {
    part.map_or(Value::Null, |part| Value::str(part.to_string_lossy()))
}

/// Metadata of the file a path leads to.
pub(crate) fn meta(ctx: &Ctx<'_>, path: &PathValue) -> Eval<Meta> {
    ctx.files().meta(ctx.at(path), true).map_err(|e| ctx.file_error(&e, path))
}

/// Time of the last change in the system zone.
pub(crate) fn modified(ctx: &Ctx<'_>, meta: &Meta) -> Value {
    meta.modified.map_or(Value::Null, |at| DateTime::from(at.to_zoned_datetime(ctx.clock().zone())).into())
}

/// Whether the path leads to something of a kind; false if that cannot be told.
fn is_kind(ctx: &Ctx<'_>, value: &Value, kind: fn(&Meta) -> bool) -> Result<bool, ErrorValue> {
    Ok(ctx.files().meta(ctx.at(path(value)?), true).is_ok_and(|meta| kind(&meta)))
}

/// The whole contents of a file.
pub(crate) fn read_file(ctx: &Ctx<'_>, path: &PathValue) -> Eval<Vec<u8>> {
    let contents = ctx.files().read(ctx.at(path), MAX_TEXT as u64, ctx.cancel());
    let contents = contents.map_err(|e| ctx.file_error(&e, path))?;
    ctx.alloc(contents.len() as u64)?;
    Ok(contents)
}

/// The whole contents of a file as text.
pub(crate) fn read_text(ctx: &Ctx<'_>, path: &PathValue) -> Eval<Str> {
    let text = String::from_utf8(read_file(ctx, path)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        ErrorValue::new(code::UTF8_ERROR, format!("{}: not UTF-8 at byte {at}", path.display()))
            .with_hint("`.read_bytes()` gives the bytes, and `.display()` on them text with replacements")
    })?;
    Ok(text.into())
}
