//! Methods of collections about places: size, ends, parts, order of items as they are, pairs.

use shoal_value::{ErrorValue, Value};

use super::items::{Items, check_items};
use super::rows::{Checked, methods, need, optional};
use super::text::{check_text, count_value, slice_bounds};
use crate::Ctx;
use crate::registry::{Args, Method, Types};
use crate::unwind::Eval;

pub(super) const METHODS: &[Method] = methods! {
    /// Number of items.
    ///
    /// shoal> [1, 2, 3].len()
    /// 3
    len: Types::COLLECTION, [], Plain(Types::INT), Pure, |recv, _| Ok(Value::Int(count_value(Items::of(recv)?.len())));

    /// Whether it has no items.
    ///
    /// shoal> (5..1).is_empty()
    /// true
    is_empty: Types::COLLECTION, [], Plain(Types::BOOL), Pure, |recv, _| Ok(Value::Bool(Items::of(recv)?.len() == 0));

    /// The first item, or null; with a number, up to that many from the start.
    ///
    /// shoal> [8, 9].first()
    /// 8
    /// shoal> [1, 2, 3].first(2)
    /// [1, 2]
    first: Types::COLLECTION, [optional("n", Types::INT)], Item, Pure, |recv, args| {
        let items = Items::of(recv)?;
        match args.count(0)? {
            Some(n) => items.part(0, n.min(items.len())),
            None => Ok(items.at(0).unwrap_or(Value::Null)),
        }
    };

    /// The last item, or null; with a number, up to that many from the end.
    ///
    /// shoal> [1, 2, 3].last(2)
    /// [2, 3]
    last: Types::COLLECTION, [optional("n", Types::INT)], Item, Pure, |recv, args| {
        let items = Items::of(recv)?;
        let len = items.len();
        match args.count(0)? {
            Some(n) => items.part(len.saturating_sub(n), len),
            None => Ok(len.checked_sub(1).and_then(|at| items.at(at)).unwrap_or(Value::Null)),
        }
    };

    /// A range as a list; lists and tables as they are.
    ///
    /// shoal> (0..3).collect()
    /// [0, 1, 2]
    collect: Types::COLLECTION, [], Same, Pure, |recv, _| match recv {
        Value::Range(_) => Value::list(Items::of(recv)?.into_vec()?),
        other => Ok(other),
    };

    /// A list of the items; of a table, its rows as records.
    ///
    /// shoal> (1..=2).list()
    /// [1, 2]
    list: Types::COLLECTION, [], Data, Pure, |recv, _| match recv {
        Value::List(_) => Ok(recv),
        Value::Table(table) => Ok(table.to_list().into()),
        other => Value::list(Items::of(other)?.into_vec()?),
    };

    /// The first `n` items, or all if there are fewer.
    ///
    /// shoal> [1, 2, 3].take(2)
    /// [1, 2]
    take: Types::COLLECTION, [need("n", Types::INT)], Same, Pure, |recv, args| {
        let items = Items::of(recv)?;
        items.part(0, args.count_at(0)?.min(items.len()))
    };

    /// Without the first `n` items.
    ///
    /// shoal> [1, 2, 3].skip(1)
    /// [2, 3]
    skip: Types::COLLECTION, [need("n", Types::INT)], Same, Pure, |recv, args| skip(recv, &args);

    /// Without the first `n` items, like `skip`.
    ///
    /// shoal> [1, 2, 3].drop(3)
    /// []
    drop: Types::COLLECTION, [need("n", Types::INT)], Same, Pure, |recv, args| skip(recv, &args);

    /// The items from place `a` up to `b`. Negative places count from the end; places outside are clamped.
    ///
    /// shoal> [1, 2, 3, 4].slice(1, -1)
    /// [2, 3]
    slice: Types::COLLECTION, [need("a", Types::INT), optional("b", Types::INT)], Same, Pure, |recv, args| {
        let items = Items::of(recv)?;
        let (from, to) = slice_bounds(args.int_at(0), args.int(1), items.len());
        items.part(from, to)
    };

    /// Parts of `n` items each; the last may be shorter.
    ///
    /// shoal> [1, 2, 3].chunks(2)
    /// [[1, 2], [3]]
    chunks: Types::COLLECTION, [need("n", Types::INT)], Data, Nothing, |ctx, recv, args| chunks(ctx, recv, &args);

    /// The items backwards.
    ///
    /// shoal> [3, 1, 2].reverse()
    /// [2, 1, 3]
    reverse: Types::COLLECTION, [], Same, Nothing, |ctx, recv, _| {
        let items = Items::of(recv)?;
        let len = items.bounded_len()?;
        ctx.step(u32::try_from(len).unwrap_or(u32::MAX))?;
        Ok(items.pick((0..len).rev())?)
    };

    /// Each item with its place, as `[place, item]`.
    ///
    /// shoal> ["a", "b"].enumerate()
    /// [[0, "a"], [1, "b"]]
    enumerate: Types::COLLECTION, [], Data, Nothing, |ctx, recv, _| {
        let items = Items::of(recv)?;
        let mut pairs = Vec::with_capacity(items.bounded_len()?);
        for (at, item) in items.iter().enumerate() {
            ctx.step(1)?;
            pairs.push(Value::list(vec![Value::Int(count_value(at)), item])?);
        }
        Ok(Value::list(pairs)?)
    };

    /// Pairs of the items of both collections, up to the end of the shorter one.
    ///
    /// shoal> [1, 2].zip(["a", "b"])
    /// [[1, "a"], [2, "b"]]
    zip: Types::COLLECTION, [need("coll", Types::COLLECTION)], Data, Nothing, |ctx, recv, mut args| {
        let (left, right) = (Items::of(recv)?, Items::of(args.take(0))?);
        let mut pairs = Vec::with_capacity(check_items(left.len().min(right.len()))?);
        for (a, b) in left.iter().zip(right.iter()) {
            ctx.step(1)?;
            pairs.push(Value::list(vec![a, b])?);
        }
        Ok(Value::list(pairs)?)
    };

    /// The items of all items, which must be collections.
    ///
    /// shoal> [[1], [2, 3]].flatten()
    /// [1, 2, 3]
    flatten: Types::COLLECTION, [], Data, Nothing, |ctx, recv, _| flatten(ctx, recv);

    /// The item at place `i`, or `default` if there is none. Negative places count from the end.
    ///
    /// shoal> [1, 2, 3].get(-1)
    /// 3
    /// shoal> [1].get(9, "missing")
    /// "missing"
    get: Types::LIST.or(Types::TABLE), [need("i", Types::INT), optional("default", Types::ANY)], Item, Pure, |recv, mut args| {
        let items = Items::of(recv)?;
        let found = place(args.int_at(0), items.len()).and_then(|at| items.at(at));
        Ok(found.unwrap_or_else(|| args.take(1)))
    };

    /// The items, which must be str, with `sep` between them.
    ///
    /// shoal> ["a", "b"].join("-")
    /// "a-b"
    join: Types::COLLECTION, [optional("sep", Types::STR)], Plain(Types::STR), Pure, |recv, args| join(recv, args.text(0).map(|t| &**t));

    /// The items a person picks on a terminal. Sessions and scripts have none.
    ///
    /// shoal> [1, 2].pick()
    /// ! arg_error
    pick: Types::COLLECTION, [optional("prompt", Types::STR), optional("multi", Types::BOOL)], Item, Opaque, |_, _, _| {
        let error = ErrorValue::arg_error("pick needs a terminal, and there is none here");
        Err(error.with_hint("choose with a condition: `.find(p)` or `.where(p)`").into())
    };
};

