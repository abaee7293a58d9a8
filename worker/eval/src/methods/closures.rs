//! Methods of collections that call a function for their items.

use shoal_value::{ErrorValue, Value};

use super::items::{Items, check_items};
use super::rows::{Checked, FUNCTION, methods, need, optional};
use super::text::count_value;
use crate::Ctx;
use crate::ctx::BLOCK;
use crate::registry::{Args, Method, Types};
use crate::unwind::Eval;
use crate::vm::Arg;

pub(super) const METHODS: &[Method] = methods! {
    /// `f(item)` for each item.
    ///
    /// shoal> [1, 2, 3].map(x => x * 2)
    /// [2, 4, 6]
    map: Types::COLLECTION, [need("f", FUNCTION)], Data, Closures, |ctx, recv, args| map(ctx, recv, &args);

    /// The items for which `p(item)` holds.
    ///
    /// shoal> [1, 2, 3, 4].where(x => x % 2 == 0)
    /// [2, 4]
    r#where: Types::COLLECTION, [need("p", FUNCTION)], Same, Closures, |ctx, recv, args| keep(ctx, recv, &args);

    /// The items for which `p(item)` holds, like `where`.
    ///
    /// shoal> (1..6).filter(x => x > 3)
    /// [4, 5]
    filter: Types::COLLECTION, [need("p", FUNCTION)], Same, Closures, |ctx, recv, args| keep(ctx, recv, &args);

    /// The first item for which `p(item)` holds, or null.
    ///
    /// shoal> [1, 2, 3].find(x => x > 1)
    /// 2
    find: Types::COLLECTION, [need("p", FUNCTION)], Item, Closures, |ctx, recv, args| {
        let found = first_place(ctx, &Items::of(recv)?, &args, true)?;
        Ok(found.map_or(Value::Null, |(_, item)| item))
    };

    /// Calls `f(item)` for each item. A command that fails in it raises `cmd_failed`.
    ///
    /// shoal> var s = 0; [1, 2].each(x => { s += x }); s
    /// 3
    each: Types::COLLECTION, [need("f", FUNCTION)], Plain(Types::NULL), Closures, |ctx, recv, args| {
        let f = ctx.prepare(args.value_at(0));
        for item in Items::of(recv)?.iter() {
            let value = ctx.apply(&f, [item])?;
            ctx.discard(&value)?;
        }
        Ok(Value::Null)
    };

    /// Whether `p(item)` holds for some item.
    ///
    /// shoal> [1, 2].any(x => x > 1)
    /// true
    any: Types::COLLECTION, [need("p", FUNCTION)], Plain(Types::BOOL), Closures,
        |ctx, recv, args| Ok(Value::Bool(first_place(ctx, &Items::of(recv)?, &args, true)?.is_some()));

    /// Whether `p(item)` holds for every item.
    ///
    /// shoal> [1, 2].all(x => x > 1)
    /// false
    all: Types::COLLECTION, [need("p", FUNCTION)], Plain(Types::BOOL), Closures,
        |ctx, recv, args| Ok(Value::Bool(first_place(ctx, &Items::of(recv)?, &args, false)?.is_none()));

    /// One value of all items: `f(acc, item)` for each, starting with `init`.
    ///
    /// shoal> [1, 2, 3].reduce(10, (acc, x) => acc + x)
    /// 16
    reduce: Types::COLLECTION, [need("init", Types::ANY), need("f", FUNCTION)], Item, Closures,
        |ctx, recv, args| fold(ctx, recv, args);

    /// One value of all items, like `reduce`.
    ///
    /// shoal> ["a", "b"].fold("", (acc, x) => x + acc)
    /// "ba"
    fold: Types::COLLECTION, [need("init", Types::ANY), need("f", FUNCTION)], Item, Closures,
        |ctx, recv, args| fold(ctx, recv, args);

    /// The items of all collections `f(item)`, one after the other.
    ///
    /// shoal> [1, 2].flat_map(x => [x, x * 10])
    /// [1, 10, 2, 20]
    flat_map: Types::COLLECTION, [need("f", FUNCTION)], Data, Closures, |ctx, recv, args| flat_map(ctx, recv, &args);

    /// Number of items, or of those for which `p(item)` holds.
    ///
    /// shoal> [1, 2, 3].count(x => x > 1)
    /// 2
    count: Types::COLLECTION, [optional("p", FUNCTION)], Plain(Types::INT), Closures, |ctx, recv, args| count(ctx, recv, &args);
};

