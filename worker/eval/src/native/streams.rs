//! Methods of streams, and `every`.

use std::collections::{HashSet, VecDeque};

use shoal_value::{ErrorValue, MAX_ITEMS, PathValue, Value};

use crate::Ctx;
use crate::channel;
use crate::command::line_bytes;
use crate::host::WriteMode;
use crate::registry::{Args, Function, Gives, Method, Param, Touches, Types};
use crate::stream::ahead::{Ahead, Quiet, Together, UntilOther};
use crate::stream::combine::{
    Dedupe, Distinct, Enumerate, FlatMap, Map, Merge, Scan, Skip, Take, TakeUntil, Until, Where, Window, Zip,
};
use crate::stream::fork;
use crate::stream::timed::{Debounce, Every, Throttle, TimeWindow};
use crate::stream::{self, Facts, Source, Taken};
use crate::unwind::Eval;

type Run = fn(&mut Ctx<'_>, Value, Args) -> Eval<Value>;

/// Items of a live source that are pulled before they are wanted.
const ROOM: usize = 64;
/// Forks of a live stream: each has a queue of its own.
const MAX_FORKS: usize = 256;

const CALLABLE: Types = Types::CLOSURE.or(Types::COMMAND);
const F: &[Param] = &[Param::required("f", CALLABLE)];
const P: &[Param] = &[Param::required("p", CALLABLE)];
const N: &[Param] = &[Param::required("n", Types::INT)];
const D: &[Param] = &[Param::interval("d", Types::DURATION)];
const OTHER: &[Param] = &[Param::required("stream", Types::STREAM)];
const PATH: &[Param] = &[Param::required("path", Types::STR.or(Types::PATH))];

const fn row(name: &'static str, params: &'static [Param], doc: &'static str, run: Run) -> Method {
    let gives = match name.as_bytes() {
        b"collect" => Gives::Items,
        b"first" | b"find" => Gives::Item,
        b"any" | b"all" | b"contains" | b"is_empty" => Gives::Plain(Types::BOOL),
        b"each" | b"render" | b"into" => Gives::Plain(Types::NULL),
        b"save" | b"append" => Gives::Plain(Types::PATH),
        b"tee" => Gives::Any,
        _ => Gives::Plain(Types::STREAM),
    };
    Method { params, doc, gives, touches: Touches::Closures, ..Method::new(name, Types::STREAM, run) }
}

pub(super) static COMBINATORS: &[Method] = &[
    row(
        "map",
        F,
        "Each item through `f`.\n\nshoal> [1, 2].stream().map(x => x * 10).collect()\n[10, 20]",
        |ctx, recv, mut args| {
            let f = args.take(0);
            derive(ctx, &recv, "map", |source| Map(source, f))
        },
    ),
    row("where", P, "Items that satisfy `p`.\n\nshoal> [1, 2, 3].stream().where(x => x > 1).collect()\n[2, 3]", filter),
    row("filter", P, "Items that satisfy `p`.\n\nshoal> [1, 2, 3].stream().filter(x => x < 2).collect()\n[1]", filter),
    row(
        "enumerate",
        &[],
        "Pairs of index and item.\n\nshoal> [\"a\", \"b\"].stream().enumerate().collect()\n[[0, \"a\"], [1, \"b\"]]",
        |ctx, recv, _| derive(ctx, &recv, "enumerate", |source| Enumerate(source, 0)),
    ),
    row("skip", N, "Without the first `n` items.\n\nshoal> [1, 2, 3].stream().skip(1).collect()\n[2, 3]", skip),
    row("drop", N, "Without the first `n` items.\n\nshoal> [1, 2, 3].stream().drop(2).collect()\n[3]", skip),
    row("take", N, "The first `n` items; bounded.\n\nshoal> every(1ms).take(3).len()\n3", |ctx, recv, args| {
        let n = args.count(0)?.unwrap_or(0);
        let source = source(ctx, &recv)?;
        Ok(stream::new(Facts { bounded: true, ..source.facts.through("take") }, Take(source, n)))
    }),
    row(
        "take_until",
        &[Param::required("until", CALLABLE.or(Types::STREAM))],
        "Items before the first that satisfies `p`, or before another stream has one; bounded.\n\nshoal> [1, 2, 3].stream().take_until(x => x == 3).collect()\n[1, 2]",
        take_until,
    ),
    row(
        "scan",
        &[Param::required("init", Types::ANY), Param::required("f", CALLABLE)],
        "Each new accumulator of `f(acc, item)`.\n\nshoal> [1, 2, 3].stream().scan(0, (acc, x) => acc + x).collect()\n[1, 3, 6]",
        |ctx, recv, mut args| {
            let (acc, f) = (args.take(0), args.take(1));
            derive(ctx, &recv, "scan", |source| Scan { source, acc, f })
        },
    ),
    row(
        "flat_map",
        F,
        "The items of what `f` gives for each item.\n\nshoal> [1, 2].stream().flat_map(x => [x, x * 10]).collect()\n[1, 10, 2, 20]",
        |ctx, recv, mut args| {
            let f = args.take(0);
            derive(ctx, &recv, "flat_map", |source| FlatMap { source, f, items: VecDeque::new() })
        },
    ),
    row(
        "dedupe",
        &[],
        "Without items equal to the one before.\n\nshoal> [1, 1, 2, 1].stream().dedupe().collect()\n[1, 2, 1]",
        |ctx, recv, _| derive(ctx, &recv, "dedupe", |source| Dedupe(source, None)),
    ),
    row(
        "distinct",
        &[],
        "Without items equal to any before.\n\nshoal> [1, 1, 2, 1].stream().distinct().collect()\n[1, 2]",
        |ctx, recv, _| derive(ctx, &recv, "distinct", |source| Distinct(source, HashSet::new())),
    ),
    row(
        "window",
        &[Param::interval("n", Types::INT.or(Types::DURATION))],
        "Sliding lists of `n` items, or of the items of the last duration.\n\nshoal> [1, 2, 3].stream().window(2).collect()\n[[1, 2], [2, 3]]",
        window,
    ),
    row(
        "debounce",
        D,
        "The last item before a quiet `d`.\n\nshoal> [1, 2, 3].stream().debounce(1ms).collect()\n[3]",
        |ctx, recv, args| {
            let interval = interval(args.peek(0), "debounce")?;
            let source = source(ctx, &recv)?;
            let facts = source.facts.through("debounce");
            if source.facts.live {
                return Ok(stream::new(facts, Quiet { ahead: Ahead::new(vec![source], ROOM), interval }));
            }
            Ok(stream::new(facts, Debounce { source, interval, pending: None }))
        },
    ),
    row(
        "throttle",
        D,
        "At most one item per `d`.\n\nshoal> [1, 2, 3].stream().throttle(1m).collect()\n[1]",
        |ctx, recv, args| {
            let interval = interval(args.peek(0), "throttle")?;
            derive(ctx, &recv, "throttle", |source| Throttle { source, interval, last: None })
        },
    ),
    row(
        "buffer",
        N,
        "The same items; up to `n` are pulled before they are wanted.\n\nshoal> [1, 2].stream().buffer(8).collect()\n[1, 2]",
        |ctx, recv, args| {
            let room = args.count(0)?.unwrap_or(ROOM).min(MAX_ITEMS);
            derive(ctx, &recv, "buffer", |source| Together(Ahead::new(vec![source], room)))
        },
    ),
    row(
        "merge",
        OTHER,
        "The items of both.\n\nshoal> [1, 2].stream().merge([3].stream()).sum()\n6",
        |ctx, recv, args| {
            let other = other(ctx, &args)?;
            let first = source(ctx, &recv)?;
            let live = first.facts.live || other.facts.live;
            let facts =
                Facts { bounded: first.facts.bounded && other.facts.bounded, live, ..first.facts.through("merge") };
            if live {
                return Ok(stream::new(facts, Together(Ahead::new(vec![first, other], ROOM))));
            }
            Ok(stream::new(facts, Merge { sources: VecDeque::from([first, other]) }))
        },
    ),
    row(
        "zip",
        OTHER,
        "Pairs until one ends.\n\nshoal> [1, 2].stream().zip([5].stream()).collect()\n[[1, 5]]",
        |ctx, recv, args| {
            let other = other(ctx, &args)?;
            let first = source(ctx, &recv)?;
            let (bounded, live) = (first.facts.bounded || other.facts.bounded, first.facts.live || other.facts.live);
            Ok(stream::new(Facts { bounded, live, ..first.facts.through("zip") }, Zip(first, other)))
        },
    ),
];

pub(super) static SINKS: &[Method] = &[
    row("collect", &[], "All items as a list.\n\nshoal> [1, 2].stream().collect()\n[1, 2]", |ctx, recv, _| {
        let items = gather(ctx, &recv)?;
        Ok(Value::list(items)?)
    }),
    row(
        "each",
        F,
        "Calls `f` with each item.\n\nshoal> var s = 0; [1, 2].stream().each(x => { s += x }); s\n3",
        |ctx, recv, mut args| {
            let f = args.take(0);
            each(ctx, &recv, |ctx, item| {
                let value = ctx.call(&f, &[item])?;
                Ok(ctx.discard(&value)?)
            })
        },
    ),
    row("render", &[], "Hands each item to the sink.\n\nshoal> [1, 2].stream().render()\nnull", |ctx, recv, _| {
        each(ctx, &recv, |ctx, item| {
            ctx.sink().value(&item, false);
            Ok(())
        })
    }),
    Method {
        touches: Touches::Writes,
        ..row(
            "save",
            PATH,
            "Writes one line per item; gives the path.\n\nshoal> [\"a\", {b: 1}].stream().save(\"f.txt\"); path(\"f.txt\").lines\n[\"a\", \"{\\\"b\\\":1}\"]",
            |ctx, recv, args| write_lines(ctx, &recv, &args, WriteMode::Truncate),
        )
    },
    Method {
        touches: Touches::Writes,
        ..row(
            "append",
            PATH,
            "Appends one line per item; gives the path.\n\nshoal> [\"a\"].stream().save(\"f.txt\"); [\"b\"].stream().append(\"f.txt\"); path(\"f.txt\").lines\n[\"a\", \"b\"]",
            |ctx, recv, args| write_lines(ctx, &recv, &args, WriteMode::Append),
        )
    },
    row(
        "tee",
        &[Param::optional("n", Types::INT)],
        "`n` streams of the same items (2).\n\nshoal> [1, 2].stream().tee().map(s => s.sum())\n[3, 3]",
        |ctx, recv, args| {
            let n = args.count(0)?.unwrap_or(2);
            if n == 0 {
                return Err(ErrorValue::arg_error("tee: expected at least 1 stream, found 0").into());
            }
            let source = source(ctx, &recv)?;
            let facts = source.facts.clone();
            if facts.live || !facts.bounded {
                let forks = fork::forks(source, n.min(MAX_FORKS));
                return Ok(Value::list(forks.map(|fork| stream::new(facts.clone(), fork)).collect())?);
            }
            let items = source.gather(ctx.machine())?;
            Ok(Value::list((0..n).map(|_| stream::bounded(&facts.label, items.clone())).collect())?)
        },
    ),
    row(
        "first",
        &[Param::optional("n", Types::INT)],
        "The first item or null; the first `n` as a list.\n\nshoal> every(1ms).map(t => 7).first()\n7",
        first,
    ),
    row(
        "find",
        P,
        "The first item that satisfies `p`, or null.\n\nshoal> [1, 2, 3].stream().find(x => x > 1)\n2",
        |ctx, recv, mut args| {
            let p = args.take(0);
            let found = search(ctx, &recv, |ctx, item| ctx.holds(&p, std::slice::from_ref(item)))?;
            Ok(found.unwrap_or(Value::Null))
        },
    ),
    row(
        "any",
        P,
        "Whether some item satisfies `p`.\n\nshoal> [1, 2].stream().any(x => x > 1)\ntrue",
        |ctx, recv, mut args| {
            let p = args.take(0);
            let found = search(ctx, &recv, |ctx, item| ctx.holds(&p, std::slice::from_ref(item)))?;
            Ok(Value::Bool(found.is_some()))
        },
    ),
    row(
        "all",
        P,
        "Whether all items satisfy `p`.\n\nshoal> [1, 2].stream().all(x => x > 1)\nfalse",
        |ctx, recv, mut args| {
            let p = args.take(0);
            let found = search(ctx, &recv, |ctx, item| Ok(!ctx.holds(&p, std::slice::from_ref(item))?))?;
            Ok(Value::Bool(found.is_none()))
        },
    ),
    row(
        "contains",
        &[Param::required("v", Types::ANY)],
        "Whether some item equals `v`.\n\nshoal> [1, 2].stream().contains(2)\ntrue",
        |ctx, recv, mut args| {
            let wanted = args.take(0);
            let found = search(ctx, &recv, |_, item| Ok(shoal_value::equal::equal(item, &wanted)?))?;
            Ok(Value::Bool(found.is_some()))
        },
    ),
    Method {
        touches: Touches::Session,
        ..row(
            "into",
            &[Param::required("channel", Types::CHANNEL)],
            "Emits each item on a channel.\n\nshoal> [7, 8].stream().into(channel(\"m\")); channel(\"m\").latest()\n8",
            |ctx, recv, args| match args.peek(0) {
                Some(Value::Channel(name)) => {
                    let name = name.clone();
                    each(ctx, &recv, |ctx, item| channel::emit(ctx.peek(), &name, item))
                }
                _ => Ok(Value::Null),
            },
        )
    },
    row("is_empty", &[], "Whether there is no item.\n\nshoal> [].stream().is_empty()\ntrue", |ctx, recv, _| {
        let found = search(ctx, &recv, |_, _| Ok(true))?;
        Ok(Value::Bool(found.is_none()))
    }),
];

pub(super) static FUNCTIONS: &[Function] = &[Function {
    name: "every",
    params: &[Param::interval("interval", Types::DURATION)],
    gives: Gives::Plain(Types::STREAM),
    touches: Touches::Time,
    doc: "An endless stream of datetimes, one per interval.\n\nshoal> every(1ms).take(2).collect().len()\n2",
    run: |_ctx, args| {
        let interval = interval(args.peek(0), "every")?;
        Ok(stream::live("every", Every { interval, due: None }))
    },
}];

fn source(ctx: &mut Ctx<'_>, recv: &Value) -> Eval<Taken> {
    match recv {
        Value::Stream(stream) => stream::take(ctx.machine(), stream),
        other => Err(ErrorValue::type_error(format!("expected stream, found {}", other.type_name())).into()),
    }
}

fn gather(ctx: &mut Ctx<'_>, recv: &Value) -> Eval<Vec<Value>> {
    match recv {
        Value::Stream(stream) => stream::gather(ctx.machine(), stream),
        other => Err(ErrorValue::type_error(format!("expected stream, found {}", other.type_name())).into()),
    }
}

fn derive<S: Source + 'static>(
    ctx: &mut Ctx<'_>,
    recv: &Value,
    name: &str,
    make: impl FnOnce(Taken) -> S,
) -> Eval<Value> {
    let source = source(ctx, recv)?;
    Ok(stream::new(source.facts.through(name), make(source)))
}

