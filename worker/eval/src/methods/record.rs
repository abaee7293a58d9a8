//! Methods of record. A record is no collection: what works on items is reached through `keys`, `values` and `items`.

use shoal_value::{ErrorValue, List, Record, Value};

use super::rows::{Checked, FUNCTION, methods, need, optional, rest, texts};
use super::text::count_value;
use crate::Ctx;
use crate::registry::{Args, Method, Param, Types};
use crate::unwind::Eval;

const RECORD: Types = Types::RECORD;

pub(super) const METHODS: &[Method] = methods! {
    /// Its keys in order.
    ///
    /// shoal> {a: 1, b: 2}.keys()
    /// ["a", "b"]
    keys: RECORD, [], Plain(Types::LIST), Pure, |recv, _| Ok(List::leaves(record(&recv)?.keys().iter().cloned()).into());

    /// Its values in the order of the keys.
    ///
    /// shoal> {a: 1, b: 2}.values()
    /// [1, 2]
    values: RECORD, [], Data, Pure, |recv, _| Value::list(record(&recv)?.values().to_vec());

    /// Its members as `[key, value]` pairs.
    ///
    /// shoal> {a: 1, b: 2}.items()
    /// [["a", 1], ["b", 2]]
    items: RECORD, [], Data, Pure, |recv, _| {
        let pairs = record(&recv)?.iter().map(|(k, v)| Value::list(vec![Value::Str(k.clone()), v.clone()]));
        Value::list(pairs.collect::<Result<_, _>>()?)
    };

    /// The value of a key, or `default` if there is no such key.
    ///
    /// shoal> {a: 1}.get("b", 99)
    /// 99
    get: RECORD, [Param::required_as("k", Types::STR, "requires a key"), optional("default", Types::ANY)], Item, Pure,
        |recv, mut args| match record(&recv)?.get(args.str_at(0)) {
            Some(value) => Ok(value.clone()),
            None => Ok(args.take(1)),
        };

    /// With a key set: an existing one keeps its place, a new one comes last.
    ///
    /// shoal> {a: 1, b: 2}.set("a", 7)
    /// {a: 7, b: 2}
    set: RECORD, [Param::required_as("k", Types::STR, "requires a key"), need("v", Types::ANY)], Same, Pure, |recv, mut args| {
        let value = args.take(1);
        Ok(record(&recv)?.set(args.str_at(0), value)?.into())
    };

    /// Without a key. A key that is not there is fine.
    ///
    /// shoal> {a: 1, b: 2}.remove("a")
    /// {b: 2}
    remove: RECORD, [Param::required_as("k", Types::STR, "requires a key")], Same, Pure,
        |recv, args| Ok(record(&recv)?.without(&[args.str_at(0)]).into());

    /// Only these keys, in this order.
    ///
    /// shoal> {a: 1, b: 2, c: 3}.select("c", "a")
    /// {c: 3, a: 1}
    /// shoal> {a: 1}.select("z")
    /// ! field_missing
    select: RECORD, [rest("k", Types::STR)], Same, Pure, |recv, args| select(record(&recv)?, args);

    /// Without these keys.
    ///
    /// shoal> {a: 1, b: 2}.omit("b")
    /// {a: 1}
    omit: RECORD, [rest("k", Types::STR)], Same, Pure,
        |recv, mut args| Ok(record(&recv)?.without(&texts(args.take_rest())).into());

    /// Both records in one: the values of the argument win, its new keys come last.
    ///
    /// shoal> {a: 1, b: 2}.merge({b: 3, c: 4})
    /// {a: 1, b: 3, c: 4}
    merge: RECORD, [need("record", Types::RECORD)], Same, Pure,
        |recv, args| match args.value_at(0) {
            Value::Record(other) => Ok(record(&recv)?.merge(other).into()),
            _ => Ok(recv),
        };

    /// The same keys with `f(value)` for each value.
    ///
    /// shoal> {a: 1, b: 2}.map_values(v => v * 10)
    /// {a: 10, b: 20}
    map_values: RECORD, [need("f", FUNCTION)], Same, Closures, |ctx, recv, args| map_values(ctx, &recv, &args);

    /// Whether it has a key.
    ///
    /// shoal> {a: 1}.contains("a")
    /// true
    contains: RECORD, [Param::required_as("k", Types::STR, "requires a key")], Plain(Types::BOOL), Pure,
        |recv, args| Ok(Value::Bool(record(&recv)?.get(args.str_at(0)).is_some()));

    /// Number of members.
    ///
    /// shoal> {a: 1, b: 2}.len()
    /// 2
    len: RECORD, [], Plain(Types::INT), Pure, |recv, _| Ok(Value::Int(count_value(record(&recv)?.len())));

    /// Number of members, like `len`.
    ///
    /// shoal> {a: 1}.count()
    /// 1
    count: RECORD, [], Plain(Types::INT), Pure, |recv, _| Ok(Value::Int(count_value(record(&recv)?.len())));

    /// Whether it has no members.
    ///
    /// shoal> {}.is_empty()
    /// true
    is_empty: RECORD, [], Plain(Types::BOOL), Pure, |recv, _| Ok(Value::Bool(record(&recv)?.is_empty()));
};

fn record(value: &Value) -> Result<&Record, ErrorValue> {
    match value {
        Value::Record(record) => Ok(record),
        other => Err(ErrorValue::type_error(format!("expected record, found {}", other.type_name()))),
    }
}

fn select(record: &Record, mut args: Args) -> Result<Value, ErrorValue> {
    let pairs = texts(args.take_rest()).into_iter().map(|key| match record.get(&key) {
        Some(value) => Ok((key, value.clone())),
        None => Err(ErrorValue::field_missing(format!("the record has no field `{key}`"))),
    });
    Value::record(pairs.collect::<Result<Vec<_>, _>>()?)
}

fn map_values(ctx: &mut Ctx<'_>, recv: &Value, args: &Args) -> Eval<Value> {
    let (record, f) = (record(recv)?, args.value_at(0));
    let values = record.values().iter().map(|value| ctx.call(f, std::slice::from_ref(value)));
    Ok(record.with_values(values.collect::<Result<_, _>>()?)?.into())
}