/// Place `at` of `len`, negative ones from the end; null outside.
fn place(at: i64, len: usize) -> Option<usize> {
    match usize::try_from(at) {
        Ok(at) => (at < len).then_some(at),
        Err(_) => len.checked_sub(usize::try_from(at.unsigned_abs()).ok()?),
    }
}

fn skip(recv: Value, args: &Args) -> Result<Value, ErrorValue> {
    let items = Items::of(recv)?;
    let len = items.len();
    items.part(args.count_at(0)?.min(len), len)
}

fn chunks(ctx: &mut Ctx<'_>, recv: Value, args: &Args) -> Eval<Value> {
    let (items, n) = (Items::of(recv)?, args.count_at(0)?);
    if n == 0 {
        return Err(ErrorValue::arg_error("chunks: n is 0, so there would be no end of parts").into());
    }
    let len = items.bounded_len()?;
    ctx.step(u32::try_from(len).unwrap_or(u32::MAX))?;
    let parts = (0..len).step_by(n).map(|from| items.part(from, from.saturating_add(n).min(len)));
    Ok(Value::list(parts.collect::<Result<_, _>>()?)?)
}

fn flatten(ctx: &mut Ctx<'_>, recv: Value) -> Eval<Value> {
    let mut all = Vec::new();
    for (at, item) in Items::of(recv)?.iter().enumerate() {
        ctx.step(1)?;
        let found = item.type_name();
        let part = Items::of(item).map_err(|_| {
            let msg = format!("flatten: every item must be a list, table or range, but item {at} is {found}");
            ErrorValue::type_error(msg)
        })?;
        check_items(all.len().saturating_add(part.len()))?;
        all.extend(part.iter());
    }
    Ok(Value::list(all)?)
}

fn join(recv: Value, sep: Option<&str>) -> Result<Value, ErrorValue> {
    let sep = sep.unwrap_or_default();
    let items = Items::of(recv)?;
    let Some(parts) = items.all(Value::as_str) else {
        return match items.iter().enumerate().find(|(_, item)| item.as_str().is_none()) {
            Some((at, item)) => {
                let msg = format!("join: every item must be a str, but item {at} is {}", item.type_name());
                Err(ErrorValue::type_error(msg).with_hint("make them text first: `.map(x => \"{x}\").join()`"))
            }
            None => Ok(Value::str("")),
        };
    };
    let seps = sep.len().saturating_mul(parts.len().saturating_sub(1));
    check_text(parts.iter().map(|part| part.len()).fold(seps, usize::saturating_add))?;
    Ok(parts.join(sep).into())
}
