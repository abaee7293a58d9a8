//! Starting a program that outlives its starter's terminal and process group.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the child of `command` the leader of a session of its own: no terminal, and no signals meant for us.
pub fn into_own_session(command: &mut Command) -> &mut Command {
    let become_leader = || {
        rustix::process::setsid()?;
        Ok::<(), io::Error>(())
    };
    // SAFETY: between fork and exec the closure makes one system call and touches no heap, lock or other shared state.
    unsafe { command.pre_exec(become_leader) }
}
