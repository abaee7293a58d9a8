//! Methods of collections that compare items: sorting, extremes, equal items, groups.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use shoal_value::equal::{ByEquality, equal};
use shoal_value::order::compare;
use shoal_value::record::Shape;
use shoal_value::{ErrorValue, Record, Value};

use super::items::Items;
use super::merge;
use super::rows::{Checked, FUNCTION, methods, need, optional};
use super::text::count_value;
use crate::Ctx;
use crate::registry::{Args, Method, Types};
use crate::unwind::Eval;

const COLLECTION: Types = Types::COLLECTION;

pub(super) const METHODS: &[Method] = methods! {
    /// The items in ascending order, or in the order of `f(item)`. Equal ones keep their order.
    ///
    /// shoal> [3, 1, 2].sort()
    /// [1, 2, 3]
    /// shoal> [1, "a"].sort()
    /// ! type_error
    sort: COLLECTION, [optional("f", FUNCTION)], Same, Closures, |ctx, recv, args| match args.peek(0) {
        Some(f) => sort_by(ctx, recv, f),
        None => sort(ctx, recv),
    };

    /// The items in the order of `f(item)`. Equal ones keep their order.
    ///
    /// shoal> ["bb", "a", "ccc"].sort_by(-.len())
    /// ["ccc", "bb", "a"]
    sort_by: COLLECTION, [need("f", FUNCTION)], Same, Closures, |ctx, recv, args| sort_by(ctx, recv, args.value_at(0));

    /// The least item; null if there is none.
    ///
    /// shoal> [3, 1, 2].min()
    /// 1
    min: COLLECTION, [], Item, Nothing, |ctx, recv, _| extreme(ctx, recv, Ordering::Less);

    /// The greatest item; null if there is none.
    ///
    /// shoal> [2kb, 3mb].max()
    /// 3mb
    max: COLLECTION, [], Item, Nothing, |ctx, recv, _| extreme(ctx, recv, Ordering::Greater);

    /// The items without those that equal an earlier one.
    ///
    /// shoal> [3, 1, 3, 2, 1].uniq()
    /// [3, 1, 2]
    uniq: COLLECTION, [], Same, Nothing, |ctx, recv, _| uniq(ctx, recv);

    /// Records `{key, values}` of the items with equal `f(item)`, in the order in which the keys first appear.
    ///
    /// shoal> [1, 2, 3, 4].group(x => x % 2 == 0)
    /// [{key: false, values: [1, 3]}, {key: true, values: [2, 4]}]
    group: COLLECTION, [need("f", FUNCTION)], Plain(Types::LIST), Closures, |ctx, recv, args| group(ctx, recv, &args);

    /// Groups by `f(item)`, like `group`.
    ///
    /// shoal> ["a", "bb", "c"].group_by(.len()).map(.values.len())
    /// [2, 1]
    group_by: COLLECTION, [need("f", FUNCTION)], Plain(Types::LIST), Closures,
        |ctx, recv, args| group(ctx, recv, &args);

    /// Whether some item equals a value.
    ///
    /// shoal> (1..10).contains(5)
    /// true
    contains: COLLECTION, [need("v", Types::ANY)], Plain(Types::BOOL), Nothing,
        |ctx, recv, args| Ok(Value::Bool(index_of(ctx, recv, args.value_at(0))?.is_some()));

    /// Place of the first item that equals a value, or null.
    ///
    /// shoal> ["a", "b"].index_of("b")
    /// 1
    index_of: COLLECTION, [need("v", Types::ANY)], Plain(Types::INT.or(Types::NULL)), Nothing, |ctx, recv, args| {
        Ok(index_of(ctx, recv, args.value_at(0))?.map_or(Value::Null, |at| Value::Int(count_value(at))))
    };
};

/// Sorts items by themselves. Ints and strs, the usual cases, are compared without looking at their type again.
fn sort(ctx: &mut Ctx<'_>, recv: Value) -> Eval<Value> {
    let list = match recv {
        Value::Range(range) => return Items::Range(*range).part(0, Items::Range(*range).len()).map_err(Into::into),
        Value::List(list) => list,
        other => {
            let items = Items::of(other)?;
            let keys: Vec<Value> = items.iter().collect();
            return by_keys(ctx, &items, &keys);
        }
    };
    if let Some(ints) = list.iter().map(as_int).collect::<Option<Vec<i64>>>() {
        let sorted = merge::sort_by(ctx, ints, i64::cmp)?;
        return Ok(Value::List(shoal_value::List::leaves(sorted)));
    }
    let keys = list.clone();
    by_keys(ctx, &Items::List(list), &keys)
}

fn sort_by(ctx: &mut Ctx<'_>, recv: Value, f: &Value) -> Eval<Value> {
    let items = Items::of(recv)?;
    let f = ctx.prepare(f);
    let keys = ctx.apply_to_all(&f, &items)?;
    by_keys(ctx, &items, &keys)
}

