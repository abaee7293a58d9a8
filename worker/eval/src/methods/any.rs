//! Methods of every value: tapping, JSON text, saving.

use std::sync::Arc;

use shoal_value::{ErrorValue, Value, json};

use super::bytes::load;
use super::path::path_like;
use super::rows::{Checked, FUNCTION, PATH_LIKE, methods, need};
use crate::Ctx;
use crate::host::WriteMode;
use crate::registry::{Args, Method, Types};
use crate::unwind::Eval;

/// An outcome forwards these to its out, and a stream to its items.
const DATA: Types = Types::ANY.but(Types::OUTCOME).but(Types::STREAM);

pub(super) const METHODS: &[Method] = methods! {
    /// Calls `f(value)` and gives the value itself.
    ///
    /// shoal> [1, 2].tap(x => x.len()).map(x => x * 10)
    /// [10, 20]
    tap: Types::ANY, [need("f", FUNCTION)], Same, Closures, |ctx, recv, args| tap(ctx, recv, &args);

    /// Calls `f(value)` and gives the value itself, like `tap`.
    ///
    /// shoal> {a: 5}.also(r => r.a).a
    /// 5
    also: Types::ANY, [need("f", FUNCTION)], Same, Closures, |ctx, recv, args| tap(ctx, recv, &args);

    /// Compact JSON text of any value.
    ///
    /// shoal> {a: [1, null]}.json()
    /// "{\"a\":[1,null]}"
    json: DATA, [], Plain(Types::STR), Nothing, |ctx, recv, _| Ok(Value::from(json_text(ctx, &recv)?));

    /// Writes the value to a file, replacing its contents: str and bytes as they are, anything else as compact JSON. Gives
    /// the value.
    ///
    /// shoal> "hello".save("f.txt").len()
    /// 5
    save: DATA, [need("path", PATH_LIKE)], Same, Writes, |ctx, recv, args| write(ctx, recv, &args, WriteMode::Truncate);

    /// Adds the value at the end of a file, in the form `save` writes. Gives the value.
    ///
    /// shoal> "a".save("f.txt"); "b".append("f.txt"); path("f.txt").read
    /// "ab"
    append: DATA, [need("path", PATH_LIKE)], Same, Writes, |ctx, recv, args| write(ctx, recv, &args, WriteMode::Append);
};

fn tap(ctx: &mut Ctx<'_>, recv: Value, args: &Args) -> Eval<Value> {
    let value = ctx.call(args.value_at(0), std::slice::from_ref(&recv))?;
    ctx.discard(&value)?;
    Ok(recv)
}

/// Compact JSON text of a value.
pub(crate) fn json_text(ctx: &Ctx<'_>, value: &Value) -> Eval<String> {
    let text = json::stringify(value)?;
    ctx.alloc(text.len() as u64)?;
    Ok(text)
}

/// What `save`, `append` and files of other builtins hold of a value.
fn file_bytes(ctx: &Ctx<'_>, value: &Value) -> Eval<Arc<[u8]>> {
    Ok(match value {
        Value::Str(text) => text.clone().into(),
        Value::Bytes(bytes) => load(ctx, bytes)?,
        Value::Secret(name) => {
            let msg = format!("secret {name} cannot be written to a file");
            return Err(ErrorValue::type_error(msg).into());
        }
        other => json_text(ctx, other)?.into_bytes().into(),
    })
}

fn write(ctx: &mut Ctx<'_>, recv: Value, args: &Args, mode: WriteMode) -> Eval<Value> {
    save_value(ctx, &recv, args.value_at(0), mode)?;
    Ok(recv)
}

/// Writes a value to the file at a str or path.
pub(crate) fn save_value(ctx: &Ctx<'_>, value: &Value, path: &Value, mode: WriteMode) -> Eval<()> {
    let path = path_like(path)?;
    let bytes = file_bytes(ctx, value)?;
    ctx.files().write(ctx.at(&path), mode, &bytes, ctx.cancel()).map_err(|e| ctx.file_error(&e, &path))
}
