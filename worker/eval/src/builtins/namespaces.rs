//! Namespaces: records of builtin functions and constants.

use shoal_value::{ErrorValue, Value};

use super::later;
use crate::methods::rows::Checked;
use crate::registry::{Args, Namespace};

mod config;
mod csv;
mod json;
mod math;
mod os;
mod toml;
mod yaml;

pub(crate) use os::env_record;

pub(super) static ALL: &[&Namespace] = &[
    &json::JSON,
    &yaml::YAML,
    &toml::TOML,
    &csv::CSV,
    &math::MATH,
    &os::OS,
    &config::CONFIG,
    &later::HTTP,
    &later::SECRET,
];

/// Collections inside collections that YAML and TOML texts may have. Their readers and writers recurse, and this keeps them
/// within the native stack that every thread with values has.
const MAX_NESTING: usize = 64;

/// Refuses to write a value that could not be read back.
fn check_nesting(name: &str, value: &Value) -> Result<(), ErrorValue> {
    if value.depth() <= MAX_NESTING {
        return Ok(());
    }
    Err(ErrorValue::too_large(format!("{name}: the value is nested deeper than {MAX_NESTING} levels")))
}

/// The text a parser is to read. A parser's argument is its input, so one that is no str is a malformed argument.
fn source<'a>(name: &str, args: &'a Args) -> Result<&'a str, ErrorValue> {
    args.value_at(0).as_str().ok_or_else(|| {
        let msg = format!("{name}: expected str, found {}", args.value_at(0).type_name());
        ErrorValue::arg_error(msg).with_hint("of a file, pass its text: `path(\"f\").read`")
    })
}
