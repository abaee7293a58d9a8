//! `config`: the host's resolved configuration.

use shoal_value::Value;

use crate::methods::rows::{Checked, functions, need};
use crate::registry::{Namespace, Types};

pub(crate) static CONFIG: Namespace = Namespace {
    name: "config",
    doc: "The host's resolved configuration. `config.KEY` is `config.get(\"KEY\")`.",
    constants: &[],
    dynamic: Some(|ctx, key| Ok(ctx.host().config().get(key).cloned().unwrap_or(Value::Null))),
    functions: functions! {
        /// All of it as a record; `{}` without a host that has a configuration.
        ///
        /// shoal> config.all()
        /// {}
        all: [], Plain(Types::RECORD), Nothing, |ctx, _| Ok(ctx.host().config().into());
        /// The value of a key, or null.
        ///
        /// shoal> config.get("surely_unset")
        /// null
        get: [need("key", Types::STR)], Data, Nothing,
            |ctx, args| Ok(ctx.host().config().get(args.str_at(0)).cloned().unwrap_or(Value::Null));
    },
};
