//! `os`: facts about the machine and the process.

use shoal_value::{Record, Value};

use crate::methods::rows::functions;
use crate::registry::{Namespace, Types};

pub(crate) static OS: Namespace = Namespace {
    name: "os",
    doc: "Facts about the machine and the user.",
    constants: &[],
    dynamic: None,
    functions: functions! {
        /// `"linux"` or `"macos"`.
        ///
        /// shoal> os.platform() in ["linux", "macos"]
        /// true
        platform: [], Plain(Types::STR), Nothing, |ctx, _| Ok(Value::str(ctx.host().system().platform));
        /// Processor architecture, such as `"x86_64"`.
        ///
        /// shoal> os.arch().is_empty()
        /// false
        arch: [], Plain(Types::STR), Nothing, |ctx, _| Ok(Value::str(ctx.host().system().arch));
        /// Process id of the evaluator.
        ///
        /// shoal> os.pid() > 0
        /// true
        pid: [], Plain(Types::INT), Nothing, |ctx, _| Ok(Value::Int(ctx.host().system().pid.into()));
        /// Name of the machine.
        ///
        /// shoal> os.hostname().is_empty()
        /// false
        hostname: [], Plain(Types::STR), Nothing, |ctx, _| Ok(Value::Str(ctx.host().system().hostname));
        /// Name of the user.
        ///
        /// shoal> os.username().is_empty()
        /// false
        username: [], Plain(Types::STR), Nothing, |ctx, _| Ok(Value::Str(ctx.host().system().username));
        /// Number of processors.
        ///
        /// shoal> os.cpus() >= 1
        /// true
        cpus: [], Plain(Types::INT), Nothing, |ctx, _| Ok(Value::Int(ctx.host().system().cpus.into()));
        /// Time since the machine started, or null if the system does not tell.
        ///
        /// shoal> (os.uptime() ?? 1s) > 0s
        /// true
        uptime: [], Plain(Types::DURATION.or(Types::NULL)), Nothing,
            |ctx, _| Ok(ctx.host().system().uptime_ns.map_or(Value::Null, Value::Duration));
        /// The variables of the session as a record. A value that is not UTF-8 is left out.
        ///
        /// shoal> os.env().contains("SURELY_UNSET")
        /// false
        env: [], Plain(Types::RECORD), Env, |ctx, _| Ok(env_record(ctx)?.into());
    },
};

/// The session's variables with UTF-8 values, by name.
pub(crate) fn env_record(ctx: &crate::Ctx<'_>) -> Result<Record, shoal_value::ErrorValue> {
    ctx.host().judge_env(false, "*")?;
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(Value::str);
    Record::new(ctx.env().iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))))
}
