//! Methods of globs and regexes. Any other method of a glob works on the list of its matches.

use shoal_value::{ErrorValue, List, Value};

use super::rows::methods;
use crate::registry::{Method, Types};

pub(super) const METHODS: &[Method] = methods! {
    /// The source text of a glob or regex.
    ///
    /// shoal> glob("*.txt").pattern()
    /// "*.txt"
    /// shoal> re"\d+".pattern
    /// "\\d+"
    pattern: Types::GLOB.or(Types::REGEX), [], Plain(Types::STR), Pure, |recv, _| match recv {
        Value::Glob(glob) => Ok(Value::Str(glob.pattern().clone())),
        Value::Regex(re) => Ok(Value::str(re.src())),
        other => Err(ErrorValue::type_error(format!("`.pattern` does not work on {}", other.type_name()))),
    };

    /// The paths that match, sorted: relative if the pattern is and the working directory has not changed.
    ///
    /// shoal> touch b.txt a.txt .h.txt; glob("*.txt").expand()
    /// [a.txt, b.txt]
    expand: Types::GLOB, [], Plain(Types::LIST), Reads, |ctx, recv, _| match recv {
        Value::Glob(glob) => Ok(List::leaves(ctx.expand(&glob)?).into()),
        other => Err(ErrorValue::type_error(format!("`.expand` does not work on {}", other.type_name())).into()),
    };
};
