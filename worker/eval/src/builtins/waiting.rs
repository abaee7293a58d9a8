//! `sleep` and `retry`.

use shoal_value::{ErrorValue, Value};

use crate::Ctx;
use crate::cancel::Cancelled;
use crate::methods::rows::{Checked, FUNCTION, commands, functions, need, optional};
use crate::registry::{Args, Command, CommandArgs, Done, Function, Types};
use crate::unwind::{Eval, Unwind};

pub(super) const COMMANDS: &[Command] = commands! {
    /// Waits; a bare int is seconds. A cancellation ends it at once.
    ///
    /// shoal> (sleep 0s).out
    /// null
    sleep "sleep DURATION": [], Durations, (1, 1), Outcome, Plain(Types::NULL), Nothing, sleep;
};

pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Calls a function up to `n` times until it neither raises nor gives a failed outcome, and gives its value; the last
    /// failure is raised. It waits `delay` between two attempts.
    ///
    /// shoal> var n = 0; retry(3) { n += 1; if n < 3 { raise("not yet") }; n }
    /// 3
    /// shoal> retry(2) { raise("never") }
    /// ! raised
    retry: [need("n", Types::INT), need("f", FUNCTION), optional("delay", Types::DURATION)], Any, Closures,
        |ctx, args| retry(ctx, &args);
};

fn sleep(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let nanos = match args.args.first() {
        Some(Value::Duration(nanos)) => *nanos,
        Some(Value::Int(seconds)) => seconds
            .checked_mul(1_000_000_000)
            .ok_or_else(|| ErrorValue::overflow(format!("sleep: {seconds} seconds are no duration")))?,
        other => {
            let found = other.map_or("nothing", Value::type_name);
            return Err(ErrorValue::type_error(format!("sleep: expected duration, found {found}")).into());
        }
    };
    wait("sleep", ctx, nanos)?;
    Ok(Value::Null.into())
}

/// Waits for `nanos` nanoseconds or until the run is to end.
fn wait(what: &str, ctx: &Ctx<'_>, nanos: i64) -> Eval<()> {
    let nanos =
        u64::try_from(nanos).map_err(|_| ErrorValue::type_error(format!("{what}: the duration is negative")))?;
    match ctx.clock().sleep(nanos, ctx.cancel()) {
        Ok(()) => Ok(()),
        Err(Cancelled) => ctx.check(),
    }
}

fn retry(ctx: &mut Ctx<'_>, args: &Args) -> Eval<Value> {
    let (attempts, f) = (args.int_at(0), args.value_at(1));
    if attempts <= 0 {
        return Err(ErrorValue::arg_error(format!("retry: n must be above 0, found {attempts}")).into());
    }
    for _ in 1..attempts {
        match ctx.call(f, &[]) {
            Ok(Value::Outcome(outcome)) if !outcome.ok => {}
            Err(Unwind::Raise(_)) => {}
            done => return done,
        }
        if let Some(Value::Duration(delay)) = args.peek(2) {
            wait("retry", ctx, *delay)?;
        }
    }
    let value = ctx.call(f, &[])?;
    ctx.discard(&value)?;
    Ok(value)
}
