//! Fields that need the clock. Fields that need nothing but the value are in `shoal_value::access`, and fields of paths are
//! methods without arguments.

use shoal_value::{ErrorValue, Value};

use crate::registry::{Field, Gives, Touches, Types};

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "ago",
        on: Types::DURATION,
        gives: Gives::Plain(Types::DATETIME),
        touches: Touches::Time,
        doc: "The instant that long before now.",
        run: |ctx, value| Ok(ctx.now().minus_nanos(nanos(value)?)?.into()),
    },
    Field {
        name: "from_now",
        on: Types::DURATION,
        gives: Gives::Plain(Types::DATETIME),
        touches: Touches::Time,
        doc: "The instant that long after now.",
        run: |ctx, value| Ok(ctx.now().plus_nanos(nanos(value)?)?.into()),
    },
];

fn nanos(value: &Value) -> Result<i64, ErrorValue> {
    match value {
        Value::Duration(nanos) => Ok(*nanos),
        other => Err(ErrorValue::type_error(format!("expected duration, found {}", other.type_name()))),
    }
}
