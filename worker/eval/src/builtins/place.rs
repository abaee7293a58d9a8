//! What the file builtins share: arguments as paths, metadata, targets inside directories.

use shoal_value::{ErrorValue, PathValue, Value, code};

use crate::Ctx;
use crate::host::{FileErrorKind, FileKind, Meta};
use crate::methods::path::{lexical, path_like};
use crate::unwind::Eval;

/// Arguments of a command as paths.
pub(super) fn paths(args: &[Value]) -> Result<Vec<PathValue>, ErrorValue> {
    args.iter().map(path_like).collect()
}

/// Paths as a list.
pub(super) fn path_list(paths: Vec<PathValue>) -> Value {
    shoal_value::List::leaves(paths).into()
}

/// Metadata of the file itself, also of a symbolic link.
pub(super) fn own_meta(ctx: &Ctx<'_>, path: &PathValue) -> Eval<Meta> {
    ctx.files().meta(ctx.at(path), false).map_err(|e| ctx.file_error(&e, path))
}

/// Metadata of what a path leads to; null if nothing is there.
pub(super) fn target_meta(ctx: &Ctx<'_>, path: &PathValue) -> Eval<Option<Meta>> {
    match ctx.files().meta(ctx.at(path), true) {
        Ok(meta) => Ok(Some(meta)),
        Err(e) if e.kind == FileErrorKind::NotFound => Ok(None),
        Err(e) => Err(ctx.file_error(&e, path)),
    }
}

/// `name` below `dir`.
pub(super) fn child(dir: &PathValue, name: &[u8]) -> PathValue {
    let mut path = dir.as_bytes().to_vec();
    if !path.is_empty() && path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path.into()
}

/// Last part of a path, `..` and `.` included; the path itself if it has none.
pub(super) fn last_part(path: &PathValue) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    match lexical(path).components().next_back() {
        Some(last) => last.as_os_str().as_bytes().to_vec(),
        None => path.as_bytes().to_vec(),
    }
}

/// Sources and where each goes: into `dst` if that is a directory, else to `dst` itself. Several sources need a directory.
pub(super) fn placed(ctx: &Ctx<'_>, mut args: Vec<PathValue>) -> Eval<Vec<(PathValue, PathValue)>> {
    let Some(dst) = args.pop() else { return Ok(Vec::new()) };
    let dst_is_dir = target_meta(ctx, &dst)?.is_some_and(|meta| meta.kind == FileKind::Dir);
    if !dst_is_dir && args.len() > 1 {
        let (code, what) = match target_meta(ctx, &dst)? {
            Some(_) => (code::NOT_DIR, "is not a directory"),
            None => (code::NOT_FOUND, "no such directory"),
        };
        let msg = format!("{}: {what}, and several sources need one", dst.display());
        return Err(ErrorValue::new(code, msg).into());
    }
    let place = |src: PathValue| {
        let to = if dst_is_dir { child(&dst, &last_part(&src)) } else { dst.clone() };
        (src, to)
    };
    Ok(args.into_iter().map(place).collect())
}
