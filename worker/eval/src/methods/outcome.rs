//! Methods an outcome has itself; every other goes to its `out`.

use shoal_value::{ErrorValue, Outcome, Value};

use super::rows::methods;
use crate::registry::{Method, Types};

const OUTCOME: Types = Types::OUTCOME;

pub(super) const METHODS: &[Method] = methods! {
    /// The standard output, like the field; also of an outcome that is not ok.
    ///
    /// shoal> (echo hi).stdout().str()
    /// "hi\n"
    stdout: OUTCOME, [], Plain(Types::BYTES), Pure, |recv, _| Ok(outcome(&recv)?.stdout.clone().into());

    /// The standard error, like the field; also of an outcome that is not ok.
    ///
    /// shoal> (echo hi).stderr().len()
    /// 0
    stderr: OUTCOME, [], Plain(Types::BYTES), Pure, |recv, _| Ok(outcome(&recv)?.stderr.clone().into());
};

fn outcome(recv: &Value) -> Result<&Outcome, ErrorValue> {
    match recv {
        Value::Outcome(outcome) => Ok(outcome),
        other => Err(ErrorValue::type_error(format!("expected outcome, found {}", other.type_name()))),
    }
}