fn other(ctx: &mut Ctx<'_>, args: &Args) -> Eval<Taken> {
    source(ctx, args.peek(0).unwrap_or(&Value::Null))
}

fn filter(ctx: &mut Ctx<'_>, recv: Value, mut args: Args) -> Eval<Value> {
    let p = args.take(0);
    derive(ctx, &recv, "where", |source| Where(source, p))
}

fn skip(ctx: &mut Ctx<'_>, recv: Value, args: Args) -> Eval<Value> {
    let n = args.count(0)?.unwrap_or(0);
    derive(ctx, &recv, "skip", |source| Skip(source, n))
}

fn take_until(ctx: &mut Ctx<'_>, recv: Value, mut args: Args) -> Eval<Value> {
    let until = match args.take(0) {
        Value::Stream(stream) => Until::Stream(Box::new(stream::take(ctx.machine(), &stream)?)),
        predicate => Until::Holds(predicate),
    };
    let source = source(ctx, &recv)?;
    let facts = Facts { bounded: true, ..source.facts.through("take_until") };
    match until {
        Until::Stream(other) if source.facts.live || other.facts.live => {
            Ok(stream::new(facts, UntilOther(Some(Ahead::new(vec![source, *other], ROOM)))))
        }
        until => Ok(stream::new(facts, TakeUntil { source, until, done: false })),
    }
}