fn map(ctx: &mut Ctx<'_>, recv: Value, args: &Args) -> Eval<Value> {
    let (items, f) = (Items::of(recv)?, ctx.prepare(args.value_at(0)));
    Ok(Value::list(ctx.apply_to_all(&f, &items)?)?)
}

fn keep(ctx: &mut Ctx<'_>, recv: Value, args: &Args) -> Eval<Value> {
    let (items, p) = (Items::of(recv)?, ctx.prepare(args.value_at(0)));
    // Kept while it is at hand: a second walk would fetch every item from memory again.
    match items {
        Items::Table(table) => {
            let mut rows = Vec::new();
            for row in table.rows() {
                if ctx.satisfies(&p, Arg::Row(row))? {
                    rows.push(row.clone());
                }
            }
            Ok(Value::Table(table.keep(rows)))
        }
        items => {
            let (mut kept, mut count) = (Vec::new(), 0);
            for item in items.all_lying() {
                if ctx.satisfies(&p, item)? {
                    if count == kept.len() {
                        kept.resize(count + BLOCK, Value::Null);
                    }
                    item.copy_to(&mut kept[count]);
                    count += 1;
                }
            }
            kept.truncate(count);
            Ok(items.list_of(kept)?)
        }
    }
}

/// The first item for which the predicate gives `wanted`, with its place.
fn first_place(ctx: &mut Ctx<'_>, items: &Items, args: &Args, wanted: bool) -> Eval<Option<(usize, Value)>> {
    let p = ctx.prepare(args.value_at(0));
    for (at, item) in items.all_lying().enumerate() {
        if ctx.satisfies(&p, item)? == wanted {
            return Ok(Some((at, item.to_value())));
        }
    }
    Ok(None)
}

fn fold(ctx: &mut Ctx<'_>, recv: Value, mut args: Args) -> Eval<Value> {
    // Each turn reads one of the places and writes the other: a value that is moved costs more than the sum of two ints.
    let (mut one, mut other) = (args.take(0), Value::Null);
    let f = ctx.prepare(args.value_at(1));
    let items = Items::of(recv)?;
    let (mut acc, mut next) = (&mut one, &mut other);
    for item in items.all_lying() {
        ctx.apply_into(&f, [Arg::Value(acc), item], next)?;
        *acc = Value::Null;
        std::mem::swap(&mut acc, &mut next);
    }
    Ok(std::mem::replace(acc, Value::Null))
}

fn flat_map(ctx: &mut Ctx<'_>, recv: Value, args: &Args) -> Eval<Value> {
    let f = ctx.prepare(args.value_at(0));
    let mut results = Vec::new();
    for item in Items::of(recv)?.iter() {
        let part = ctx.apply(&f, [item])?;
        let found = part.type_name();
        let part = Items::of(part).map_err(|_| {
            ErrorValue::type_error(format!("flat_map: f must return a list, table or range, found {found}"))
        })?;
        check_items(results.len().saturating_add(part.len()))?;
        results.extend(part.into_vec()?);
    }
    Ok(Value::list(results)?)
}

fn count(ctx: &mut Ctx<'_>, recv: Value, args: &Args) -> Eval<Value> {
    let items = Items::of(recv)?;
    let Some(p) = args.peek(0) else { return Ok(Value::Int(count_value(items.len()))) };
    let p = ctx.prepare(p);
    let mut n = 0;
    for item in items.all_lying() {
        n += i64::from(ctx.satisfies(&p, item)?);
    }
    Ok(Value::Int(n))
}
