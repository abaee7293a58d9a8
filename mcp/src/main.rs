//! MCP server in front of a Shoal kernel, over stdio.
//!
//! `shoal-mcp` translates: it holds no evaluator and has no authority of its own. Both generations of MCP are served
//! by the same process, decided for each request on its own ([`eras`]). Handshakes and fixed lists are answered from
//! constants; the first call that needs the kernel connects, and starts one if there is none ([`kernel`]).
//!
//! One loop reads lines and dispatches each as it arrives; a thread waits on stdin and one writes stdout, so neither a
//! silent client nor one that does not read can hold up the rest ([`stdio`]).
#![forbid(unsafe_code)]

mod ask;
mod bound;
mod call;
mod eras;
mod instructions;
mod kernel;
mod line;
mod progress;
mod report;
mod resources;
mod server;
mod stdio;
mod subscriptions;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use shoal_client::{Flags, Vars};

/// MCP server in front of a Shoal kernel, over stdio.
#[derive(Parser)]
#[command(name = "shoal-mcp", version)]
struct Args {
    /// Socket of the kernel.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Session to attach to.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Bearer token.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let flags = Flags { socket: args.socket, session: args.session, token: args.token, ..Flags::default() };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("shoal-mcp: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(server::serve(flags, Vars::of_process()));
    // Threads that wait for a terminal, a pipe or a lock end with the process.
    runtime.shutdown_background();
    ExitCode::SUCCESS
}