fn window(ctx: &mut Ctx<'_>, recv: Value, args: Args) -> Eval<Value> {
    match args.peek(0) {
        Some(Value::Int(n)) => {
            let size = usize::try_from(*n).ok().filter(|n| *n > 0);
            let size =
                size.ok_or_else(|| ErrorValue::arg_error(format!("window: expected a positive size, found {n}")))?;
            derive(ctx, &recv, "window", |source| Window { source, size, items: VecDeque::new() })
        }
        duration => {
            let interval = interval(duration, "window")?;
            derive(ctx, &recv, "window", |source| TimeWindow { source, interval, items: VecDeque::new() })
        }
    }
}

fn interval(value: Option<&Value>, what: &str) -> Result<u64, ErrorValue> {
    match value {
        Some(Value::Duration(nanos)) if *nanos > 0 => Ok(nanos.unsigned_abs()),
        _ => Err(ErrorValue::arg_error(format!("{what}: expected a positive duration"))),
    }
}

fn each(ctx: &mut Ctx<'_>, recv: &Value, mut act: impl FnMut(&mut Ctx<'_>, Value) -> Eval<()>) -> Eval<Value> {
    let mut source = source(ctx, recv)?;
    while let Some(item) = source.next(ctx.machine())? {
        act(ctx, item)?;
    }
    Ok(Value::Null)
}

