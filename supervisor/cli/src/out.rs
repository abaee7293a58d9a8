//! Printing: every line goes through here, so that a closed stdout ends the command quietly.

use std::io::Write as _;

use serde_json::Value;

use crate::fail::Fail;

/// Prints text as it is, with a line break at its end.
pub(crate) fn line(text: &str) -> Result<(), Fail> {
    let mut out = std::io::stdout().lock();
    let ending = if text.ends_with('\n') { "" } else { "\n" };
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(ending.as_bytes()))
        .and_then(|()| out.flush())
        .map_err(|_| Fail::ClosedOutput)
}

/// Prints one JSON document.
pub(crate) fn json(value: &Value) -> Result<(), Fail> {
    line(&format!("{value:#}"))
}
