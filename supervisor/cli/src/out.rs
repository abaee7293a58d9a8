//! Printing: every line goes through here, so that a closed stdout ends the command quietly.

use std::io::Write as _;

use serde_json::Value;

use crate::context::Context;
use crate::escape;
use crate::fail::Fail;

/// Prints text as it is, with a line break at its end.
pub(crate) fn line(content: &str) -> Result<(), Fail> {
    if content.ends_with('\n') { text(content) } else { text(&format!("{content}\n")) }
}

/// Prints text as it is.
pub(crate) fn text(content: &str) -> Result<(), Fail> {
    let mut out = std::io::stdout().lock();
    out.write_all(content.as_bytes()).and_then(|()| out.flush()).map_err(|_| Fail::ClosedOutput)
}

/// Prints one JSON document.
pub(crate) fn json(value: &Value) -> Result<(), Fail> {
    line(&escape::json(&format!("{value:#}")))
}

/// Prints the document when one is wanted, else the text.
pub(crate) fn either(context: &Context, value: &Value, said: &str) -> Result<(), Fail> {
    if context.json { json(value) } else { line(said) }
}

/// Says something beside the result. Nobody may be listening there, and that is no failure.
pub(crate) fn note(said: &str) {
    let mut err = std::io::stderr().lock();
    let _unread = err.write_all(said.as_bytes()).and_then(|()| err.write_all(b"\n"));
}
