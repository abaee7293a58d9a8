//! `echo`.

use shoal_value::{Value, render};

use crate::methods::rows::{MANY, commands};
use crate::methods::text::text_value;
use crate::registry::{Command, CommandArgs, Types};

pub(super) const COMMANDS: &[Command] = commands! {
    /// Its arguments as one text, joined by spaces: strings and paths bare, null empty, other values in inline form. It has
    /// no flags: `-n` and `--help` are words like any other.
    ///
    /// shoal> (echo a b ([1, 2])).out
    /// "a b [1, 2]"
    echo "echo VALUE...": [], Values, (0, MANY), Outcome, Plain(Types::STR), Nothing,
        |_, args| Ok(text_value(joined(&args))?.into());
};

fn joined(args: &CommandArgs) -> String {
    let mut text = String::new();
    for (at, value) in args.args.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        if !matches!(value, Value::Null) {
            text.push_str(&render::interpolate(value));
        }
    }
    text
}
