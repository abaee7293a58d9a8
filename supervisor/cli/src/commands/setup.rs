//! `shoal setup`: the user service, and MCP clients.

mod config_file;
mod mcp;
mod service;

use std::process::ExitCode;

use crate::args::Setup;
use crate::context::Context;
use crate::fail::Fail;

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Setup) -> Result<ExitCode, Fail> {
    match action {
        Setup::Service { remove: true, .. } => service::remove(context),
        Setup::Service { linger, print, .. } => service::run(context, linger, print),
        Setup::Mcp(asked) => mcp::run(context, asked),
    }
}
