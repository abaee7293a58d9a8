//! Methods of bytes. Stored bytes are loaded only by what needs the bytes themselves.

use std::sync::Arc;

use shoal_value::{Bytes, ErrorValue, Value, code};

use super::rows::{Checked, methods, need, optional};
use super::text::slice_bounds;
use crate::Ctx;
use crate::registry::{Method, Types};
use crate::unwind::Eval;

const BYTES: Types = Types::BYTES;

pub(super) const METHODS: &[Method] = methods! {
    /// Number of bytes; of bytes that were cut, the number kept.
    ///
    /// shoal> "grün".save("f.txt"); path("f.txt").read_bytes().len()
    /// 5
    len: BYTES, [], Plain(Types::INT), Pure, |recv, _| Ok(Value::Int(length(bytes(&recv)?)));

    /// Number of bytes, like `len`.
    ///
    /// shoal> "ab".save("f.txt"); path("f.txt").read_bytes().count()
    /// 2
    count: BYTES, [], Plain(Types::INT), Pure, |recv, _| Ok(Value::Int(length(bytes(&recv)?)));

    /// Whether there are no bytes.
    ///
    /// shoal> touch f.txt; path("f.txt").read_bytes().is_empty()
    /// true
    is_empty: BYTES, [], Plain(Types::BOOL), Pure, |recv, _| Ok(Value::Bool(bytes(&recv)?.is_empty()));

    /// The bytes from place `a` up to `b`. Negative places count from the end; places outside are clamped.
    ///
    /// shoal> "hello".save("f.txt"); path("f.txt").read_bytes().slice(1, -1).str()
    /// "ell"
    slice: BYTES, [need("a", Types::INT), optional("b", Types::INT)], Plain(BYTES), Nothing, |ctx, recv, args| {
        let held = load(ctx, bytes(&recv)?)?;
        let (from, to) = slice_bounds(args.int_at(0), args.int(1), held.len());
        Ok(Value::Bytes(held[from..to].into()))
    };

    /// Reference of stored bytes, `val:blake3:HASH`; null for bytes in memory.
    ///
    /// shoal> "x".save("f.txt"); path("f.txt").read_bytes().ref()
    /// null
    r#ref: BYTES, [], Plain(Types::STR.or(Types::NULL)), Pure,
        |recv, _| Ok(bytes(&recv)?.stored_ref().map_or(Value::Null, Value::from));

    /// The bytes in memory, loaded from the store if they are kept there.
    ///
    /// shoal> "x".save("f.txt"); path("f.txt").read_bytes().load().str()
    /// "x"
    load: BYTES, [], Plain(BYTES), Nothing, |ctx, recv, _| resident(ctx, recv);

    /// The bytes in memory, like `load`.
    ///
    /// shoal> "x".save("f.txt"); path("f.txt").read_bytes().bytes().len()
    /// 1
    bytes: BYTES, [], Plain(BYTES), Nothing, |ctx, recv, _| resident(ctx, recv);
};

fn bytes(value: &Value) -> Result<&Bytes, ErrorValue> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(ErrorValue::type_error(format!("expected bytes, found {}", other.type_name()))),
    }
}

fn length(bytes: &Bytes) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

/// The same value, with stored bytes loaded. Other values, and bytes that were cut, are as they are.
pub(crate) fn resident(ctx: &Ctx<'_>, value: Value) -> Eval<Value> {
    match &value {
        Value::Bytes(stored @ Bytes::Stored(_)) => Ok(Value::Bytes(Bytes::Held(load(ctx, stored)?))),
        _ => Ok(value),
    }
}

/// All bytes. Fails with `too_large` for bytes that were cut and `not_found` if the store does not have them.
pub(crate) fn load(ctx: &Ctx<'_>, bytes: &Bytes) -> Eval<Arc<[u8]>> {
    match bytes {
        Bytes::Held(held) => Ok(held.clone()),
        Bytes::Cut(cut) => {
            let msg = format!("the output was cut: {} of {} bytes were kept", cut.kept(), cut.total);
            Err(ErrorValue::new(code::TOO_LARGE, msg).with_hint("`.display()` shows what was kept").into())
        }
        Bytes::Stored(stored) => {
            ctx.alloc(stored.len)?;
            let host = ctx.host_handle();
            let found = match host.store() {
                Some(store) => store.load(&stored.hash, ctx.cancel())?,
                None => None,
            };
            let missing = || {
                let msg = format!("val:blake3:{} is not in the journal/CAS of this session", stored.hash);
                ErrorValue::new(code::NOT_FOUND, msg)
            };
            Ok(found.ok_or_else(missing)?.into())
        }
    }
}
