//! Attacks on a running kernel: what a hostile program in a session tries, and on whom.
//!
//! An [`Attack`] is a name of the attack list and a function that tries it. The programs beside this library carry the
//! list into every place of a session from which an attack can come: `attacker` is a command and a program in a
//! terminal, `hostile-worker` and `hostile-ptyd` stand in for those roles, each behind the role's own confinement.
//! `human` is who is attacked besides the kernel: a program of the same user, outside, with sockets and files of its
//! own. What each attack must come to is in `expected.toml`.
//!
//! An attack does no harm when it succeeds: it reads a byte, asks, or sets what is set already.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "an attacker opens files and starts programs as it likes")]
#![cfg(target_os = "linux")]

mod attacks;
mod targets;
pub mod violations;

use std::io;
use std::process::{Command, Stdio};

pub use attacks::all;
pub use targets::Targets;

/// One thing to try.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Its name: the number of the attack list and a word.
    pub id: &'static str,
    /// Tries it; an error is a defence.
    pub act: fn(&Targets) -> io::Result<()>,
    /// It may end or change the process that tries it, so a child does.
    pub alone: bool,
}

const fn attack(id: &'static str, act: fn(&Targets) -> io::Result<()>) -> Attack {
    Attack { id, act, alone: false }
}

const fn alone(id: &'static str, act: fn(&Targets) -> io::Result<()>) -> Attack {
    Attack { id, act, alone: true }
}

/// The attack of a name.
pub fn find(id: &str) -> Option<Attack> {
    all().into_iter().find(|attack| attack.id == id)
}

/// Tries an attack here and says in a word what came of it: `ok`, the name of an error, or another word. A library that
/// does not expect a refused call panics, which is a refusal.
pub fn outcome(attack: &Attack, targets: &Targets) -> String {
    std::panic::catch_unwind(|| word(&(attack.act)(targets))).unwrap_or_else(|_| "panicked".to_owned())
}

/// Tries every attack, one line each: the name and what came of it.
pub fn run_all(targets: &Targets) -> String {
    let one = |attack: Attack| {
        let outcome = if attack.alone { in_child(&attack, targets) } else { outcome(&attack, targets) };
        format!("{} {outcome}\n", attack.id)
    };
    all().into_iter().map(one).collect()
}

/// Sends descriptors to itself until no more are taken, makes a file to say so, and keeps them on their way for ever.
pub fn hold_descriptors(said: &std::path::Path) -> io::Result<()> {
    use std::os::fd::AsFd as _;
    let mut pairs = Vec::new();
    let null = shoal_sys::fd::null()?;
    let many: Vec<_> = std::iter::repeat_n(null.as_fd(), 64).collect();
    'pairs: while let Ok((ours, theirs)) = shoal_sys::socket::pair(shoal_sys::socket::Carrier::NATIVE) {
        loop {
            match shoal_sys::attack::send(&ours, &[io::IoSlice::new(b"x")], &many, false) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    pairs.push((ours, theirs));
                    break 'pairs;
                }
            }
        }
        pairs.push((ours, theirs));
    }
    // Every number may be taken: the file needs one.
    pairs.pop();
    std::fs::write(said, pairs.len().to_string())?;
    loop {
        std::thread::park();
    }
}

/// Tries an attack in another process: this program again, with the attack's name as its sub-command.
fn in_child(attack: &Attack, targets: &Targets) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let started = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        command.args([attack.id, &targets.to_text()]).stdin(Stdio::null()).stderr(Stdio::null()).output()
    });
    match started {
        Ok(output) => match output.status.signal() {
            Some(signal) => format!("signal-{signal}"),
            None => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        },
        Err(error) => format!("no-child-{}", word(&Err(error))),
    }
}

/// An outcome in one word.
fn word(result: &io::Result<()>) -> String {
    match result {
        Ok(()) => "ok".to_owned(),
        Err(error) => match error.raw_os_error() {
            Some(number) => format!("{:?}", nix::errno::Errno::from_raw(number)),
            None => error.to_string().replace(char::is_whitespace, "-"),
        },
    }
}