/// The items in the order of their keys.
fn by_keys(ctx: &mut Ctx<'_>, items: &Items, keys: &[Value]) -> Eval<Value> {
    let places = 0..u32::try_from(items.bounded_len()?).unwrap_or(u32::MAX);
    let sorted: Vec<u32> = if let Some(ints) = keys.iter().map(as_int).collect::<Option<Vec<i64>>>() {
        places_of(merge::sort_by(ctx, ints.into_iter().zip(places).collect(), |a, b| a.0.cmp(&b.0))?)
    } else if let Some(texts) = keys.iter().map(Value::as_str).collect::<Option<Vec<&str>>>() {
        let texts = texts.into_iter().zip(places).map(|(text, place)| ((leading(text), text), place));
        places_of(merge::sort_by(ctx, texts.collect(), |a, b| a.0.cmp(&b.0))?)
    } else {
        check_comparable(keys)?;
        // Every key can be compared with the first one, so all can be compared with each other.
        let order = |a: &(&Value, u32), b: &(&Value, u32)| compare(a.0, b.0).unwrap_or(Ordering::Equal);
        places_of(merge::sort_by(ctx, keys.iter().zip(places).collect(), order)?)
    };
    Ok(items.pick(sorted.into_iter().map(|at| at as usize))?)
}

/// The first bytes of a text as a number that orders as they do, so that most texts are told apart without reading them.
fn leading(text: &str) -> u64 {
    let mut first = [0; 8];
    let len = text.len().min(first.len());
    first[..len].copy_from_slice(&text.as_bytes()[..len]);
    u64::from_be_bytes(first)
}

fn places_of<K>(sorted: Vec<(K, u32)>) -> Vec<u32> {
    sorted.into_iter().map(|(_, place)| place).collect()
}

/// Fails with the error of the first pair that cannot be compared. One key alone is in order whatever it is.
fn check_comparable(keys: &[Value]) -> Result<(), ErrorValue> {
    match keys {
        [first, rest @ ..] => rest.iter().try_for_each(|key| compare(first, key).map(|_| ())),
        [] => Ok(()),
    }
}

fn as_int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        _ => None,
    }
}

/// The first of the items that are least (`Less`) or greatest (`Greater`).
fn extreme(ctx: &mut Ctx<'_>, recv: Value, wanted: Ordering) -> Eval<Value> {
    let items = match Items::of(recv)? {
        Items::Range(range) if range.is_empty() => return Ok(Value::Null),
        // The ends of a range are known.
        Items::Range(range) if wanted.is_lt() => return Ok(Value::Int(range.start)),
        items @ Items::Range(_) => return Ok(items.at(items.len() - 1).unwrap_or(Value::Null)),
        items => items,
    };
    let mut best: Option<Value> = None;
    for item in items.iter() {
        ctx.step(1)?;
        match &best {
            Some(held) if compare(&item, held)? != wanted => {}
            _ => best = Some(item),
        }
    }
    Ok(best.unwrap_or(Value::Null))
}

fn uniq(ctx: &mut Ctx<'_>, recv: Value) -> Eval<Value> {
    let items = Items::of(recv)?;
    items.bounded_len()?;
    // Ints and strs, the usual items, are compared without looking at their type again.
    let places = if let Some(ints) = items.all(as_int) {
        first_places(ctx, ints.into_iter())?
    } else if let Some(texts) = items.all(Value::as_str) {
        first_places(ctx, texts.into_iter())?
    } else {
        first_places(ctx, items.iter().map(ByEquality))?
    };
    if places.len() == items.len() {
        return items.part(0, places.len()).map_err(Into::into);
    }
    Ok(items.pick(places.into_iter())?)
}

/// Distinct items for which room is made beforehand.
const EXPECTED_DISTINCT: usize = 1 << 20;

/// Places of the items that equal no earlier one.
fn first_places<T: Eq + Hash>(ctx: &mut Ctx<'_>, items: impl ExactSizeIterator<Item = T>) -> Eval<Vec<usize>> {
    let mut seen = HashSet::with_capacity(items.len().min(EXPECTED_DISTINCT));
    let mut places = Vec::new();
    for (at, item) in items.enumerate() {
        ctx.step(1)?;
        if seen.insert(item) {
            places.push(at);
        }
    }
    Ok(places)
}

fn group(ctx: &mut Ctx<'_>, recv: Value, args: &Args) -> Eval<Value> {
    let (items, f) = (Items::of(recv)?, ctx.prepare(args.value_at(0)));
    items.bounded_len()?;
    let mut place_of: HashMap<ByEquality, usize> = HashMap::new();
    let mut groups: Vec<(Value, Vec<usize>)> = Vec::new();
    for (at, item) in items.all_lying().enumerate() {
        let mut key = Value::Null;
        ctx.apply_into(&f, [item], &mut key)?;
        let place = *place_of.entry(ByEquality(key.clone())).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, places)) => places.push(at),
            None => groups.push((key, vec![at])),
        }
    }
    let shape = Shape::new(["key", "values"]);
    let records = groups
        .into_iter()
        .map(|(key, places)| Record::with_shape(&shape, vec![key, items.pick(places.into_iter())?]).map(Value::Record));
    Ok(Value::list(records.collect::<Result<_, _>>()?)?)
}

fn index_of(ctx: &mut Ctx<'_>, recv: Value, wanted: &Value) -> Eval<Option<usize>> {
    let items = match (Items::of(recv)?, wanted) {
        (Items::Range(range), Value::Int(n)) => {
            let place = i128::from(*n) - i128::from(range.start);
            return Ok(usize::try_from(place).ok().filter(|_| range.contains(*n)));
        }
        (items, _) => items,
    };
    for (at, item) in items.iter().enumerate() {
        ctx.step(1)?;
        if equal(&item, wanted)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}
