//! Whether colour is wanted: only on a terminal, and not when the person said no.

use std::io::IsTerminal as _;

/// Colour on stdout: a terminal that is not dumb, and no `NO_COLOR`.
pub(crate) fn on_stdout() -> bool {
    let says = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    std::io::stdout().is_terminal() && says("NO_COLOR").is_none() && says("TERM").is_none_or(|term| term != "dumb")
}