fn search(
    ctx: &mut Ctx<'_>,
    recv: &Value,
    mut wanted: impl FnMut(&mut Ctx<'_>, &Value) -> Eval<bool>,
) -> Eval<Option<Value>> {
    let mut source = source(ctx, recv)?;
    while let Some(item) = source.next(ctx.machine())? {
        if wanted(ctx, &item)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

fn first(ctx: &mut Ctx<'_>, recv: Value, args: Args) -> Eval<Value> {
    let Some(n) = args.count(0)? else {
        return Ok(search(ctx, &recv, |_, _| Ok(true))?.unwrap_or(Value::Null));
    };
    let mut source = source(ctx, &recv)?;
    let mut items = Vec::new();
    while items.len() < n
        && let Some(item) = source.next(ctx.machine())?
    {
        items.push(item);
    }
    Ok(Value::list(items)?)
}

fn write_lines(ctx: &mut Ctx<'_>, recv: &Value, args: &Args, mode: WriteMode) -> Eval<Value> {
    let path = match args.peek(0) {
        Some(Value::Path(path)) => path.clone(),
        Some(Value::Str(text)) => PathValue::from(&**text),
        _ => return Err(ErrorValue::arg_error("save needs a path").into()),
    };
    let mut source = source(ctx, recv)?;
    let mut file = ctx.files().create(ctx.at(&path), mode).map_err(|e| ctx.file_error(&e, &path))?;
    while let Some(item) = source.next(ctx.machine())? {
        let line = line_bytes(&item)?;
        file.write_all(&line)
            .map_err(|e| ErrorValue::new(shoal_value::code::IO_ERROR, format!("{}: {e}", path.display())))?;
    }
    Ok(Value::Path(path))
}
