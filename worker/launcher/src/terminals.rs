//! Terminals: the launcher opens both sides, starts the program on the follower and keeps the leader, so that a program
//! never notices a ptyd that died.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use shoal_proto::Text;
use shoal_proto::broker_launcher::{PtyExited, PtyFailed, PtyId, PtyStarted, SpawnPty, ToBroker};
use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::launcher_ptyd::{Leader, ToPtyd};
use shoal_proto::launcher_worker::SpawnStage;

use crate::commands::Who;
use crate::edge;
use crate::launcher::Launcher;
use crate::start::Stopped;

/// A terminal until the broker has its program killed.
#[derive(Debug)]
pub(crate) struct Terminal {
    leader: OwnedFd,
    pid: i32,
    cols: u16,
    rows: u16,
    exit: Option<ExitStatus>,
    /// Which ptyd has the leader, counted from 1; 0 while none had it.
    given_to: u32,
}

/// All of them, by the broker's number.
pub(crate) type Terminals = BTreeMap<PtyId, Terminal>;

impl Launcher {
    /// Starts a program on a new terminal and gives its leader to the ptyd.
    pub(crate) fn spawn_pty(&mut self, order: SpawnPty) {
        let (id, cols, rows) = (order.id, order.cols, order.rows);
        match self.start_on_terminal(order) {
            Ok((pid, leader)) => {
                self.terminals.insert(id, Terminal { leader, pid, cols, rows, exit: None, given_to: 0 });
                self.tell_broker(&ToBroker::PtyStarted(PtyStarted { id, pid }));
                self.give_leaders();
            }
            Err(Stopped { stage, errno, reason }) => {
                let reason = Text::cut(&reason);
                self.tell_broker(&ToBroker::PtyFailed(PtyFailed { id, stage, errno, reason }));
            }
        }
    }

    fn start_on_terminal(&mut self, order: SpawnPty) -> Result<(i32, OwnedFd), Stopped> {
        let env: Vec<Vec<u8>> = order.env.into_vec().into_iter().map(shoal_proto::Bytes::into_vec).collect();
        let argv: Vec<Vec<u8>> = order.argv.into_vec().into_iter().map(shoal_proto::Bytes::into_vec).collect();
        let path = find_program(order.program.as_slice(), order.cwd.as_slice(), &env)
            .ok_or_else(|| Stopped::at(SpawnStage::Open, libc::ENOENT))?;
        let pty = shoal_sys::pty::open(order.cols, order.rows).map_err(|e| Stopped::io(SpawnStage::Setup, &e))?;
        let fds = [pty.follower.as_fd(), pty.follower.as_fd(), pty.follower.as_fd()];
        let pid =
            self.launch(Who::Terminal(order.id), path.as_os_str().as_bytes(), argv, env, order.cwd.into_vec(), &fds)?;
        Ok((pid, pty.leader))
    }

    /// Gives the ptyd every leader it does not have; after a replacement that is all of them.
    pub(crate) fn give_leaders(&mut self) {
        let Some(ptyd) = self.roles.greeted_ptyd() else { return };
        for (id, terminal) in &mut self.terminals {
            if terminal.given_to == ptyd {
                continue;
            }
            let again = terminal.given_to != 0;
            terminal.given_to = ptyd;
            let leader = Leader { id: *id, pid: terminal.pid, cols: terminal.cols, rows: terminal.rows, again };
            let mut told = edge::tell(&mut self.ptyd, &ToPtyd::Leader(leader), &[terminal.leader.as_fd()]);
            if let Some(status) = terminal.exit {
                told = told && edge::tell(&mut self.ptyd, &ToPtyd::Exited(PtyExited { id: *id, status }), &[]);
            }
            if !told {
                return self.end_role(SessionRole::Ptyd);
            }
        }
    }

    /// A terminal's program was reaped. The leader stays: its last output may not have been read.
    pub(crate) fn on_terminal_end(&mut self, id: PtyId, status: ExitStatus) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        terminal.exit = Some(status);
        let exited = PtyExited { id, status };
        if terminal.given_to != 0 && !edge::tell(&mut self.ptyd, &ToPtyd::Exited(exited), &[]) {
            self.end_role(SessionRole::Ptyd);
        }
        self.tell_broker(&ToBroker::PtyExited(exited));
    }
}

/// The executable a program name means: a path as it is, relative to the directory; a name by `PATH` of the terminal's
/// environment, where an empty entry means the directory.
fn find_program(name: &[u8], cwd: &[u8], env: &[Vec<u8>]) -> Option<PathBuf> {
    let cwd = Path::new(OsStr::from_bytes(cwd));
    let name = OsStr::from_bytes(name);
    if name.as_bytes().contains(&b'/') {
        return Some(cwd.join(name));
    }
    let path = env.iter().find_map(|pair| pair.strip_prefix(b"PATH=")).unwrap_or_default();
    let entries = path.split(|b| *b == b':').map(|entry| cwd.join(OsStr::from_bytes(entry)).join(name));
    entries.into_iter().find(|file| is_executable(file))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_a_path_is_not() {
        let env = [b"PATH=/nowhere:/bin:/usr/bin".to_vec()];
        let found = find_program(b"sh", b"/", &env).expect("sh");
        assert!(found.ends_with("sh") && found.is_absolute());
        assert_eq!(find_program(b"./x", b"/srv", &env), Some(PathBuf::from("/srv/./x")));
        assert_eq!(find_program(b"/bin/sh", b"/srv", &[]), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find_program(b"no-such-program-here", b"/", &env), None);
    }
}
