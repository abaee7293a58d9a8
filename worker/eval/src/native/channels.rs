//! `channel`, `on`, and the methods of channels.

use shoal_value::{ErrorValue, Str, Value, code};

use crate::Ctx;
use crate::channel::{self, Events};
use crate::methods::rows::{FUNCTION, functions, methods, need, optional};
use crate::registry::{Args, Function, Method, Types};
use crate::stream::{self, Source};
use crate::unwind::Eval;

const CHANNEL: Types = Types::CHANNEL;

pub(super) static FUNCTIONS: &[Function] = functions! {
    /// The channel of this name, which all requests and tasks of the session share. Names that begin with `user.` are on
    /// the kernel's event bus too.
    ///
    /// shoal> channel("build")
    /// channel(build)
    channel: [need("name", Types::STR)], Plain(CHANNEL), Pure, |mut args| Ok(Value::Channel(name_of(args.take(0))?));

    /// A task that calls `f` with each event `{channel, seq, ts, payload}` emitted from now on.
    ///
    /// shoal> let t = on("q", e => channel("r").emit(e.payload + 1)); channel("q").emit(1); channel("r").events().first().payload
    /// 2
    on: [need("channel", CHANNEL.or(Types::STR)), need("f", FUNCTION)], Plain(Types::TASK), Closures, on;
};

pub(super) static METHODS: &[Method] = methods! {
    /// Adds an event with this payload, which is data: no stream, task or function. A payload on a `user.` channel has at
    /// most 64 KiB encoded and 64 levels.
    ///
    /// shoal> channel("n").emit({a: 1})
    /// null
    /// shoal> channel("n").emit(x => x)
    /// ! type_error
    emit: CHANNEL, [need("payload", Types::ANY)], Plain(Types::NULL), Session, |ctx, recv, mut args| {
        channel::emit(ctx.peek(), &name_of(recv)?, args.take(0))?;
        Ok(Value::Null)
    };

    /// The payload of the newest event, null if there is none.
    ///
    /// shoal> let c = channel("n"); c.emit(1); c.emit(2); c.latest()
    /// 2
    latest: CHANNEL, [], Data, Nothing, |ctx, recv, _| Ok(channel::latest(ctx.peek(), &name_of(recv)?)?);

    /// An endless stream of events `{channel, seq, ts, payload}`: first the kept ones (1,024 at most), or only those with a
    /// number above `since`, then those to come.
    ///
    /// shoal> let c = channel("n"); c.emit("a"); c.emit("b"); c.events(since: 0).first().payload
    /// "b"
    /// shoal> channel("n").events().collect()
    /// ! stream_unbounded
    events: CHANNEL, [optional("since", Types::INT)], Plain(Types::STREAM), Nothing, |ctx, recv, args| {
        let name = name_of(recv)?;
        let since = args.count(0)?.map(|since| since as u64);
        let events = Events::replay(ctx.peek(), &name, since)?;
        Ok(stream::live(&format!("channel {name}"), events))
    };

    /// Waits for the next event and gives its payload; `timeout` if none comes in that time.
    ///
    /// shoal> let t = spawn { channel("n").take(timeout: 10s) }; while !t.is_done() { channel("n").emit(7); sleep 1ms }; t.await()
    /// 7
    /// shoal> channel("n").take(timeout: 1ms)
    /// ! timeout
    take: CHANNEL, [optional("timeout", Types::DURATION)], Data, Nothing, take;
};

fn name_of(value: Value) -> Result<Str, ErrorValue> {
    match value {
        Value::Str(name) | Value::Channel(name) => Ok(name),
        other => Err(ErrorValue::type_error(format!("expected channel, found {}", other.type_name()))),
    }
}

fn take(ctx: &mut Ctx<'_>, recv: Value, args: Args) -> Eval<Value> {
    let name = name_of(recv)?;
    let now = ctx.clock().monotonic_ns();
    let due = match args.peek(0) {
        Some(Value::Duration(nanos)) => Some(now.saturating_add(u64::try_from(*nanos).unwrap_or(0))),
        _ => None,
    };
    let mut events = Events::from_now(ctx.peek(), &name)?;
    match events.payload(ctx.peek(), due)? {
        Some(payload) => Ok(payload),
        None => Err(ErrorValue::new(code::TIMEOUT, format!("channel `{name}`: no event in time")).into()),
    }
}

fn on(ctx: &mut Ctx<'_>, mut args: Args) -> Eval<Value> {
    let (name, f) = (name_of(args.take(0))?, args.take(1));
    let mut events = Events::from_now(ctx.peek(), &name)?;
    let desc = format!("on({})", shoal_value::render::inline(&Value::Str(name)));
    let task = ctx.machine().start_task(desc.into(), move |machine| {
        while let Some(event) = events.next(machine)? {
            let mut ctx = Ctx::new(machine);
            let value = ctx.call(&f, &[event])?;
            ctx.discard(&value)?;
        }
        Ok(Value::Null)
    })?;
    Ok(Value::Task(task))
}
