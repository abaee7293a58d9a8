//! One module per command.

mod approvals;
mod attach;
mod doctor;
mod events;
mod exec;
mod history;
mod kernel;
mod man;
mod policy;
mod pty;
mod session;
mod setup;
mod status;
mod token;
mod top;
mod watch;

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::{Args, Command};
use crate::context::Context;
use crate::fail::Fail;
use crate::siblings;

/// Carries out the command.
pub(crate) fn run(args: Args) -> Result<ExitCode, Fail> {
    // These need neither a home nor a socket path, so nothing about them can be wrong.
    match &args.command {
        Command::Eval(_) => return Err(siblings::become_program("shoal-launcher", &["--local", "--verdict"])),
        Command::Completions { shell } => return completions(*shell),
        Command::Man(man) => return man::run(man),
        _ => {}
    }
    let context = Context::new(args.common.clone())?;
    match args.command {
        Command::Exec(exec) => exec::run(&context, exec),
        Command::Attach(to) => attach::run(context, to),
        Command::Status => status::run(&context),
        Command::Top => top::run(context),
        Command::Session(action) => session::run(&context, action),
        Command::Approvals(action) => approvals::run(&context, action),
        Command::Events(action) => events::run(&context, action),
        Command::History(history) => history::run(context, history),
        Command::Token(action) => token::run(&context, action),
        Command::Pty(action) => pty::run(&context, action),
        Command::Watch(action) => watch::run(&context, action),
        Command::Policy(action) => policy::run(&context, action),
        Command::Doctor => doctor::run(context),
        Command::Setup(action) => setup::run(&context, action),
        Command::Kernel(action) => kernel::run(context, action),
        Command::Mcp => Err(mcp(&args.common)),
        Command::Eval(_) | Command::Completions { .. } | Command::Man(_) => Ok(ExitCode::SUCCESS),
    }
}

/// Becomes `shoal-mcp` with the flags it shares.
fn mcp(common: &crate::args::Common) -> Fail {
    let mut words = Vec::new();
    let socket = common.socket.as_ref().map(|p| p.display().to_string());
    for (flag, value) in [("--socket", &socket), ("--session", &common.session), ("--token", &common.token)] {
        if let Some(value) = value {
            words.push(flag);
            words.push(value.as_str());
        }
    }
    siblings::become_program("shoal-mcp", &words)
}

fn completions(shell: clap_complete::Shell) -> Result<ExitCode, Fail> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "shoal", &mut script);
    crate::out::line(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
